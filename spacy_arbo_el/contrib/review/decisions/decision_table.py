"""Tables of decisions on new entities: written, filled in, read and made."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ....base.errors import message_of
from ....corpora.table import read_rows
from ....discovery.entities import NewEntity
from ....discovery.new_entities import NewEntities
from ....records.cells import csv_text, uncell
from ....records.lines import line_error
from ....records.source import Source
from ....storage.files import write_file
from ..errors import ReviewMessages

ACCEPT = "accept"
DECISIONS = (ACCEPT, "reject", "merge", "split")
# For people to judge by, and to fill in.
COLUMNS = ("id", "name", "mentions", "documents", "cohesion", "nearest")
# The columns that people fill in, see `arbo new apply`.
FILLED = ("decision", "kb_id", "title", "description", "types", "into", "members")
DecisionRow = dict[str, str]


def write_decisions(new_entities: NewEntities, path: Path) -> None:
    """Write a table of all new entities without decisions. The largest come first."""
    rows = ((*described(entity), *[""] * len(FILLED)) for entity in new_entities)
    write_file(path, csv_text((*COLUMNS, *FILLED), rows).encode("utf8"))


def described(entity: NewEntity) -> tuple[object, ...]:
    """The values of ``COLUMNS``."""
    nearest = "; ".join(
        f"{n.title} ({n.kb_id}, {n.probability:.2f})" for n in entity.nearest
    )
    return (
        entity.id,
        entity.name,
        len(entity.members),
        entity.documents,
        f"{entity.cohesion:.2f}",
        nearest,
    )


def read_decisions(path: Path) -> Iterator[tuple[int, DecisionRow]]:
    """Read the lines of a table that have a decision, with their numbers.

    Raises ValueError with file and line for a decision that does not exist.
    """
    for number, row in read_rows(Source(path), ("id", "decision")):
        row = {column: uncell(cell).strip() for column, cell in row.items()}
        row["decision"] = row["decision"].lower()
        if not row["decision"]:
            continue
        if row["decision"] not in DECISIONS:
            choices = ", ".join(DECISIONS)
            problem = ReviewMessages.E793.format(
                value=row["decision"], choices=choices
            )
            raise line_error(path, number, problem)
        yield number, row


def apply_all(
    path: Path,
    rows: Sequence[tuple[int, DecisionRow]],
    new_entities: NewEntities,
) -> dict[str, int]:
    """Make decisions in order. Raises ValueError with file and line at the first impossible one.

    RETURNS: The number of decisions of each kind.
    """
    counts: Counter = Counter()
    for number, row in rows:
        try:
            _apply(row, new_entities)
        except (ValueError, KeyError) as error:
            raise line_error(path, number, message_of(error)) from None
        counts[row["decision"]] += 1
    return {name: counts[name] for name in DECISIONS if counts[name]}


def _apply(row: DecisionRow, new_entities: NewEntities) -> None:
    entity = row["id"]
    decision = row["decision"]
    if decision == ACCEPT:
        details: dict[str, Any] = {
            name: row.get(name, "") for name in ("title", "description")
        }
        if row.get("types"):
            details["types"] = row["types"].split("|")
        new_entities.accept(entity, row.get("kb_id") or None, **details)
    elif decision == "reject":
        new_entities.reject(entity)
    elif decision == "merge":
        new_entities.merge(_cell(row, "into"), entity)
    else:
        new_entities.split(entity, _numbers(_cell(row, "members")))


def _cell(row: DecisionRow, column: str) -> str:
    if not row.get(column):
        raise ValueError(f"a {row['decision']} needs the column {column!r}.")
    return row[column]


def _numbers(cell: str) -> list[int]:
    try:
        return [int(number) for number in cell.replace(",", " ").split()]
    except ValueError:
        raise ValueError(
            f"'members' must be numbers of mentions, got {cell!r:.40}."
        ) from None
