"""Tokenize texts and hash their n-grams. All characters of many texts are processed at once.

A hash is that of a polynomial in the code points, modulo 2^64. With the sums of its terms from the
first character on, the hash of any substring is the difference of two of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....base.arrays import mix, offsets_of, ragged_ranges
from .characters import (
    CERTAIN_ENDS,
    LINE_BREAK,
    SENTENCE_ENDS,
    SINGLE,
    SPACE,
    TABLE_SIZE,
    WORD,
    character_tables,
)

# The base of the polynomial, and its inverse modulo 2^64.
BASE = 0x9E3779B97F4A7C15
INVERSE = pow(BASE, -1, 1 << 64)
# Numbers of tokens: nothing, the place of a mention, words, and then character n-grams.
BREAK = 0
PLACE = 1
FIRST_WORD = 2
FIRST_SUBWORD = 1 << 30
# Bits of a hash that make a number.
HASH_BITS = 29
SHORTEST_SUBWORD = 3


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
    text_starts = offsets_of(np.array([len(text) for text in texts], dtype=np.int64))
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
        line_breaks[starts] - np.repeat(line_breaks[text_starts[:-1]], np.diff(bounds)),
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
        return np.zeros(0, dtype=np.int64)
    last = codes[starts[:-1]]
    following = starts[1:]
    behind = ends[:-1]
    spaced = (behind < following) & (kinds[np.minimum(behind, len(codes) - 1)] == SPACE)
    closes = np.isin(last, SENTENCE_ENDS) & spaced & ~is_lower[following]
    closes |= np.isin(last, CERTAIN_ENDS)
    closes |= line_breaks[following] > line_breaks[behind]
    numbers = np.concatenate([[0], np.cumsum(closes)])
    texts = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    # Both only grow, so the sum grows with either.
    return numbers + texts


@dataclass(frozen=True, eq=False)
class SubstringHashes:
    """Hashes of the substrings of joined texts.

    sums: (characters + 1,) uint64, the terms of the polynomial before each character.
    inverses: (characters + 1,) uint64, powers of the inverse of the base.
    """

    sums: np.ndarray
    inverses: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray) -> "SubstringHashes":
        terms = _powers(BASE, len(codes)) * (codes.astype(np.uint64) + np.uint64(1))
        sums = np.zeros(len(codes) + 1, dtype=np.uint64)
        np.cumsum(terms, out=sums[1:])
        return cls(sums, _powers(INVERSE, len(codes) + 1))

    def __call__(self, starts: np.ndarray, ends: np.ndarray, salt: np.ndarray) -> np.ndarray:
        """Hash substrings and a salt: (n,) int64. They have ``HASH_BITS``."""
        polynomial = (self.sums[ends] - self.sums[starts]) * self.inverses[starts]
        mixed = mix(mix(polynomial) + salt.astype(np.uint64))
        return (mixed >> np.uint64(64 - HASH_BITS)).astype(np.int64)


def _powers(base: int, count: int) -> np.ndarray:
    """(count,) uint64, powers modulo 2^64 from the 0th on."""
    factors = np.full(count, base, dtype=np.uint64)
    factors[:1] = 1
    return np.cumprod(factors)


def number_tokens(
    tokens: Tokens, with_subwords: np.ndarray, longest: int, breaks: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers that stand for tokens.

    with_subwords: (tokens,) bool, tokens whose character n-grams follow them.
    longest: The most characters of such an n-gram; 0 for none at all.
    breaks: (tokens,) bool, tokens that ``BREAK`` stands before.
    RETURNS: The number of each token, (tokens,) int64; the stream of all tokens with breaks and
        n-grams, int64; and where each token is in the stream, (tokens + 1,) int64.
    """
    hashes = SubstringHashes.of(tokens.codes)
    none = np.zeros(len(tokens), dtype=np.uint64)
    words = FIRST_WORD + hashes(tokens.starts, tokens.ends, none)
    broken = np.flatnonzero(breaks)
    items = [np.full(len(broken), BREAK, dtype=np.int64), words]
    owners = [broken, np.arange(len(tokens))]
    lengths = np.where(with_subwords, tokens.ends - tokens.starts, 0)
    for size in range(SHORTEST_SUBWORD, longest + 1):
        # A whole token is a word already.
        counts = np.where(lengths > size, lengths - size + 1, 0)
        owner = np.repeat(np.arange(len(tokens)), counts)
        starts = ragged_ranges(tokens.starts, counts)
        at_start = starts == tokens.starts[owner]
        at_end = starts + size == tokens.ends[owner]
        salt = 1 + at_start + 2 * at_end
        items.append(FIRST_SUBWORD + hashes(starts, starts + size, salt))
        owners.append(owner)
    owner = np.concatenate(owners)
    stream = np.concatenate(items)[np.argsort(owner, kind="stable")]
    return words, stream, offsets_of(np.bincount(owner, minlength=len(tokens)))
