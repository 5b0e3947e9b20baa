"""Entities from tables. CSV, TSV and dictionaries, with columns of any names."""

import re
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ...formats import entity_formats
from ...storage.lines import OnBad, PathLike, ignore, line_error, read_cells, read_lines, throw
from ..entity import Entity, is_frequency
from .common import (
    FIELDS,
    LISTS,
    ImportReport,
    RecordReader,
    at_line,
    entity_of,
    fields_of,
)

# What separates columns, where the name of the file does not say it: the most frequent one.
DELIMITERS = (",", ";", "|")
# Dictionaries with this delimiter have no header.
OF_DICTIONARIES = "||"
# What Excel has in a line before the header.
EXCEL = re.compile(r"sep=([,;|\t])")


@entity_formats("table")
def read_table(
    path: PathLike,
    report: Optional[ImportReport] = None,
    *,
    columns: Optional[Mapping[str, str]] = None,
    header: Sequence[str] = (),
    separator: str = "|",
    delimiter: str = "",
    encoding: str = "utf8",
    bad: OnBad = throw,
) -> Iterator[Entity]:
    """Yield entities of CSV, TSV or ``id||name`` files.

    An entity may have a row per name. The first one is its title, the others are aliases. Such
    entities come last.

    Raises ValueError with file, line and problem at an invalid line.

    path: The file.
    report: Gets the further ids of a dictionary.
    columns: From field to column. Fields are "id", "title", "description", "aliases", "types" and
        "frequency"; by default a column has the name of its field, or a usual other one, such as
        "name" and "synonyms". Other columns go to ``meta``.
    header: The names of the columns where the first line does not have them.
    separator: Separates aliases and types.
    delimiter: Separates columns; by default what the name of the file or its first line says.
    encoding: That of the file.
    bad: What to do with the error of an invalid line.
    """
    report = report or ImportReport()
    table = _Table(path, delimiter, encoding, list(header))
    fields = _fields(table.header, columns or {}, path)
    reader, several = RecordReader(), _repeated(table.rows(ignore), fields)
    merged: Dict[str, Tuple[int, Dict]] = {}
    for number, row in table.rows(bad):
        try:
            with at_line(path, number):
                record = _record(row, table.header, fields, separator)
                if table.delimiter == OF_DICTIONARIES:
                    record["id"], *others = record["id"].split("|")
                    report.redirect(others, record["id"])
                entity = entity_of(record)
                if record["id"] in several:
                    _merge(*merged.setdefault(record["id"], (number, record)), record)
                    continue
        except ValueError as error:
            bad(error)
            continue
        reader.note(record, record["meta"])
        yield entity
    for _, record in merged.values():
        reader.note(record, record["meta"])
        yield entity_of(record)
    reader.warn()


class _Table:
    """The rows of a file.

    header: The names of the columns.
    """

    def __init__(self, path: PathLike, delimiter: str, encoding: str, header: List[str]):
        self.path, self.encoding = path, encoding
        first = next((line for _, line in self._lines(ignore)), None)
        if first is None:
            raise line_error(path, 1, "the file is empty. The first line must name the columns.")
        named = EXCEL.fullmatch(first)
        self.delimiter = delimiter or (named[1] if named else _delimiter_of(path, first))
        if not header and self.delimiter == OF_DICTIONARIES:
            header = ["id", "title"]
        self._quotes, self._first = len(self.delimiter) == 1, int(named is not None)
        if not header:
            _, names = next(islice(self._split(throw), self._first, None), (1, []))
            header, self._first = [name.strip() for name in names], self._first + 1
        self.header = header
        self._quotes = self._quotes and not self._has_quotes_in_text()

    def _has_quotes_in_text(self) -> bool:
        """Return whether quotes belong to the cells. Then more lines have the right width.

        Where lines end within cells, or cells hold the delimiter, they enclose cells.
        """
        if self.delimiter != "\t" or not any('"' in line for _, line in self._lines(ignore)):
            return False
        widths = []
        for self._quotes in (True, False):
            rows = islice(self._split(ignore), self._first, None)
            widths.append(sum(len(row) == len(self.header) for _, row in rows))
        return widths[1] > widths[0]

    def rows(self, bad: OnBad) -> Iterator[Tuple[int, List[str]]]:
        """Nonempty rows behind the header: (line, cells)."""
        for number, row in islice(self._split(bad), self._first, None):
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(self.header):
                count = len(self.header)
                problem = f"expected {count} columns as in the first line, got {len(row)}."
                bad(line_error(self.path, number, problem))
                continue
            yield number, row

    def _lines(self, bad: OnBad) -> Iterator[Tuple[int, str]]:
        return read_lines(self.path, bad, encoding=self.encoding)

    def _split(self, bad: OnBad) -> Iterator[Tuple[int, List[str]]]:
        """(first line, cells) of each row."""
        if self._quotes:
            return read_cells(self.path, self.delimiter, bad, self.encoding)
        return ((number, line.split(self.delimiter)) for number, line in self._lines(bad))


def _delimiter_of(path: PathLike, line: str) -> str:
    """Detect the column separator from a file's first line."""
    suffix = Path(str(path).removesuffix(".gz")).suffix.lower()
    if suffix in (".tsv", ".tab"):
        return "\t"
    sure = next((one for one in (OF_DICTIONARIES, "\t") if one in line), "")
    return sure or max(DELIMITERS, key=line.count)


def _repeated(rows: Iterator[Tuple[int, List[str]]], fields: Mapping[int, str]) -> Set[str]:
    """The ids that several rows have."""
    place = next(place for place, field in fields.items() if field == "id")
    seen: Set[str] = set()
    repeated: Set[str] = set()
    for _, row in rows:
        id_ = row[place].partition("|")[0].strip()
        (repeated if id_ in seen else seen).add(id_)
    return repeated


def _merge(line: int, known: Dict, record: Dict) -> None:
    """Add another row of an entity. ValueError where its description is another one.

    line: That of the first row.
    """
    if known is record:
        return
    about, other = known.get("description", ""), record.get("description", "")
    if about and other and about != other:
        raise ValueError(
            f"the entity id {record['id']!r} was used before, in line {line}, with another "
            "description. Merge the two entries, or give one of them another id."
        )
    known["description"] = about or other
    names = [known.get("title", ""), *known.get("aliases", ())]
    names += [record.get("title", ""), *record.get("aliases", ())]
    title, *aliases = dict.fromkeys(name for name in names if name) or [""]
    known.update(title=title, aliases=aliases)
    known["types"] = list(dict.fromkeys([*known.get("types", ()), *record.get("types", ())]))
    known["frequency"] = max(known.get("frequency", 0.0), record.get("frequency", 0.0))
    known["meta"] = {**record["meta"], **known["meta"]}


def _fields(header: List[str], columns: Mapping[str, str], path: PathLike) -> Dict[int, str]:
    """Map the place of a column to its field. ValueError where one does not exist."""
    unknown = [field for field in columns if field not in FIELDS or field == "meta"]
    if unknown:
        raise ValueError(f"There is no field {unknown[0]!r}. Fields: {', '.join(FIELDS[:-1])}.")
    column_of = {field: column for column, field in fields_of(header).items() if field != "meta"}
    column_of = {"id": "id", **column_of, **columns}
    missing = [field for field, column in column_of.items() if column not in header]
    if missing:
        problem = (
            f"there is no column {column_of[missing[0]]!r}. Columns: {', '.join(header)}. Say "
            f"which it is: --column {missing[0]}=…; where no line names columns: --header NAMES."
        )
        raise line_error(path, 1, problem)
    return {header.index(column): field for field, column in column_of.items()}


def _record(
    row: List[str], header: List[str], fields: Mapping[int, str], separator: str
) -> Dict[str, Any]:
    record: Dict[str, Any] = {"meta": {}}
    for place, cell in enumerate(map(str.strip, row)):
        field = fields.get(place)
        if field is None:
            if cell:
                record["meta"][header[place]] = cell
        elif field in LISTS:
            parts = (part.strip() for part in cell.split(separator))
            record[field] = [part for part in parts if part]
        elif field == "frequency":
            record[field] = _frequency(cell, header[place])
        else:
            record[field] = cell
    return record


def _frequency(cell: str, column: str) -> float:
    with suppress(ValueError):
        frequency = float(cell or 0)
        if is_frequency(frequency):
            return frequency
    raise ValueError(f"{column!r} must be a number from 0 up (got {cell!r:.40}).")
