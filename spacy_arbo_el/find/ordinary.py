"""Places where a name is an ordinary word, or a part of another name."""

import re
from collections.abc import Container
from itertools import islice

from ..names.firms import is_legal_form

# The characters on each side that say whether a text is in capitals.
AROUND = 40

# Of a symbol, so many other places are looked at.
MOST_PLACES = 20

_WORDS = re.compile(r"[^\W\d_]{2,}")
# Words that headings have in capitals.
_LONGER = re.compile(r"[^\W\d_]{4,}")
# A word of a sentence rather than of a list.
_WITHIN = re.compile(r"(?<![^\W\d_])[^\W\d_]{2,}(?=\s+[^\W\d_])")
# A word with a capital letter at the end of a text, that is no genitive.
_CAPITALIZED = re.compile(r"(?<![\w'\u2019])([A-Z\u00c0-\u00de][^\W_]+)[^\S\n]+\Z")
# What stands between the last word and the end; and what ends a sentence there.
_GAP = re.compile(r"(?<!\W)\W*\Z")
_ENDS_SENTENCE = re.compile(r"[.!?:]\W|\n\s*\n|\A[^\n]*\n\W*[-*\u2022]")


def is_other_thing(
    text: str, start: int, end: int, name: str, stop_words: Container[str]
) -> bool:
    """Return whether a name is an ordinary word in its place, or a legal form.

    An ordinary word is "IMPACT" in text in capitals, and "Impact" in a heading or at the beginning
    of a sentence, unless the text has the symbol in another place. A stop word, such as "WAS", is
    one all the same.
    """
    if ends_a_firm(text, start, end, stop_words):
        return True
    is_symbol = name.isupper() and name.isalpha()
    if not is_symbol or not _is_doubtful(text, start, end, stop_words):
        return False
    if name.lower() in stop_words:
        return True
    places = (
        match.span()
        for form in (name, name.capitalize())
        for match in islice(re.finditer(rf"\b{form}\b", text), MOST_PLACES)
    )
    return all(_is_doubtful(text, *place, stop_words) for place in places)


def _is_doubtful(text: str, start: int, end: int, stop_words: Container[str]) -> bool:
    if text[start:end].isupper():
        return in_capitals(text, start, end, stop_words)
    before = text[max(start - AROUND, 0) : start]
    words = _LONGER.findall(f"{before} {text[end : end + AROUND]}")
    if sum(map(str.istitle, words)) > len(words) / 2:
        return True
    gap = _GAP.search(before)
    return not (gap and gap.start()) or _ENDS_SENTENCE.search(gap[0]) is not None


def in_capitals(text: str, start: int, end: int, stop_words: Container[str]) -> bool:
    """Return whether the text around a name is in capitals, its stop words too.

    A list of symbols in capitals has none.
    """
    around = f"{text[max(start - AROUND, 0) : start]} {text[end : end + AROUND]}"
    words = _WORDS.findall(around)
    upper = [word for word in words if word.isupper()]
    within = (word for word in _WITHIN.findall(around) if word != text[start:end])
    is_prose = any(word.isupper() and word.lower() in stop_words for word in within)
    return is_prose and len(upper) > len(words) / 2


def ends_a_firm(text: str, start: int, end: int, stop_words: Container[str]) -> bool:
    """Return whether a stretch is a legal form at the end of a firm's name.

    "ASA" in "Wolfsgrund Bank ASA" is one; behind a word in lower case or a stop word it is a name.
    """
    if not is_legal_form(text[start:end]):
        return False
    before = _CAPITALIZED.search(text, max(start - AROUND, 0), start)
    return before is not None and before[1].lower() not in stop_words
