"""Entities from tables: CSV and TSV with a header, and columns of any names."""

import csv
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional

from ...formats import entity_formats
from ...io import PathLike, line_error, read_lines
from ..entity import Entity
from .fields import FIELDS, LISTS, RecordReader, fields_of
from .jsonl import check_new, entity_of, problem_of
from .lines import at_line
from .report import ImportReport

# The default limit is too small for long descriptions.
csv.field_size_limit(1 << 30)


@entity_formats("table")
def read_table(
    path: PathLike,
    report: Optional[ImportReport] = None,
    *,
    columns: Optional[Mapping[str, str]] = None,
    separator: str = "|",
    delimiter: str = "",
) -> Iterator[Entity]:
    """Yield the entities of a CSV or TSV file whose first line names its columns.

    Raises ValueError with file, line and problem at an invalid line.

    path: The file.
    report: Not used: no line is left out.
    columns: From field to column. Fields are "id", "title", "description", "aliases", "types" and
        "frequency"; by default a column has the name of its field, or a usual other one, such as
        "name" and "synonyms". Other columns go to ``meta``.
    separator: Separates aliases and types.
    delimiter: Separates columns; by default a tab in .tsv files, otherwise a comma.
    """
    delimiter = delimiter or ("\t" if Path(path).suffix.lower() in (".tsv", ".tab") else ",")
    lines = _Lines(path)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header = _next(rows, lines)
    if header is None:
        raise line_error(path, 1, "the file is empty. The first line must name the columns.")
    header = [name.strip() for name in header]
    fields = _fields(header, columns or {}, path)
    lines_of: Dict[str, int] = {}
    reader = RecordReader()
    while True:
        first = lines.number + 1
        row = _next(rows, lines)
        if row is None:
            reader.warn()
            return
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            problem = f"expected {len(header)} columns as in the first line, got {len(row)}."
            raise line_error(path, first, problem)
        record = _record(dict(zip(header, row)), fields, separator)
        problem = record.pop("problem", "") or problem_of(record)
        if problem:
            raise line_error(path, first, problem)
        check_new(record["id"], first, lines_of, path)
        reader.note(record, record["meta"])
        with at_line(path, first):
            entity = entity_of(record)
        yield entity


class _Lines:
    """The lines of a file for the csv module.

    path: The file.
    number: The number of lines read so far.
    """

    def __init__(self, path: PathLike):
        self.path, self.number = path, 0

    def __iter__(self) -> Iterator[str]:
        for number, line in read_lines(self.path):
            self.number = number
            yield line + "\n"


def _next(rows: Iterator[List[str]], lines: _Lines) -> Optional[List[str]]:
    try:
        return next(rows, None)
    except csv.Error as error:
        raise line_error(lines.path, lines.number, f"no valid table: {error}.") from None


def _fields(header: List[str], columns: Mapping[str, str], path: PathLike) -> Dict[str, str]:
    """From column to field; ValueError where a field or a column does not exist."""
    unknown = [field for field in columns if field not in FIELDS or field == "meta"]
    if unknown:
        raise ValueError(f"There is no field {unknown[0]!r}. Fields: {', '.join(FIELDS[:-1])}.")
    column_of = {field: column for column, field in fields_of(header).items() if field != "meta"}
    column_of = {"id": "id", **column_of, **columns}
    missing = [column for column in column_of.values() if column not in header]
    if missing:
        problem = f"there is no column {missing[0]!r}. Columns: {', '.join(header)}."
        raise line_error(path, 1, problem)
    return {column: field for field, column in column_of.items()}


def _record(row: Mapping[str, str], fields: Mapping[str, str], separator: str) -> Dict:
    record: Dict = {"meta": {}}
    for column, cell in row.items():
        cell, field = cell.strip(), fields.get(column)
        if field is None:
            if cell:
                record["meta"][column] = cell
        elif field in LISTS:
            parts = (part.strip() for part in cell.split(separator))
            record[field] = [part for part in parts if part]
        elif field == "frequency":
            try:
                record[field] = float(cell or 0)
            except ValueError:
                record["problem"] = f"{column!r} must be a number (got {cell!r:.40})."
        else:
            record[field] = cell
    return record
