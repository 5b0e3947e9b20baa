"""Cells of tables separated by tabs, where a quote may be a part of a name.

A cell in quotes is enclosed by them, whatever other cells have. A quote that is not closed in its
line encloses the lines up to the one that closes it, if these make a row, and are none themselves.
"""

import re
from collections.abc import Iterator

from .lines import OnBad, PathLike, read_lines, throw

_ENCLOSED = re.compile(r'"((?:[^"]|"")*)"')
_CELL = re.compile(r'"(?:[^"]|"")*"(?=\t|\Z)|[^\t]*')
_OPEN = re.compile(r'(?:\A|\t)"(?:[^"]|"")*\Z')
# The most lines of a cell.
MOST_LINES = 1000


def read_tab_cells(
    path: PathLike,
    bad: OnBad = throw,
    encoding: str = "utf8",
    width: int | None = None,
    skip: int = 0,
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of its first line and the cells of each row.

    bad, encoding: See ``read_lines``.
    width: How many cells a row has; None for that of the first one.
    skip: The number of lines before the first row.
    """
    numbered = read_lines(path, bad, encoding=encoding, ends=True)
    lines = (line for line in numbered if line[0] > skip)
    waiting: list[tuple[int, str]] = []
    while waiting or (waiting := list(_next(lines))):
        number, line = waiting.pop(0)
        row = _cells(line)
        if _OPEN.search(_bare(line)):
            count = _lines_of_row(line, waiting, lines, width)
            row = (
                _cells(line + "".join(text for _, text in waiting[:count]))
                if count
                else row
            )
            del waiting[:count]
        width = width or len(row)
        yield number, row


def _next(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    line = next(lines, None)
    if line is not None:
        yield line


def _lines_of_row(
    line: str,
    waiting: list[tuple[int, str]],
    lines: Iterator[tuple[int, str]],
    width: int | None,
) -> int:
    """Count the lines behind that belong to a row with an open quote. They join ``waiting``."""
    for count in range(1, MOST_LINES):
        if len(waiting) < count:
            waiting.extend(_next(lines))
        if len(waiting) < count:
            return 0
        behind = waiting[count - 1][1]
        line += behind
        if '"' in behind and not _OPEN.search(_bare(line)):
            return count if width in (None, len(_cells(line))) else 0
        # Lines that are rows themselves are no part of another.
        if width != 1 and len(behind.split("\t")) == width:
            return 0
    return 0


def _bare(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _cells(line: str) -> list[str]:
    cells = []
    at = 0
    line = _bare(line)
    while at <= len(line):
        match = _CELL.match(line, at)
        assert match is not None, "any text is a cell"
        enclosed = _ENCLOSED.fullmatch(match[0])
        cells.append(enclosed[1].replace('""', '"') if enclosed else match[0])
        at = match.end() + 1
    return cells
