"""Abbreviations that a document explains: "coronary heart disease (CHD)".

A mention "CHD" says little by itself, and the explanation may lie outside its window. Written out,
it is read as the long form is. After Schwartz & Hearst (2003), "A simple algorithm for identifying
abbreviation definitions in biomedical text", with a stricter limit on the long form's length and
three additions: first letters in another order ("myotonic dystrophy (DM)"), plurals ("ventricular
septal defects (VSDs)" explains VSD too), and parts ("hyperparathyroidism-jaw tumor syndrome
(HPT-JT)" explains HPT and JT).
"""

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
from spacy.util import registry

from .text import Rewrite, inside_of, replace

_IN_BRACKETS = re.compile(r"\(([^()]+)\)")
_SHORT_FORM = re.compile(r"\w(?:[\w/-]{0,8}\w)")
_PARTS = re.compile(r"[-/]")
_WORD = re.compile(r"\w+")
_BREAK = re.compile(r"[.;:()]\s")
LONGEST = 250


@registry.misc("spacy-arbo-el.ExpandAbbreviations.v1")
def expand_abbreviations() -> Rewrite:
    """Write out the abbreviations in mentions that the document explains.

    RETURNS: Function (text, offsets) -> (text, offsets): mentions (n, 2) by start and end
        character, end exclusive. What stands outside of mentions stays as it is.
    """

    def expand(text: str, offsets: np.ndarray) -> Tuple[str, np.ndarray]:
        long_forms = find_abbreviations(text)
        if not long_forms or not len(offsets):
            return text, offsets
        # Longest first, so that "A-T" is not read as "A".
        shorts = sorted(long_forms, key=len, reverse=True)
        # A number may follow: "MEN1" is of the kind that "MEN" is explained as.
        pattern = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, shorts))})(?=(\d*)(?!\w))")
        inside = inside_of(text, offsets)
        edits = [
            (*m.span(1), long_forms[m.group(1)] + (" " if m.group(2) else ""))
            for m in pattern.finditer(text)
            if inside[m.start(1) : m.end(1)].all()
        ]
        return replace(text, offsets, edits)

    return expand


def find_abbreviations(text: str) -> Dict[str, str]:
    """The abbreviations that a text explains as "long form (SHORT)", {short: long}.

    Where one is explained twice the first explanation stands; what only follows from another's
    explanation, such as a part's, never takes the place of an explanation.
    """
    found: Dict[str, str] = {}
    implied: Dict[str, str] = {}
    for match in _IN_BRACKETS.finditer(text):
        short = re.split(r"[,;]", match.group(1))[0].strip()
        if not _SHORT_FORM.fullmatch(short) or not any(c.isupper() for c in short):
            continue
        if short not in found:
            before = text[max(match.start() - LONGEST, 0) : match.start()].rstrip()
            read = _long_form(short, _BREAK.split(before)[-1])
            if read is not None:
                found[short] = read.text
                for other, long_form in _implied(short, read.text):
                    implied.setdefault(other, long_form)
    return {**implied, **found}


class _LongForm(NamedTuple):
    """A long form, and where the word ends that its short form's last letter lies in."""

    text: str
    end: int


def _long_form(short: str, before: str) -> Optional[_LongForm]:
    """The end of ``before`` that the short form's letters lead through, from right to left."""
    letters = [c.lower() for c in short if c.isalnum()]
    starts = [match.start() for match in _WORD.finditer(before)][-len(letters) :]
    initials = [before[at].lower() for at in starts]
    by_words = _LongForm(before[starts[0] :], len(before) - starts[0]) if starts else None
    # Where they are the first letters of just so many words, nothing shorter will do: "attenuated
    # adenomatous polyposis coli (AAPC)".
    if len(letters) > 1 and initials == letters:
        return by_words
    # First letters in another order come last: "myotonic dystrophy (DM)".
    reordered = len(letters) > 1 and sorted(initials) == sorted(letters)
    return _by_letters(short, letters, before) or (by_words if reordered else None)


def _by_letters(short: str, letters: List[str], before: str) -> Optional[_LongForm]:
    """As Schwartz & Hearst do it: the letters in order, the first of them at a word's start."""
    at = last = len(before)
    for i in range(len(letters) - 1, -1, -1):
        at -= 1
        while at >= 0 and (
            before[at].lower() != letters[i]
            or (i == 0 and at > 0 and (before[at - 1].isalnum() or before[at - 1] == "-"))
        ):
            at -= 1
        if at < 0:
            return None
        last = at if i == len(letters) - 1 else last
    long_form = before[at:]
    words = long_form.split()
    if len(words) > len(letters) + 2 or len(long_form) <= len(short):
        return None
    if short.lower() in (word.lower() for word in words):
        return None
    rest = re.match(r"\w*", before[last:])
    return _LongForm(long_form, last - at + (rest.end() if rest else 0))


def _implied(short: str, long_form: str) -> Iterator[Tuple[str, str]]:
    """Other abbreviations that an explanation explains: the singular, and parts."""
    if len(short) > 2 and short[-1] == "s" and short[:-1].isupper():
        yield short[:-1], long_form
    parts, long_parts = _PARTS.split(short), _PARTS.split(long_form)
    if len(parts) == 1 or len(parts) != len(long_parts):
        return
    read = [_long_form(part, long) for part, long in zip(parts, long_parts)]
    for part, known, long in zip(parts, read, long_parts):
        # All of a part's words belong to it, but what follows its last letter's word need not.
        if len(part) > 1 and known is not None and known.text == long:
            yield part, long[: known.end]
