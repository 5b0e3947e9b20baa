"""Tables as numbered rows: CSV, TSV, and dictionaries whose columns are separated by "||"."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from .lines import OnBad, PathLike, ignore, line_error, plain_name, read_lines, throw

# What separates columns, where the name of the file does not say it: the most frequent one.
DELIMITERS = (",", ";", "|")
# Dictionaries with this delimiter have no header.
OF_DICTIONARIES = "||"
# What Excel has in a line before the header.
EXCEL = re.compile(r"sep=([,;|\t])")
# A comment between rows. "#" before a word, as in "#1" or a hash tag, may be a part of a row.
COMMENT = re.compile(r"\s*#(#|\s|$)")
# The default limit is too small for long texts.
csv.field_size_limit(1 << 30)


@dataclass(frozen=True)
class Table:
    """A table in a file.

    header: The names of its columns.
    delimiter: What separates them.
    skip: The number of lines before the first row.
    line: The line that names the columns; 0 where none does.
    """

    path: PathLike
    header: list[str]
    delimiter: str
    encoding: str
    skip: int
    line: int

    def rows(self, bad: OnBad) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of its first line and the cells of each row that is not empty.

        bad: Takes the errors of rows that can't be read, or have another number of cells.
        """
        width = len(self.header)
        rows = _split(self.path, self.delimiter, bad, self.encoding, width, self.skip)
        for number, row in islice(rows, int(self.line > 0), None):
            if not any(cell.strip() for cell in row):
                continue
            if len(row) == width:
                yield number, row
            elif not COMMENT.match(self.delimiter.join(row)):
                problem = (
                    f"expected {width} columns as in the first line, got {len(row)}."
                )
                bad(line_error(self.path, number, problem))


def open_table(
    path: PathLike,
    delimiter: str = "",
    encoding: str = "utf8",
    header: Sequence[str] = (),
) -> Table:
    """Find out how the columns of a table are separated, and their names.

    Empty lines before the table and comments are left out. ValueError where there is no table.

    delimiter: Separates columns; "" for what the name of the file or its first line says.
    header: The names of the columns where the first line does not have them.
    """

    def lines() -> Iterator[tuple[int, str]]:
        nonlocal delimiter
        for number, line in read_lines(path, ignore, encoding=encoding):
            if number == 1 and (excel := EXCEL.fullmatch(line)):
                delimiter = delimiter or excel[1]
                line = ""
            yield number, line

    def delimiter_of(line: str) -> str:
        nonlocal delimiter
        delimiter = delimiter or _delimiter_of(path, line)
        return delimiter

    skip = count_preamble(lines(), delimiter_of, len(header))
    if skip < 0:
        raise line_error(
            path, 1, "the file is empty. The first line must name the columns."
        )
    if not header and delimiter == OF_DICTIONARIES:
        header = ("id", "title")
    if header:
        return Table(path, list(header), delimiter, encoding, skip, 0)
    line, names = next(_split(path, delimiter, throw, encoding, None, skip), (1, [""]))
    names = [names[0].lstrip("# "), *names[1:]]
    return Table(
        path, [name.strip() for name in names], delimiter, encoding, skip, line
    )


def _delimiter_of(path: PathLike, line: str) -> str:
    if plain_name(path).endswith((".tsv", ".tab")):
        return "\t"
    sure = (delimiter for delimiter in (OF_DICTIONARIES, "\t") if delimiter in line)
    return next(sure, "") or max(DELIMITERS, key=line.count)


def _split(
    path: PathLike,
    delimiter: str,
    bad: OnBad,
    encoding: str,
    width: int | None,
    skip: int,
) -> Iterator[tuple[int, list[str]]]:
    if delimiter == "\t":
        return read_tab_cells(path, bad, encoding, width, skip)
    if len(delimiter) == 1:
        return read_cells(path, delimiter, bad, encoding, skip)
    lines = read_lines(path, bad, encoding=encoding)
    return ((number, line.split(delimiter)) for number, line in lines if number > skip)


def count_preamble(
    lines: Iterable[tuple[int, str]],
    delimiter_of: Callable[[str], str],
    width: int = 0,
) -> int:
    """Count empty lines and comments before a table, lines that begin with "#".

    A line with as many cells as the table is none: some tables have a "#" before the first column.
    But a spreadsheet fills comments up with empty cells, and prose has blanks behind commas.

    lines: The numbered lines of the file.
    delimiter_of: What separates the cells of the first line of the table.
    width: The number of cells; 0 for those of the first line that does not begin with "#".
    RETURNS: Their number; -1 for a file without a table.
    """
    comments: list[tuple[int, str]] = []
    for number, line in lines:
        if line.strip() and not line.lstrip(' "').startswith("#"):
            delimiter = delimiter_of(line)
            count = (width or len(line.split(delimiter))) - 1
            rows = (
                start
                for start, text in comments
                if text.count(delimiter) == count > 0
                and all(text.split(delimiter))
                and (f"{delimiter} " in line or f"{delimiter} " not in text)
            )
            return next(rows, number) - 1
        comments.append((number, line))
    # All lines begin with "#".
    for number, line in comments:
        if line.strip():
            delimiter_of(line)
            return number - 1
    return -1


def read_cells(
    path: PathLike,
    delimiter: str,
    bad: OnBad = throw,
    encoding: str = "utf8",
    skip: int = 0,
) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row of CSV, empty rows too, with their first line's number.

    bad, encoding: As in ``read_lines``.
    skip: The number of lines before the first row.
    """
    first = last = 0

    def lines() -> Iterator[str]:
        nonlocal first, last
        # A line break within a cell is a part of it, and so is its carriage return.
        for last, line in read_lines(path, bad, encoding=encoding, ends=True):
            if last > skip:
                first = first or last
                yield line

    rows = csv.reader(lines(), delimiter=delimiter, strict=True)
    while True:
        first = 0
        try:
            row = next(rows, None)
        except csv.Error as error:
            problem = f"no valid table: {error}."
            if "new-line character" in str(error):
                problem = "lines end with a carriage return alone. Save them with line feeds."
            bad(line_error(path, last, problem))
            continue
        if row is None:
            return
        yield first, row


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
    """Yield the number of its first line and the cells of each row of a table separated by tabs.

    A quote may be a part of a name there. A cell in quotes is enclosed by them, whatever other
    cells have. A quote that is not closed in its line encloses the lines up to the one that closes
    it, if these make a row, and are none themselves.

    bad, encoding: See ``read_lines``.
    width: How many cells a row has; None for that of the first one.
    skip: The number of lines before the first row.
    """
    numbered = read_lines(path, bad, encoding=encoding, ends=True)
    lines = (line for line in numbered if line[0] > skip)
    waiting: list[tuple[int, str]] = []
    while waiting or (waiting := list(islice(lines, 1))):
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


def _lines_of_row(
    line: str,
    waiting: list[tuple[int, str]],
    lines: Iterator[tuple[int, str]],
    width: int | None,
) -> int:
    """Count the lines behind that belong to a row with an open quote. They join ``waiting``."""
    for count in range(1, MOST_LINES):
        if len(waiting) < count:
            waiting.extend(islice(lines, 1))
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
