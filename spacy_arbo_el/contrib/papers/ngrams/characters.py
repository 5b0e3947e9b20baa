"""Character classes for the n-gram tokenizer. Tables that are looked up by code point."""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

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
        np.fromiter((chr(code).islower() for code in range(TABLE_SIZE)), bool, TABLE_SIZE),
    )


def _lower(code: int) -> int:
    """Lower case of a code point, if one character."""
    lowered = chr(code).lower()
    return ord(lowered) if len(lowered) == 1 else code


def _kinds() -> np.ndarray:
    # By the first letter of the category: letters, marks and numbers are parts of words.
    kind_of = {"L": WORD, "M": WORD, "N": WORD, "P": SINGLE, "S": SINGLE, "Z": SPACE, "C": SPACE}
    categories = (unicodedata.category(chr(code))[0] for code in range(TABLE_SIZE))
    kinds = np.fromiter((kind_of[category] for category in categories), np.uint8, TABLE_SIZE)
    for start, end in _WITHOUT_SPACES:
        part = kinds[start:end]
        part[part == WORD] = SINGLE
    return kinds
