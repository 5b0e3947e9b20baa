"""Abbreviations that a document explains: "coronary heart disease (CHD)".

A mention "CHD" says little by itself, and the explanation may lie outside its window. Written out,
it is read as the long form is. After Schwartz & Hearst (2003), "A simple algorithm for identifying
abbreviation definitions in biomedical text", with a stricter limit on the long form's length.
"""

import re
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np
from spacy.util import registry

# (text, offsets (n, 2) of its mentions) -> the text to read instead, and their offsets there
Rewrite = Callable[[str, np.ndarray], Tuple[str, np.ndarray]]

_IN_BRACKETS = re.compile(r"\(([^()]+)\)")
_SHORT_FORM = re.compile(r"\w(?:[\w/-]{0,8}\w)")
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
        inside = np.zeros(len(text) + 1, dtype=np.int64)
        np.add.at(inside, offsets[:, 0], 1)
        np.add.at(inside, offsets[:, 1], -1)
        inside = np.cumsum(inside)
        edits = [
            (*m.span(1), long_forms[m.group(1)] + (" " if m.group(2) else ""))
            for m in pattern.finditer(text)
            if inside[m.start(1) : m.end(1)].all()
        ]
        return replace(text, offsets, edits)

    return expand


def replace(
    text: str, offsets: np.ndarray, edits: List[Tuple[int, int, str]]
) -> Tuple[str, np.ndarray]:
    """Replace stretches of a text and move offsets (n, 2) along.

    edits: (start, end, new) in order, not overlapping. An offset inside a stretch moves to
        the near side of what replaces it: a start to its start, an end to its end.
    """
    parts, at = [], 0
    for start, end, new in edits:
        parts += [text[at:start], new]
        at = end
    starts = np.array([start for start, _, _ in edits], dtype=np.int64)
    ends = np.array([end for _, end, _ in edits], dtype=np.int64)
    grown = np.array([len(new) for _, _, new in edits], dtype=np.int64) - (ends - starts)
    before = np.concatenate([[0], np.cumsum(grown)])
    moved = offsets.copy()
    for column in (0, 1):
        position = offsets[:, column]
        done = np.searchsorted(ends, position, side="right")
        within = np.searchsorted(starts, position, side="left") > done
        if column == 0:
            moved[:, 0] = np.where(within, np.append(starts, 0)[done], position) + before[done]
        else:
            end = np.append(ends, 0)[done] + np.append(grown, 0)[done]
            moved[:, 1] = np.where(within, end, position) + before[done]
    return "".join([*parts, text[at:]]), moved


def find_abbreviations(text: str) -> Dict[str, str]:
    """The abbreviations that a text explains as "long form (SHORT)", {short: long}.

    Where one is explained twice the first explanation stands.
    """
    found: Dict[str, str] = {}
    for match in _IN_BRACKETS.finditer(text):
        short = re.split(r"[,;]", match.group(1))[0].strip()
        if not _SHORT_FORM.fullmatch(short) or not any(c.isupper() for c in short):
            continue
        if short not in found:
            before = text[max(match.start() - LONGEST, 0) : match.start()].rstrip()
            long_form = _long_form(short, _BREAK.split(before)[-1])
            if long_form is not None:
                found[short] = long_form
    return found


def _long_form(short: str, before: str) -> Optional[str]:
    """The end of ``before`` that the short form's letters lead through, from right to left."""
    letters = [c.lower() for c in short if c.isalnum()]
    # Where they are the first letters of just so many words, nothing shorter will do: "attenuated
    # adenomatous polyposis coli (AAPC)".
    starts = [match.start() for match in _WORD.finditer(before)][-len(letters) :]
    if len(letters) > 1 and [before[at].lower() for at in starts] == letters:
        return before[starts[0] :]
    at = len(before)
    for i in range(len(letters) - 1, -1, -1):
        at -= 1
        # The first letter must begin a word.
        while at >= 0 and (
            before[at].lower() != letters[i]
            or (i == 0 and at > 0 and (before[at - 1].isalnum() or before[at - 1] == "-"))
        ):
            at -= 1
        if at < 0:
            return None
    long_form = before[at:]
    words = long_form.split()
    if len(words) > len(letters) + 2 or len(long_form) <= len(short):
        return None
    return None if short.lower() in (word.lower() for word in words) else long_form
