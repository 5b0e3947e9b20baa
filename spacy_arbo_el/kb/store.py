"""Entities in SQLite, found by id, position, name, type. ``editing.py`` changes them."""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ..base.errors import ArboError, Errors
from ..storage.revision import ChangeLog
from .database import IN, Database
from .entity import Entity

# The number of entities read or written at a time.
BATCH = 2000

COLUMNS = "position, id, title, description, aliases, types, frequency, meta, crc"

# One row of the table of entities.
EntityRow = tuple[Any, ...]


class EntityStore:
    """Entities in the order in which they were added.

    Each entity has a position that stays its own: when it is removed, no other entity gets it.

    database: The database that holds them.
    changes: The positions of the entities that were added, changed or removed.
    """

    def __init__(self, database: Database):
        self.database = database
        self.changes = ChangeLog()
        self._ids: dict[int, str] = {}

    def __len__(self) -> int:
        return self.database.get("entities") or 0

    @property
    def positions(self) -> int:
        """Number of assigned positions. All are below this number."""
        return self.database.get("positions") or 0

    def __iter__(self) -> Iterator[Entity]:
        return (entity for _, entity in self.items())

    def items(self) -> Iterator[tuple[int, Entity]]:
        """Positions and entities, in order. Entities may be edited during the iteration."""
        last = -1
        while True:
            rows = self.database.rows(
                f"SELECT {COLUMNS} FROM entity WHERE position > ? ORDER BY position LIMIT ?",
                (last, BATCH),
            )
            yield from map(self._entity, rows)
            if len(rows) < BATCH:
                return
            last = rows[-1][0]

    def __contains__(self, entity_id: object) -> bool:
        return isinstance(entity_id, str) and self.position(entity_id) >= 0

    def position(self, entity_id: str) -> int:
        """Position of an id; -1 without such an entity. Redirects are followed."""
        rows = self.database.rows("SELECT position FROM entity WHERE id = ?", (entity_id,))
        if not rows:
            rows = self.database.rows(
                "SELECT position FROM redirect JOIN entity ON id = new WHERE old = ?", (entity_id,)
            )
        return rows[0][0] if rows else -1

    def positions_of(self, ids: Sequence[str]) -> np.ndarray:
        """(n,) int64, ``position`` of each id."""
        found = self._found(ids)
        return np.array([found.get(one, (-1, one))[0] for one in ids], dtype=np.int64)

    def current_ids(self, ids: Iterable[str]) -> dict[str, str]:
        """Current ids: of the entity, or the id itself."""
        distinct = list(dict.fromkeys(ids))
        found = self._found(distinct)
        return {one: found.get(one, (-1, one))[1] for one in distinct}

    def _found(self, ids: Iterable[str]) -> dict[str, tuple[int, str]]:
        """Positions and present ids by id, without ids that lead to no entity."""
        distinct, among = list(dict.fromkeys(ids)), self.database.rows_among
        moved = among(
            f"SELECT old, position, id FROM redirect JOIN entity ON id = new WHERE old {IN}",
            distinct,
        )
        # An id that an entity has is not followed.
        own = among(f"SELECT id, position, id FROM entity WHERE id {IN}", distinct)
        return {asked: (position, now) for asked, position, now in (*moved, *own)}

    def require(self, entity_id: str) -> int:
        """The position of an id. KeyError where there is no such entity."""
        position = self.position(entity_id)
        if position < 0:
            raise KeyError(Errors.E003.format(id=entity_id))
        return position

    def get(self, entity_id: str) -> Entity:
        """Get an entity by id; KeyError if there is none. An id that was merged into another
        leads to that one.
        """
        return self.at(self.require(entity_id))

    def at(self, position: int) -> Entity:
        """The entity at a position; KeyError if there is none."""
        rows = self.database.rows(f"SELECT {COLUMNS} FROM entity WHERE position = ?", (position,))
        if not rows:
            raise KeyError(Errors.E003.format(id=f"at position {position}"))
        return self._entity(rows[0])[1]

    def at_all(self, positions: Iterable[int]) -> dict[int, Entity]:
        """Entities by position; positions without an entity are left out."""
        statement = f"SELECT {COLUMNS} FROM entity WHERE position {IN}"
        entities: dict[int, Entity] = {}
        positions = iter(positions)
        while batch := list(islice(positions, BATCH)):
            entities.update(map(self._entity, self.database.rows_among(statement, batch)))
        return entities

    def ids_at(self, positions: Sequence[int]) -> dict[int, str]:
        """Ids by position; positions without an entity are left out."""
        statement = f"SELECT position, id FROM entity WHERE position {IN}"
        return dict(self.database.rows_among(statement, positions))

    def titles_at(self, positions: Sequence[int]) -> dict[int, str]:
        """Titles by position; positions without an entity are left out."""
        statement = f"SELECT position, title FROM entity WHERE position {IN}"
        rows = self.database.rows_among(statement, positions)
        # Rows are not verified here: a damaged one may have something else than a text.
        return {position: str(title) for position, title in rows}

    def ids_of(self, positions: np.ndarray) -> np.ndarray:
        """Ids of entities, shaped as ``positions``; "" for -1. Ids are remembered."""
        wanted = np.unique(positions[positions >= 0])
        missing = [position for position in wanted.tolist() if position not in self._ids]
        if missing:
            self._ids.update(self.ids_at(missing))
        ids = [*(self._ids.get(position, "") for position in wanted.tolist()), ""]
        places = np.where(positions >= 0, np.searchsorted(wanted, positions), len(wanted))
        return np.array(ids, dtype=object)[places]

    def with_name(self, folded: str) -> list[int]:
        """Positions of the entities that have a name, in order.

        folded: The name, case folded.
        """
        return self.with_names([folded]).get(folded, [])

    def with_names(self, folded: Sequence[str]) -> dict[str, list[int]]:
        """Positions of the entities with each of some names.

        folded: The names, case folded. Those that no entity has are left out.
        """
        rows = self.database.rows_among(
            f"SELECT DISTINCT folded, position FROM name WHERE folded {IN} ORDER BY position",
            folded,
        )
        positions: dict[str, list[int]] = {}
        for name, position in rows:
            positions.setdefault(name, []).append(position)
        return positions

    def with_prefix(self, prefix: str, count: int) -> list[int]:
        """Positions of entities by name prefix, short names first.

        prefix: Case folded, not empty.
        """
        rows = self.database.rows(
            "SELECT position FROM name WHERE folded >= ? AND folded < ? "
            "GROUP BY position ORDER BY min(length(folded)), position LIMIT ?",
            (prefix, prefix + chr(0x10FFFF), count),
        )
        return [position for (position,) in rows]

    def of_types(self, types: Iterable[str]) -> np.ndarray:
        """Positions of entities with or without a type: (n,) int64. Entities without a type
        count for all types.
        """
        statement = f"SELECT DISTINCT position FROM type WHERE name {IN} ORDER BY position"
        rows = self.database.rows_among(statement, [*types, ""])
        return np.array([position for (position,) in rows], dtype=np.int64)

    def type_counts(self) -> dict[str, int]:
        """Number of entities per type; '' for those without."""
        return dict(
            self.database.rows(
                "SELECT name, count(*) FROM type GROUP BY name ORDER BY count(*) DESC, name"
            )
        )

    def count_names(self) -> int:
        """The number of distinct names, whatever the case."""
        return self.database.value("SELECT count(DISTINCT folded) FROM name")

    def redirects(self) -> dict[str, str]:
        """The ids that lead to entities with another id."""
        return dict(self.database.rows("SELECT old, new FROM redirect"))

    def _entity(self, row: EntityRow) -> tuple[int, Entity]:
        position, id_, title, description, aliases, types, frequency, meta, crc = row
        if crc != checksum(row[:-1]):
            raise ArboError(Errors.E017.format(where=self.database.where, id=id_))
        try:
            texts = tuple(json.loads(aliases)), tuple(json.loads(types))
            return position, Entity(id_, title, description, *texts, frequency, json.loads(meta))
        except (ValueError, TypeError, RecursionError):
            raise ArboError(Errors.E017.format(where=self.database.where, id=id_)) from None


def row_of(position: int, entity: Entity) -> EntityRow:
    """An entity as a row of ``COLUMNS``. ValueError where its ``meta`` can't be written as JSON."""
    row = (
        position,
        entity.id,
        entity.title,
        entity.description,
        json.dumps(entity.aliases, ensure_ascii=False) if entity.aliases else "[]",
        json.dumps(entity.types, ensure_ascii=False) if entity.types else "[]",
        entity.frequency,
        entity.meta_json() if entity.meta else "{}",
    )
    return (*row, checksum(row))


def checksum(row: EntityRow) -> int:
    """Checksum of an entity's other columns. It reveals a damaged row when it is read."""
    return zlib.crc32("\x1f".join(map(str, row)).encode("utf8", "surrogatepass"))
