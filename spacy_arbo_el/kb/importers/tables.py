"""Entities from tables: CSV, TSV and dictionaries, with columns of any names."""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from ...storage.cells import uncell
from ...storage.formats import certainty
from ...storage.lines import (
    OnBad,
    PathLike,
    count_preamble,
    ignore,
    line_error,
    plain_name,
    read_cells,
    read_lines,
    throw,
)
from ...storage.tabs import read_tab_cells
from ..entity import Entity, is_frequency
from ..layout import Layout
from .common import ImportReport, Record, RecordReader, at_line, entity_of
from .fields import ALT_IDS, FIELDS, NAMES, fields_of

# What separates columns, where the name of the file does not say it: the most frequent one.
DELIMITERS = (",", ";", "|")
# Dictionaries with this delimiter have no header.
OF_DICTIONARIES = "||"
# Columns of ids that lead to an entity.
FURTHER_IDS = (ALT_IDS, "alt_id", "other_ids", "further_ids", "equivalent_ids")
# What Excel has in a line before the header.
EXCEL = re.compile(r"sep=([,;|\t])")


@dataclasses.dataclass(frozen=True)
class TableReader:
    """Reads entities of CSV, TSV or ``id||name`` files.

    An entity may have a row per name. The first one is its title, the others are aliases. Such
    entities come last.

    In a dictionary, "|" separates further ids and names: ``id|other id||name|synonym``. In a table,
    the column "alt_ids" has ids that lead to the entity.

    Raises ValueError with file, line and problem at an invalid line.

    columns: From field to column, or to several, whose names are joined. Fields are "id", "title",
        "description", "aliases", "types" and "frequency"; by default a column has the name of its
        field, or a usual other one, such as "name" and "synonyms". Other columns go to ``meta``.
    xrefs: Columns of ids in other vocabularies that lead to the entity too.
    where: From column to the value that rows must have there, or to several.
    header: The names of the columns where the first line does not have them.
    separator: Separates aliases and types.
    delimiter: Separates columns; by default what the name of the file or its first line says.
    encoding: That of the file.
    skip_bad: Whether invalid lines are counted and left out.
    """

    columns: Mapping[str, str | Sequence[str]] = dataclasses.field(default_factory=dict)
    where: Mapping[str, str | Sequence[str]] = dataclasses.field(default_factory=dict)
    header: Sequence[str] = ()
    xrefs: tuple[str, ...] = ()
    separator: str = "|"
    delimiter: str = ""
    encoding: str = "utf8"
    skip_bad: bool = False

    @staticmethod
    def sniff(name: str, start: bytes) -> float:
        """Know files by their name."""
        return certainty(name, start, (".csv", ".tsv", ".tab", ".txt"))

    def read(self, path: PathLike, report: ImportReport | None = None) -> Iterator[Entity]:
        """Yield the entities.

        report: Gets the further ids of a dictionary, and how many rows were left out.
        """
        report = report or ImportReport()
        bad = report.on_bad(self.skip_bad)
        where = _lists(self.where)
        table = _TableFile(path, self.delimiter, self.encoding, list(self.header), where)
        with at_line(path, table.line):
            fields = _fields(table.header, _lists(self.columns))
            _check_columns({"xrefs": self.xrefs}, table.header)
        report.note_columns(table.header, fields)
        columns = {name: ALT_IDS for name in table.header if name.lower() in FURTHER_IDS}
        columns = {**report.layout.columns, **columns}
        report.layout = Layout(columns, self.separator, table.delimiter)
        reader = RecordReader(path, bad, self.separator, fields)
        several = _repeated(table, fields)
        merged: dict[str, tuple[int, Record]] = {}

        def read(number: int, row: list[str]) -> Record | None:
            record = _record(table, fields, reader, row, report)
            id_ = record[0]["id"]
            for column in self.xrefs:
                ids = [item.strip() for item in record[1].get(column, "").split(self.separator)]
                local_ids = [item.rpartition(":")[2] for item in ids]
                report.note_xrefs(filter(None, (*ids, *local_ids)), id_)
            if id_ not in several:
                return record
            entity_of(record)
            _merge(*merged.setdefault(id_, (number, record)), record)
            return None

        yield from (entity for _, entity in reader.entities(table.rows(bad, report), read))
        yield from (reader.entity(record) for _, record in merged.values())
        reader.warn()


class _TableFile:
    """The rows of a file.

    where: The values that rows have in some columns.
    """

    def __init__(
        self,
        path: PathLike,
        delimiter: str,
        encoding: str,
        header: list[str],
        where: dict[str, list[str]],
    ):
        self.path = path
        self.encoding = encoding
        self.width = len(header) or None
        self.delimiter = delimiter
        self._skip = count_preamble(self._lines(ignore), self._delimiter_of, len(header))
        if self._skip < 0:
            raise line_error(path, 1, "the file is empty. The first line must name the columns.")
        if not header and self.delimiter == OF_DICTIONARIES:
            header = ["id", "title"]
        self._first = int(not header)
        self.line = 1
        if not header:
            self.line, names = next(self._split(throw), (1, []))
            header = [name.strip() for name in names]
            header[:1] = [name.lstrip("# ") for name in header[:1]]
        self.header = header
        self.width = len(header)
        with at_line(path, self.line):
            _check_columns({column: [column] for column in where}, header)
        self._where = {header.index(column): values for column, values in where.items()}

    def rows(
        self, bad: OnBad, report: ImportReport | None = None
    ) -> Iterator[tuple[int, list[str]]]:
        """Nonempty rows behind the header: (line, cells). report: Counts rows that are left out."""
        for number, row in islice(self._split(bad), self._first, None):
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(self.header):
                count = len(self.header)
                problem = f"expected {count} columns as in the first line, got {len(row)}."
                bad(line_error(self.path, number, problem))
                continue
            wrong = (c for c, values in self._where.items() if row[c].strip() not in values)
            column = next(wrong, None)
            if column is None:
                yield number, row
            elif report is not None:
                report.skip(f"another value in {self.header[column]!r}")

    def _lines(self, bad: OnBad) -> Iterator[tuple[int, str]]:
        """The lines, without what Excel has before them."""
        for number, line in read_lines(self.path, bad, encoding=self.encoding):
            if number == 1 and (named := EXCEL.fullmatch(line)):
                self.delimiter = self.delimiter or named[1]
                line = ""
            yield number, line

    def _split(self, bad: OnBad) -> Iterator[tuple[int, list[str]]]:
        if self.delimiter == "\t":
            return read_tab_cells(self.path, bad, self.encoding, self.width, self._skip)
        if len(self.delimiter) == 1:
            return read_cells(self.path, self.delimiter, bad, self.encoding, self._skip)
        lines = (line for line in self._lines(bad) if line[0] > self._skip)
        return ((number, line.split(self.delimiter)) for number, line in lines)

    def _delimiter_of(self, line: str) -> str:
        """What separates columns, by the first line of the table unless it is known."""
        if not self.delimiter and plain_name(self.path).endswith((".tsv", ".tab")):
            self.delimiter = "\t"
        sure = (delimiter for delimiter in (OF_DICTIONARIES, "\t") if delimiter in line)
        self.delimiter = self.delimiter or next(sure, "") or max(DELIMITERS, key=line.count)
        return self.delimiter


def _repeated(table: _TableFile, fields: Mapping[str, Sequence[int]]) -> set[str]:
    seen: set[str] = set()
    repeated: set[str] = set()
    for _, row in table.rows(ignore):
        id_ = row[fields["id"][0]].partition("|")[0].strip()
        (repeated if id_ in seen else seen).add(id_)
    return repeated


def _record(
    table: _TableFile,
    places: Mapping[str, Sequence[int]],
    reader: RecordReader,
    row: list[str],
    report: ImportReport,
) -> Record:
    fields, extra = reader.read(tuple(table.header), [uncell(cell.strip()) for cell in row])
    if "frequency" in fields:
        column = table.header[places["frequency"][0]]
        fields["frequency"] = _frequency(fields["frequency"], column)
    if table.delimiter == OF_DICTIONARIES:
        fields["id"], *further = map(str.strip, fields["id"].split("|"))
        report.redirect(further, fields["id"])
        title, *names = map(str.strip, fields["title"].split("|"))
        fields.update(title=title, aliases=[*fields.get("aliases", ()), *names])
    for column in [column for column in extra if column.lower() in FURTHER_IDS]:
        ids = map(str.strip, extra.pop(column).split(reader.separator))
        report.redirect(ids, fields["id"])
    return fields, {column: cell for column, cell in extra.items() if cell}


def _merge(line: int, first: Record, further: Record) -> None:
    """Add another row of an entity, whose first is in a line. ValueError for two descriptions."""
    if first is further:
        return
    (merged, merged_extra), (record, extra) = first, further
    description = merged.get("description", "")
    further_description = record.get("description", "")
    if description and further_description and description != further_description:
        raise ValueError(
            f"the entity id {record['id']!r} was used before, in line {line}, with another "
            "description. Merge the two entries, or give one of them another id."
        )
    merged["description"] = description or further_description
    names = [merged.get("title", ""), *merged.get("aliases", ())]
    names += [record.get("title", ""), *record.get("aliases", ())]
    title, *aliases = dict.fromkeys(name for name in names if name) or [""]
    merged.update(title=title, aliases=aliases)
    merged["types"] = list(dict.fromkeys([*merged.get("types", ()), *record.get("types", ())]))
    merged["frequency"] = max(merged.get("frequency", 0.0), record.get("frequency", 0.0))
    for column, cell in extra.items():
        merged_extra.setdefault(column, cell)


def _lists(values: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    """Values as lists: those of options that may be given once or several times."""
    return {
        key: [value] if isinstance(value, str) else list(value) for key, value in values.items()
    }


def _fields(header: list[str], columns: Mapping[str, list[str]]) -> dict[str, list[int]]:
    """Map fields to the places of their columns. ValueError where one does not exist."""
    unknown = [field for field in columns if field not in FIELDS or field == "meta"]
    if unknown:
        raise ValueError(f"There is no field {unknown[0]!r}. Fields: {', '.join(FIELDS[:-1])}.")
    single = [field for field in ("id", "frequency") if len(columns.get(field, ())) > 1]
    if single:
        raise ValueError(f"{single[0]!r} is one column. Only names, types and texts are joined.")
    _check_columns(columns, header)
    # A column that was given to one field is in no other.
    taken = {name for names in columns.values() for name in names}
    fields = fields_of(["" if name in taken else name for name in header])
    fields.pop("meta", None)
    for field, names in columns.items():
        places = [header.index(name) for name in names]
        fields[field] = places[:1] if field == "title" else places
        if field == "title":
            fields[NAMES] = places[1:]
    if "id" not in fields:
        _check_columns({"id": ["id"]}, header)
    return fields


def _check_columns(columns: Mapping[str, Sequence[str]], header: list[str]) -> None:
    """Raise ValueError for a column, of a field or of rows, that does not exist."""
    pairs = [(field, name) for field, names in columns.items() for name in names]
    for field, name in pairs:
        if name not in header:
            problem = (
                f"there is no column {name!r}. Columns: {', '.join(header)}. Say which it is: "
                f"--column {field}=…; where no line names columns: --header NAMES."
            )
            raise ValueError(problem)


def _frequency(cell: str, column: str) -> float:
    with suppress(ValueError):
        frequency = float(cell or 0)
        if is_frequency(frequency):
            return frequency
    raise ValueError(f"{column!r} must be a number from 0 up (got {cell!r:.40}).")
