"""The tokens, numbers and fields of n-gram encoders, written out for one text at a time."""

import unicodedata

from spacy_arbo_el.contrib.papers.ngrams.hashing import (
    _WITHOUT_SPACES,
    BASE,
    FIRST_WORD,
    HASH_BITS,
)
from spacy_arbo_el.contrib.papers.ngrams.reader import BIGRAM

MASK = (1 << 64) - 1
Token = tuple[int, int]


def kind(character):
    code = ord(character)
    category = unicodedata.category(character)[0]
    if code >= 0x20000 or category in "PS":
        return "single"
    if category in "ZC":
        return "space"
    return "single" if any(a <= code < b for a, b in _WITHOUT_SPACES) else "word"


def tokens_of(text, cuts=()):
    """First character and end of each token."""
    tokens: list[Token] = []
    for place, character in enumerate(text):
        if kind(character) == "space":
            continue
        joins = (
            tokens
            and tokens[-1][1] == place
            and kind(character) == "word"
            and kind(text[place - 1]) == "word"
            and place not in cuts
        )
        if joins:
            tokens[-1] = (tokens[-1][0], place + 1)
        else:
            tokens.append((place, place + 1))
    return tokens


def mix(value):
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & MASK
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & MASK
    return value ^ (value >> 33)


def lower(character):
    low = character.lower()
    return low if len(low) == 1 and ord(character) < 0x20000 else character


def word(text):
    polynomial = sum(pow(BASE, i, 1 << 64) * (ord(lower(c)) + 1) for i, c in enumerate(text))
    return FIRST_WORD + (mix(mix(polynomial & MASK)) >> (64 - HASH_BITS))


def unigram_row(number, rows):
    return mix(number) % rows


def bigram_row(left, right, rows):
    return mix((mix(left + BIGRAM & MASK) + right) & MASK) % rows
