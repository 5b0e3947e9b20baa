"""Entities as tables, in the columns of the list that they came from."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from spacy.util import minibatch

from ..base.errors import Errors
from ..base.extras import import_pyarrow
from ..records.cells import cell
from ..records.fields import ALT_IDS, FIELDS, LISTS, NAMES
from ..storage.files import replacing
from .entity import Entity
from .importers.jsonl import entity_lines
from .knowledge_base import ArboKB
from .layout import Layout

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
# The columns of a list that had none; "frequency" and ``ALT_IDS`` where some entity has them.
DEFAULT = ("id", "title", "aliases", "description", "types")
TEXTS = ("id", "title", "description")
# The column that says which rows are new or changed.
MARK = "changed"
# Rows of Parquet that are written at a time.
BATCH = 2000

Row = dict[str, Any]


def write_list(kb: ArboKB, path: Path, is_marked: bool = False) -> int:
    """Write a knowledge base as CSV, TSV, JSONL or Parquet, as the file's name says.

    Tables have the columns of the first import, in their order and with their names, and further
    ones for what these lack. JSONL has the fields of entities.

    is_marked: Whether a column says which entities are new, or have changed, since that import.
    RETURNS: The number of entities.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise Errors.E835(path=path, suffixes=", ".join(SUFFIXES))
    with kb.guard.reading(), replacing(path) as file:
        if suffix == ".jsonl":
            marks = _marks(kb) if is_marked else {}
            for (position, _), line in zip(kb.entities.items(), entity_lines(kb)):
                if position in marks:
                    record = {**json.loads(line), MARK: marks[position]}
                    line = json.dumps(record, ensure_ascii=False)
                file.write(line.encode("utf8") + b"\n")
        elif suffix == ".parquet":
            _write_parquet(kb, file, is_marked)
        else:
            write_csv(kb, file, is_marked, "\t" if suffix == ".tsv" else "")
    return len(kb)


def write_csv(
    kb: ArboKB, file: BinaryIO, is_marked: bool, delimiter: str = ""
) -> None:
    """Write a knowledge base as CSV. delimiter: By default that of the first import."""
    layout = _complete_layout(kb, is_marked)
    text = io.TextIOWrapper(file, encoding="utf8", newline="", write_through=True)
    rows = csv.writer(
        text, delimiter=delimiter or layout.delimiter, lineterminator="\n"
    )
    rows.writerow(layout.columns)
    for row, mark in _rows(kb, layout):
        cells = (_text(value, layout.separator) for value in row.values())
        # A list comes back as it came; what was added since then may come from a stranger's text.
        rows.writerow(map(_harmless, cells) if mark else cells)
    text.detach()


def _write_parquet(kb: ArboKB, file: BinaryIO, is_marked: bool) -> None:
    pyarrow = import_pyarrow()
    layout = _complete_layout(kb, is_marked)
    kinds = dict.fromkeys((*LISTS, ALT_IDS), pyarrow.list_(pyarrow.string()))
    kinds["frequency"] = pyarrow.float64()
    fields = [
        (name, kinds.get(kind, pyarrow.string()))
        for name, kind in layout.columns.items()
    ]
    rows = (row for row, _ in _rows(kb, layout))
    with pyarrow.parquet.ParquetWriter(file, pyarrow.schema(fields)) as writer:
        for batch in minibatch(rows, BATCH):
            writer.write_table(pyarrow.Table.from_pylist(batch, writer.schema))


def _rows(kb: ArboKB, layout: Layout) -> Iterator[tuple[Row, str]]:
    """The values of each entity by column, and "new", "changed" or ""."""
    further = kb.entities.further_ids()
    marks = _marks(kb)
    for position, entity in kb.entities.items():
        mark = marks.get(position, "")
        yield _row(entity, layout, further.get(entity.id, []), mark), mark


def _marks(kb: ArboKB) -> dict[int, str]:
    """The positions of entities that are new or have changed since the first import."""
    generation, count = (kb.database.get(key) for key in ("imported", "listed"))
    if not isinstance(generation, int) or not isinstance(count, int):
        return {}
    changed = kb.entities.changed_since(generation)
    return {position: "changed" if position < count else "new" for position in changed}


def _complete_layout(kb: ArboKB, is_marked: bool) -> Layout:
    """The columns of the first import, and those that its entities need besides."""
    layout = Layout.from_json(kb.database.get("layout"))
    present: set[str] = set(TEXTS[:2])
    keys: dict[str, None] = {}
    for entity in kb.entities:
        present.update(entity.to_dict())
        # What discovery notes of a new entity belongs to it, not to the list.
        if is_marked or "discovered_as" not in entity.meta:
            keys.update(dict.fromkeys(map(str, entity.meta)))
    if kb.entities.redirects():
        present.add(ALT_IDS)
    columns = dict(layout.columns) or {name: name for name in DEFAULT}
    columns = {name: kind for name, kind in columns.items() if kind != "meta"}
    for kind in (*FIELDS[:-1], ALT_IDS):
        if kind in present and kind not in columns.values():
            columns[_free(kind, columns)] = kind
    columns.update({key: "" for key in keys if key not in columns})
    if is_marked:
        columns[_free(MARK, columns)] = MARK
    return replace(layout, columns=columns)


def _free(name: str, columns: Mapping[str, str]) -> str:
    """A name that no column has."""
    if name in columns:
        return _free(f"{name}_", columns)
    return name


def _row(entity: Entity, layout: Layout, alt_ids: Sequence[str], mark: str) -> Row:
    """The values of an entity by column. Of several columns of a field the first one has them."""
    aliases = iter(entity.aliases)
    titles = [name for name, kind in layout.columns.items() if kind == NAMES]
    row: Row = dict(zip(titles, aliases))
    values: dict[str, Any] = {kind: getattr(entity, kind) for kind in TEXTS}
    values |= {
        "aliases": list(aliases),
        "types": list(entity.types),
        ALT_IDS: alt_ids,
        MARK: mark,
    }
    values["frequency"] = entity.frequency or None
    for name, kind in layout.columns.items():
        if kind:
            row.setdefault(name, values.pop(kind, None))
        else:
            value = entity.meta.get(name)
            is_plain = value is None or isinstance(value, str)
            row[name] = value if is_plain else json.dumps(value, ensure_ascii=False)
    return {name: row[name] for name in layout.columns}


def _text(value: Any, separator: str) -> str:
    """A value as a cell that ``TableReader`` reads as that value."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, str):
        return value
    # A list as Python prints it is read as one.
    if any(separator in item for item in value):
        return str(value)
    return separator.join(value)


def _harmless(text: str) -> Any:
    try:
        float(text)
        return text
    except ValueError:
        return cell(text)
