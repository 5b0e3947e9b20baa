"""The words and numbers of names, to compare names by."""

import re
from collections.abc import Sequence

# Without "x", which is a chromosome more often than a ten.
ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7"}
ROMAN.update({"viii": "8", "ix": "9"})
# Endings of plurals, and what they are in the singular. The first that fits counts.
PLURALS = (("sses", "ss"), ("oses", "osis"), ("itides", "itis"), ("ies", "y"), ("s", ""))
# Not plurals, though they end in "s".
SINGULARS = ("ss", "is", "us")
# Words that change a name into another one's.
NEGATING = frozenset(("no", "non", "not", "anti", "pseudo", "para", "pre", "post", "un", "without"))
# Shorter words stay unchanged.
MIN_PLURAL = 4

# A name with an ending in brackets, as titles of articles have it.
_QUALIFIED = re.compile(r"(.*\S)\s+\([^()]+\)")
_WORD = re.compile(r"[^\W\d_]+|\d+")


def words_of(string: str) -> list[str]:
    """Words and numbers of a string, normalized. They are in lower case and singular.

    Roman numerals up to IX are numbers.
    """
    return [ROMAN.get(word) or singular(word) for word in _WORD.findall(string.lower())]


def singular(word: str) -> str:
    """Singular of a lowercase English word, where regular."""
    if word[-1:] != "s" or len(word) < MIN_PLURAL or word.endswith(SINGULARS):
        return word
    for ending, replacement in PLURALS:
        if word.endswith(ending):
            return word[: -len(ending)] + replacement
    return word


def plural(word: str) -> str:
    """The regular plural of an English noun in lower case."""
    if word.endswith("itis"):
        return f"{word[:-1]}des"
    if word.endswith("sis"):
        return f"{word[:-2]}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def numbers_among(words: Sequence[str]) -> frozenset[str]:
    """The numbers among the words of a string."""
    return frozenset(word for word in words if word.isdigit())


def without_qualifier(name: str) -> str:
    """A name without what tells it from its namesakes: "Mercury" for "Mercury (planet)".

    "" for a name without such an ending.
    """
    found = _QUALIFIED.fullmatch(name)
    return found.group(1) if found else ""
