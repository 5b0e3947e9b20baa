"""Headings of libraries and registers: "Family, Given, 1901-1967", and the bare name in them."""

import re
from dataclasses import dataclass

_TIMES = """b d fl ca c r born died active flourished approximately approx circa about century cent
or and between before after bc bce ad ce jan feb mar apr may jun jul aug sep sept oct nov dec
january february march april june july august september october november december
geb gest um jh jahrhundert wirkte né née mort"""
# Words that say when somebody lived, and numbers.
_DATES = re.compile(
    rf"(?:(?:{'|'.join(_TIMES.split())}|\d+(?:st|nd|rd|th)?|[-–?/. ]|\u2020|\*)+)",
    re.IGNORECASE,
)
# At least a year or a century.
_YEAR = re.compile(r"\d{3,4}|\d\d?(?:st|nd|rd|th) cent", re.IGNORECASE)
_RANGE = re.compile(
    r"\d{3,4}\??\s?-|-\s?\d{3,4}|\b(?:b|d|born|died|active|fl|flourished)\b",
    re.IGNORECASE,
)
_AT_END = re.compile(
    r"(.*\S) ((?:ca?\. )?\d{3,4}\??-(?:(?:ca?\. )?\d{3,4}\??)?)", re.IGNORECASE
)
_IN_BRACKETS = re.compile(r"(.*\S) \(([^()]+)\)(.*)")
# Styles that stand behind a name in headings, and before it in texts.
_STYLES = """sir dame lord lady saint st st. dr dr. prof prof. rev rev. count countess baron
baroness earl duke duchess princess prince"""
STYLES = frozenset(_STYLES.split())
_MAY_BE = re.compile(
    rf"[\d(]|, (?:{'|'.join(map(re.escape, sorted(STYLES)))})\b", re.IGNORECASE
)
# What tells somebody from a namesake and belongs to the name.
_SUFFIX = re.compile(r"jr\.?|sr\.?|[ivx]+", re.IGNORECASE)


@dataclass(frozen=True)
class Heading:
    """The parts of a heading.

    bare: The name without dates and styles, in the order of texts and with the family first.
    dated: The name in the order of texts with the years of the dates; "" without a year.
    """

    bare: tuple[str, ...]
    dated: str = ""

    @classmethod
    def of(cls, name: str) -> "Heading | None":
        """The heading that a name is. None without dates, styles or full names.

        "sir" of "marwick, jon, sir" is a style, and "(james tunde)" of "okoro, j. t. (james
        tunde)" has the full names.
        """
        if not _MAY_BE.search(name):
            return None
        name, dates, full = _split(name)
        pieces = [piece.strip() for piece in name.split(",")]
        while len(pieces) > 1 and is_time(pieces[-1]):
            dates = f"{pieces.pop()} {dates}"
        time_at_end = None if dates else _AT_END.fullmatch(pieces[-1])
        if time_at_end:
            pieces[-1], dates = time_at_end.groups()
        styles = []
        while len(pieces) > 2 and pieces[-1].lower() in STYLES:
            styles.append(pieces.pop())
        suffix = (
            f" {pieces.pop()}"
            if len(pieces) == 3 and _SUFFIX.fullmatch(pieces[2])
            else ""
        )
        is_heading = dates or styles or (full and len(pieces) == 2)
        if not is_heading or len(pieces) > 2 or not all(pieces):
            return None
        if len(pieces) == 1:
            # Of a thing with a year, such as a tournament, the year is part of the name.
            if not _RANGE.search(dates):
                return None
            return cls((pieces[0],), _dated(pieces[0], dates))
        family, given_name = pieces
        bare = []
        for first_names in filter(None, (given_name, full)):
            bare += [
                f"{first_names} {family}{suffix}",
                f"{family}, {first_names}{suffix}",
            ]
        bare += [f"{style} {given_name} {family}{suffix}" for style in styles]
        return cls(tuple(bare), _dated(bare[0], dates))


def is_time(text: str) -> bool:
    """Return whether a text says only when somebody lived."""
    return bool(_DATES.fullmatch(text)) and bool(_YEAR.search(text))


def _split(name: str) -> tuple[str, str, str]:
    """A name without its brackets; the dates in them; the full names in them."""
    dates = full = ""
    brackets = _IN_BRACKETS.fullmatch(name)
    if brackets:
        before, inner, after = brackets.groups()
        if is_time(inner):
            name = before + after
            dates = inner
        elif "," in before and (not after or after.startswith(",")):
            name = before + after
            full = inner
    return name, dates, full


def _dated(name: str, dates: str) -> str:
    years = re.findall(r"\d{3,4}", dates)
    return f"{name}, {'-'.join(years)}" if years else ""
