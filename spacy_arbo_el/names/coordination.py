"""Coordinations of names that share words: "breast and ovarian cancer"."""

import re
from collections.abc import Iterator, Sequence

# Blanks, from the first of several alone: a search that began at each would take n squared.
_BLANKS = r"(?:(?<!\s)\s+)?"
# What stands between two parts of a coordination, and in an inverted name.
BETWEEN = re.compile(
    rf"(?:-?(?:{_BLANKS},)?{_BLANKS}\b(?:and/or|and|or|und|oder|et|ou|y|o)\s+|{_BLANKS}[,/&]\s*)"
    r"(?:of\s+)?(?:the\s+)?"
)


def parts_of(text: str) -> list[tuple[int, int]]:
    """The places of what a text coordinates."""
    gaps = [match.span() for match in BETWEEN.finditer(text)]
    edges = [0, *(edge for gap in gaps for edge in gap), len(text)]
    return list(zip(edges[::2], edges[1::2]))


def readings_of(parts: Sequence[str]) -> Iterator[list[str]]:
    """The names that the parts of a coordination may be, the most shared words first.

    They share the last words, or else the first.
    """
    *beginnings, last = parts
    first, *endings = parts
    words = last.split()
    for count in range(1, len(words)):
        yield [*(" ".join([part, *words[count:]]) for part in beginnings), last]
    words = first.split()
    for count in range(len(words) - 1, 0, -1):
        yield [first, *(" ".join([*words[:count], part]) for part in endings)]
