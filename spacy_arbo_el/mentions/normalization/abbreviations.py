"""Abbreviations that a document defines: "coronary heart disease (CHD)".

A mention "CHD" says little by itself, and its definition may lie outside the text that is encoded.
Written out, it is encoded as its long form.

The definitions are found after Schwartz & Hearst (2003), "A simple algorithm for identifying
abbreviation definitions in biomedical text", with a stricter limit on the length of a long form,
and these additions:

- Initials in another order: "myotonic dystrophy (DM)".
- Plurals: "ventricular septal defects (VSDs)" defines VSD too.
- Parts: "hyperparathyroidism-jaw tumor syndrome (HPT-JT)" defines HPT and JT.

Definitions may be turned round or written otherwise: "CHD (coronary heart disease)", "coronary
heart disease [CHD]", "coronary heart disease, or CHD", and "CHD: coronary heart disease" in a list.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from spacy.util import registry

from .text import inside_of, replace

_IN_BRACKETS = re.compile(r"\(([^()]+)\)|\[([^\[\]()]+)\]")
# What stands before the brackets of "CHD (coronary heart disease)", and the other ways to define.
_BEFORE = re.compile(r"(?<![\w-])(\w(?:[\w/-]{0,8}\w))\s?\Z")
_OR = re.compile(r"(?<!\s),?\s+or\s+(?:the\s+)?(\w(?:[\w/-]{0,8}\w))(?![\w-])")
_LISTED = re.compile(
    r"(?:\A|[\n;,.(])[^\S\n]*(\w(?:[\w/-]{0,8}\w))\s?[:=]\s([^\n;,.:()]+)"
)
_SHORT_FORM = re.compile(r"\w(?:[\w/-]{0,8}\w)")
_NUMBER = re.compile(r"\d*(?!\w)")
_PARTS = re.compile(r"[-/]")
_WORD = re.compile(r"\w+")
_BREAK = re.compile(r"[.;:()]\s")
# Characters before the brackets in which a long form is searched.
MAX_DISTANCE = 250


@registry.misc("spacy-arbo-el.ExpandAbbreviations.v1")
@dataclass(frozen=True)
class ExpandAbbreviations:
    """Write out the abbreviations in mentions that their document defines.

    A mention in which one is defined is read without it: "von Hippel-Lindau (VHL) disease".

    Use it for scientific text, where abbreviations are defined and then used::

        [components.arbo_linker.mentions.normalizer]
        @misc = "spacy-arbo-el.ExpandAbbreviations.v1"
    """

    def __call__(self, text: str, offsets: np.ndarray) -> tuple[str, np.ndarray]:
        long_forms = find_abbreviations(text) if len(offsets) else {}
        if not long_forms:
            return text, offsets
        inside = inside_of(text, offsets)
        edits = []
        for start, end, has_number in occurrences(text, long_forms):
            is_definition = (
                start > 2 and text[start - 2 : start] + text[end : end + 1] == " ()"
            )
            if is_definition and inside[start - 3 : end + 1].all():
                edits.append((start - 2, end + 1, ""))
            elif inside[start:end].all():
                long_form = long_forms[text[start:end]]
                edits.append((start, end, long_form + (" " if has_number else "")))
        return replace(text, offsets, edits)


def occurrences(text: str, shorts: Collection[str]) -> Iterator[tuple[int, int, bool]]:
    """Places of abbreviations, with a mark for following numbers.

    Not by one regular expression of all abbreviations: it would try each at each word, which takes
    the square of the length of a text that defines many.
    """
    first = "".join(map(re.escape, sorted({short[0] for short in shorts})))
    # Longest first, so that "A-T" is not read as "A".
    lengths = sorted({len(short) for short in shorts}, reverse=True)
    past = 0
    for match in re.finditer(rf"(?<![\w-])[{first}]", text):
        start = match.start()
        for length in lengths if start >= past else ():
            end = min(start + length, len(text))
            # A number may follow: "MEN1" is a kind of the "MEN" that is defined.
            if text[start:end] in shorts and (number := _NUMBER.match(text, end)):
                yield start, end, bool(number.group())
                past = end
                break


def find_abbreviations(text: str) -> dict[str, str]:
    """Find abbreviations and the long forms that the text defines them by, as {short: long}.

    Of several definitions of one abbreviation the first counts. What only follows from the
    definition of another abbreviation, such as that of a part, never replaces a definition.
    """
    defined: dict[str, str] = {}
    implied: dict[str, str] = {}
    for short, find in _possible_definitions(text):
        is_short = _SHORT_FORM.fullmatch(short) and _capitals(short)
        if short in defined or not is_short:
            continue
        long_form = find()
        if long_form is not None:
            defined[short] = long_form.text
            for implied_short, implied_form in _implied(short, long_form.text):
                implied.setdefault(implied_short, implied_form)
    return {**implied, **defined}


def _capitals(short: str) -> int:
    return sum(map(str.isupper, short))


# What may be a short form, and a function that finds its long form.
Possible = tuple[str, Callable[[], "_LongForm | None"]]


def _possible_definitions(text: str) -> Iterator[Possible]:
    """Possible definitions, one kind after the other."""
    for match in _IN_BRACKETS.finditer(text):
        content = match[1] or match[2]
        start = match.start()
        first = re.split(r"[,;]", content)[0].strip()
        # In square brackets are concentrations too, such as [Na].
        if match[1] or _capitals(first) > 1:
            yield first, partial(_long_form, first, _before(text, start))
        before = _BEFORE.search(text, max(start - 12, 0), start)
        if before:
            yield before[1], partial(_long_form_of_all, before[1], first)
    for match in _OR.finditer(text):
        short = match[1]
        if _capitals(short) > 1:
            yield (
                short,
                partial(_long_form_by_initials, short, _before(text, match.start())),
            )
    for match in _LISTED.finditer(text):
        yield (
            match[1],
            partial(_long_form_of_all, match[1], match[2].strip(), more_words=0),
        )


def _before(text: str, end: int) -> str:
    return _BREAK.split(text[max(end - MAX_DISTANCE, 0) : end].rstrip())[-1]


def _long_form_of_all(
    short: str, words: str, more_words: int = 2
) -> "_LongForm | None":
    """Words as a long form: all, or the first with the initials.

    more_words: How many more words than characters all of them may be.
    """
    characters = _characters(short)
    matches = list(_WORD.finditer(words))
    if min(len(matches), len(characters)) < 2 or short.lower() in words.lower():
        return None
    if [match[0][0].lower() for match in matches[: len(characters)]] == characters:
        end = matches[len(characters) - 1].end()
        return _LongForm(words[:end], end)
    long_form = _by_characters(short, characters, words)
    is_all = long_form is not None and long_form.text == words
    return (
        long_form if is_all and len(matches) <= len(characters) + more_words else None
    )


class _LongForm(NamedTuple):
    """A long form.

    end: The end of the word in it that the last character of the short form is in.
    """

    text: str
    end: int


def _long_form(short: str, before: str) -> _LongForm | None:
    """The long form at the end of ``before``, with all characters of the short form in order."""
    characters = _characters(short)
    initials, by_words = _last_words(before, len(characters))
    # The initials of exactly as many words go before anything shorter: "attenuated adenomatous
    # polyposis coli (AAPC)".
    if len(characters) > 1 and initials == characters:
        return by_words
    # Initials in another order come last: "myotonic dystrophy (DM)".
    reordered = len(characters) > 1 and sorted(initials) == sorted(characters)
    return _by_characters(short, characters, before) or (
        by_words if reordered else None
    )


def _long_form_by_initials(short: str, before: str) -> _LongForm | None:
    characters = _characters(short)
    initials, by_words = _last_words(before, len(characters))
    return by_words if len(characters) > 1 and initials == characters else None


def _characters(short: str) -> list[str]:
    return [c.lower() for c in short if c.isalnum()]


def _last_words(before: str, count: int) -> tuple[list[str], _LongForm | None]:
    """The initials of the last words, and these words as a long form."""
    starts = [match.start() for match in _WORD.finditer(before)][-count:]
    words = _LongForm(before[starts[0] :], len(before) - starts[0]) if starts else None
    return [before[at].lower() for at in starts], words


def _by_characters(short: str, characters: list[str], before: str) -> _LongForm | None:
    """Match characters in order (Schwartz & Hearst). The first of them at a word's start."""
    at = last = len(before)
    for i in range(len(characters) - 1, -1, -1):
        at -= 1
        while at >= 0 and (
            before[at].lower() != characters[i]
            or (
                i == 0
                and at > 0
                and (before[at - 1].isalnum() or before[at - 1] == "-")
            )
        ):
            at -= 1
        if at < 0:
            return None
        last = at if i == len(characters) - 1 else last
    long_form = before[at:]
    words = long_form.split()
    if len(words) > len(characters) + 2 or len(long_form) <= len(short):
        return None
    if short.lower() in (word.lower() for word in words):
        return None
    word_end = re.match(r"\w*", before[last:])
    return _LongForm(long_form, last - at + (word_end.end() if word_end else 0))


def _implied(short: str, long_form: str) -> Iterator[tuple[str, str]]:
    """Other abbreviations that a definition defines: the singular, and parts."""
    if len(short) > 2 and short[-1] == "s" and short[:-1].isupper():
        yield short[:-1], long_form
    short_parts = _PARTS.split(short)
    long_parts = _PARTS.split(long_form)
    if len(short_parts) == 1 or len(short_parts) != len(long_parts):
        return
    matches = [
        _long_form(short_part, long)
        for short_part, long in zip(short_parts, long_parts)
    ]
    for short_part, match, long in zip(short_parts, matches, long_parts):
        # All words of a part belong to it up to the one with its last character, not those behind.
        if len(short_part) > 1 and match is not None and match.text == long:
            yield short_part, long[: match.end]
