"""Entities from tables: CSV, TSV and dictionaries, with columns of any names."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from ...records.cells import uncell
from ...records.fields import ALT_IDS, FIELDS, NAMES, fields_of
from ...records.formats import certainty
from ...records.lines import OnBad, PathLike, ignore
from ...records.source import Source, at_line
from ...records.tables import OF_DICTIONARIES, Table, open_table
from ..entity import Entity, is_frequency
from ..layout import Layout
from .common import ImportReport, Record, RecordReader, entity_of

# Columns of ids that lead to an entity.
FURTHER_IDS = (ALT_IDS, "alt_id", "other_ids", "further_ids", "equivalent_ids")


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

    columns: Mapping[str, str | Sequence[str]] = dataclasses.field(
        default_factory=dict
    )
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

    def read(self, path: PathLike, report: ImportReport) -> Iterator[Entity]:
        """Yield the entities.

        report: Gets the further ids of a dictionary, and how many rows were left out.
        """
        bad = report.on_bad(self.skip_bad)
        where = _lists(self.where)
        table = open_table(path, self.delimiter, self.encoding, self.header)
        with at_line(path, table.line or 1):
            _check_columns(
                {**{name: [name] for name in where}, "xrefs": self.xrefs}, table.header
            )
            fields = _fields(table.header, _lists(self.columns))
        report.note_columns(table.header, fields)
        columns = {
            name: ALT_IDS for name in table.header if name.lower() in FURTHER_IDS
        }
        columns = {**report.layout.columns, **columns}
        report.layout = Layout(columns, self.separator, table.delimiter)
        reader = RecordReader(self.separator, fields)
        (id_place, *_) = fields["id"]
        rows = _selected(table, where, ignore, ImportReport())
        counts = Counter(row[id_place].partition("|")[0].strip() for _, row in rows)
        merged: dict[str, tuple[int, Record]] = {}

        def read(number: int, row: list[str]) -> Entity | None:
            record = _record(table, fields, reader, row, report)
            id_ = record[0]["id"]
            for column in self.xrefs:
                ids = [
                    item.strip()
                    for item in record[1].get(column, "").split(self.separator)
                ]
                local_ids = [item.rpartition(":")[2] for item in ids]
                report.note_xrefs(filter(None, (*ids, *local_ids)), id_)
            if counts[id_] < 2:
                return reader.entity(record)
            entity_of(record)
            _merge(*merged.setdefault(id_, (number, record)), record)
            return None

        rows = _selected(table, where, bad, report)
        yield from Source(path, bad).read(rows, read)
        yield from (reader.entity(record) for _, record in merged.values())
        reader.warn()


def _selected(
    table: Table, where: Mapping[str, Sequence[str]], bad: OnBad, report: ImportReport
) -> Iterator[tuple[int, list[str]]]:
    """The rows with certain values in certain columns. report: Counts the others."""
    places = {table.header.index(column): values for column, values in where.items()}
    for number, row in table.rows(bad):
        wrong = [
            place
            for place, values in places.items()
            if row[place].strip() not in values
        ]
        if wrong:
            report.skip(f"another value in {table.header[wrong[0]]!r}")
        else:
            yield number, row


def _record(
    table: Table,
    places: Mapping[str, Sequence[int]],
    reader: RecordReader,
    row: list[str],
    report: ImportReport,
) -> Record:
    fields, extra = reader.read(
        tuple(table.header), [uncell(cell.strip()) for cell in row]
    )
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
    merged["types"] = list(
        dict.fromkeys([*merged.get("types", ()), *record.get("types", ())])
    )
    merged["frequency"] = max(
        merged.get("frequency", 0.0), record.get("frequency", 0.0)
    )
    for column, cell in extra.items():
        merged_extra.setdefault(column, cell)


def _lists(values: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    """Values as lists: those of options that may be given once or several times."""
    return {
        key: [value] if isinstance(value, str) else list(value)
        for key, value in values.items()
    }


def _fields(
    header: list[str], columns: Mapping[str, list[str]]
) -> dict[str, list[int]]:
    """Map fields to the places of their columns. ValueError where one does not exist."""
    unknown = [field for field in columns if field not in FIELDS or field == "meta"]
    if unknown:
        raise ValueError(
            f"There is no field {unknown[0]!r}. Fields: {', '.join(FIELDS[:-1])}."
        )
    single = [
        field for field in ("id", "frequency") if len(columns.get(field, ())) > 1
    ]
    if single:
        raise ValueError(
            f"{single[0]!r} is one column. Only names, types and texts are joined."
        )
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
