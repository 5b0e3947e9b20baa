"""Tokenize texts and hash their words. All characters of many texts are processed at once.

A hash is that of a polynomial in the code points, modulo 2^64. With the sums of its terms from the
first character on, the hash of a word is the difference of two of them.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ....base.arrays import int_array, mix, offsets_of

# Kinds of characters: between tokens, in a token with others, a token by itself.
SPACE = 0
WORD = 1
SINGLE = 2
# Code points in the tables. Those above are rare ideographs, each a token by itself.
TABLE_SIZE = 0x20000
# Scripts without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Bopomofo, ideographs.
# Hangul has spaces.
_WITHOUT_SPACES = (
    (0x0E00, 0x0F00),
    (0x1000, 0x10A0),
    (0x1780, 0x1800),
    (0x2E80, 0x3130),
    (0x31A0, 0xA000),
    (0xF900, 0xFB00),
)
# What ends a sentence where a space follows, and what ends one in any case.
SENTENCE_ENDS = tuple(map(ord, ".!?…।؟"))
CERTAIN_ENDS = tuple(map(ord, "。！？"))
LINE_BREAK = ord("\n")
# The base of the polynomial, and its inverse modulo 2^64.
BASE = 0x9E3779B97F4A7C15
INVERSE = pow(BASE, -1, 1 << 64)
# Numbers of tokens: nothing, the place of a mention, and then words.
BREAK = 0
PLACE = 1
FIRST_WORD = 2
# Bits of a hash that make a number.
HASH_BITS = 29


@dataclass(frozen=True, eq=False)
class CharacterTables:
    """Tables by code point.

    lower: (TABLE_SIZE,) uint32, the lower case of each, where that is one character.
    kinds: (TABLE_SIZE,) uint8, SPACE, WORD or SINGLE.
    is_lower: (TABLE_SIZE,) bool, small letters.
    """

    lower: np.ndarray
    kinds: np.ndarray
    is_lower: np.ndarray


@lru_cache(maxsize=1)
def character_tables() -> CharacterTables:
    """The tables, built once in a process."""
    return CharacterTables(
        np.fromiter(map(_lower, range(TABLE_SIZE)), np.uint32, TABLE_SIZE),
        _kinds(),
        np.fromiter(
            (chr(code).islower() for code in range(TABLE_SIZE)), bool, TABLE_SIZE
        ),
    )


def _lower(code: int) -> int:
    """Lower case of a code point, if one character."""
    lowered = chr(code).lower()
    return ord(lowered) if len(lowered) == 1 else code


def _kinds() -> np.ndarray:
    # By the first letter of the category: letters, marks and numbers are parts of words.
    kind_of = {
        "L": WORD,
        "M": WORD,
        "N": WORD,
        "P": SINGLE,
        "S": SINGLE,
        "Z": SPACE,
        "C": SPACE,
    }
    categories = (unicodedata.category(chr(code))[0] for code in range(TABLE_SIZE))
    kinds = np.fromiter(
        (kind_of[category] for category in categories), np.uint8, TABLE_SIZE
    )
    for start, end in _WITHOUT_SPACES:
        characters = kinds[start:end]
        characters[characters == WORD] = SINGLE
    return kinds


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of ``t`` texts, one text after the other.

    A token is a run of letters and digits, or another character by itself. In scripts without
    spaces each character is a token.

    codes: (characters,) uint32, the texts joined, in lower case.
    starts, ends: (tokens,) int64, characters of ``codes``, end exclusive.
    text_starts: (t + 1,) int64, where each text begins in ``codes``.
    bounds: (t + 1,) int64, the tokens of text ``i`` are ``bounds[i]`` to ``bounds[i + 1]``.
    sentences: (tokens,) int64, ascending, the same for tokens of one sentence.
    lines: (tokens,) int64, the line of its text that each token is in.
    """

    codes: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    text_starts: np.ndarray
    bounds: np.ndarray
    sentences: np.ndarray
    lines: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)


def tokenize(texts: Sequence[str], cuts: np.ndarray | None = None) -> Tokens:
    """The tokens of texts.

    cuts: Characters of the joined texts at which a token ends in any case, such as the borders of
        mentions.
    """
    joined = "".join(texts).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, dtype="<u4")
    text_starts = offsets_of(int_array([len(text) for text in texts]))
    tables = character_tables()
    looked_up = np.minimum(codes, TABLE_SIZE - 1)
    kinds = np.where(codes < TABLE_SIZE, tables.kinds[looked_up], SINGLE)
    continues = np.zeros(len(codes) + 1, dtype=bool)
    continues[1:-1] = (kinds[1:] == WORD) & (kinds[:-1] == WORD)
    continues[text_starts] = False
    if cuts is not None:
        continues[cuts] = False
    first = ~continues[:-1] & (kinds != SPACE)
    starts = np.flatnonzero(first)
    borders = np.flatnonzero(~continues)
    ends = borders[np.searchsorted(borders, starts, side="right")]
    bounds = np.searchsorted(starts, text_starts)
    line_breaks = offsets_of(codes == LINE_BREAK)
    is_lower = (codes < TABLE_SIZE) & tables.is_lower[looked_up]
    return Tokens(
        np.where(codes < TABLE_SIZE, tables.lower[looked_up], codes),
        starts,
        ends,
        text_starts,
        bounds,
        _sentences(codes, kinds, is_lower, starts, ends, bounds, line_breaks),
        line_breaks[starts]
        - np.repeat(line_breaks[text_starts[:-1]], np.diff(bounds)),
    )


def _sentences(
    codes: np.ndarray,
    kinds: np.ndarray,
    is_lower: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    bounds: np.ndarray,
    line_breaks: np.ndarray,
) -> np.ndarray:
    """The sentence of each token, see ``Tokens``.

    A sentence ends with its text, with a line, at an ideographic full stop, and at a full stop or
    the like that a space and no small letter follow.
    """
    if not len(starts):
        return int_array()
    last = codes[starts[:-1]]
    following = starts[1:]
    behind = ends[:-1]
    spaced = (behind < following) & (
        kinds[np.minimum(behind, len(codes) - 1)] == SPACE
    )
    closes = np.isin(last, SENTENCE_ENDS) & spaced & ~is_lower[following]
    closes |= np.isin(last, CERTAIN_ENDS)
    closes |= line_breaks[following] > line_breaks[behind]
    numbers = np.concatenate([[0], np.cumsum(closes)])
    texts = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    # Both only grow, so the sum grows with either.
    return numbers + texts


def number_tokens(tokens: Tokens) -> np.ndarray:
    """Numbers that stand for the words: (tokens,) int64. They have ``HASH_BITS``."""
    codes = tokens.codes
    terms = _powers(BASE, len(codes)) * (codes.astype(np.uint64) + np.uint64(1))
    sums = np.zeros(len(codes) + 1, dtype=np.uint64)
    np.cumsum(terms, out=sums[1:])
    shifts = _powers(INVERSE, len(codes) + 1)[tokens.starts]
    hashes = mix(mix((sums[tokens.ends] - sums[tokens.starts]) * shifts))
    return FIRST_WORD + (hashes >> np.uint64(64 - HASH_BITS)).astype(np.int64)


def _powers(base: int, count: int) -> np.ndarray:
    """(count,) uint64, powers modulo 2^64 from the 0th on."""
    factors = np.full(count, base, dtype=np.uint64)
    factors[:1] = 1
    return np.cumprod(factors)
