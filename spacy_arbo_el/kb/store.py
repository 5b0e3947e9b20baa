"""Entities in SQLite: found by id, position, name or type, and edited in transactions."""

import json
import zlib
from itertools import chain, islice
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, Sequence, Set, Tuple

import numpy as np

from ..errors import Errors
from .database import Database
from .entity import Entity

# Entities read or written at a time.
BATCH = 2000

_COLUMNS = "position, id, title, description, aliases, types, frequency, meta, crc"
_IN = "IN (SELECT value FROM json_each(?))"


class DuplicateId(ValueError):
    """An id that is taken. id: Which."""

    def __init__(self, entity_id: str, where: str = ""):
        super().__init__(Errors.E002.format(id=entity_id, where=where))
        self.id = entity_id


class EntityStore:
    """Entities in order of arrival.

    A position is an entity's own for good: it is not given to another when the entity is removed.
    """

    def __init__(self, database: Database):
        self.database = database

    def __len__(self) -> int:
        return self.database.get("entities") or 0

    @property
    def positions(self) -> int:
        """How many positions have been given; all are below this number."""
        return self.database.get("positions") or 0

    def __iter__(self) -> Iterator[Entity]:
        return (entity for _, entity in self.items())

    def items(self) -> Iterator[Tuple[int, Entity]]:
        """Positions and entities, in order; entities may be edited meanwhile."""
        last = -1
        while True:
            rows = self.database.rows(
                f"SELECT {_COLUMNS} FROM entity WHERE position > ? ORDER BY position LIMIT ?",
                (last, BATCH),
            )
            yield from map(self._read, rows)
            if len(rows) < BATCH:
                return
            last = rows[-1][0]

    def __contains__(self, entity_id: object) -> bool:
        return isinstance(entity_id, str) and self.position(entity_id) >= 0

    # Finding

    def position(self, entity_id: str) -> int:
        """Where the entity stands, -1 where there is none of that id. Redirects are followed."""
        found = self.database.rows("SELECT position FROM entity WHERE id = ?", (entity_id,))
        if not found:
            found = self.database.rows(
                "SELECT position FROM redirect JOIN entity ON id = new WHERE old = ?", (entity_id,)
            )
        return found[0][0] if found else -1

    def positions_of(self, ids: Sequence[str]) -> np.ndarray:
        """(n,) int64, ``position`` of each id."""
        wanted = json.dumps(list(dict.fromkeys(ids)))
        found = dict(
            self.database.rows(
                f"SELECT old, position FROM redirect JOIN entity ON id = new WHERE old {_IN}",
                (wanted,),
            )
        )
        found.update(
            self.database.rows(f"SELECT id, position FROM entity WHERE id {_IN}", (wanted,))
        )
        return np.array([found.get(entity_id, -1) for entity_id in ids], dtype=np.int64)

    def at(self, position: int) -> Entity:
        """The entity at a position; KeyError where there is none."""
        rows = self.database.rows(f"SELECT {_COLUMNS} FROM entity WHERE position = ?", (position,))
        if not rows:
            raise KeyError(Errors.E003.format(id=f"at position {position}"))
        return self._read(rows[0])[1]

    def get(self, entity_id: str) -> Entity:
        """The entity of that id, or of the one it was merged into; KeyError where there is none."""
        return self.at(self.require(entity_id))

    def require(self, entity_id: str) -> int:
        """The position of an id; KeyError where there is none."""
        position = self.position(entity_id)
        if position < 0:
            raise KeyError(Errors.E003.format(id=entity_id))
        return position

    def at_all(self, positions: Iterable[int]) -> Dict[int, Entity]:
        """Entities by position; those that aren't there are left out."""
        found: Dict[int, Entity] = {}
        positions = iter(positions)
        while batch := list(islice(positions, BATCH)):
            found.update(
                map(
                    self._read,
                    self.database.rows(
                        f"SELECT {_COLUMNS} FROM entity WHERE position {_IN}", (json.dumps(batch),)
                    ),
                )
            )
        return found

    def ids_at(self, positions: Sequence[int]) -> Dict[int, str]:
        """Ids by position."""
        wanted = json.dumps(list(positions))
        return dict(
            self.database.rows(f"SELECT position, id FROM entity WHERE position {_IN}", (wanted,))
        )

    def named(self, folded: str) -> List[int]:
        """Positions of the entities that have a name, given case folded; in order."""
        settled = self.database.get("settled") or 0
        found = self.database.rows(
            f"SELECT position FROM name WHERE folded = ? AND number <= {settled} "
            f"UNION SELECT position FROM name WHERE folded = ? AND number > {settled} "
            "ORDER BY position",
            (folded, folded),
        )
        return [position for (position,) in found]

    def of_types(self, types: Iterable[str]) -> np.ndarray:
        """Positions of the entities of any of these types, and of those without a type."""
        found = self.database.rows(
            f"SELECT DISTINCT position FROM type WHERE name {_IN} ORDER BY position",
            (json.dumps([*types, ""]),),
        )
        return np.array([position for (position,) in found], dtype=np.int64)

    def type_counts(self) -> Dict[str, int]:
        """Entities of each type; '' for those without."""
        return dict(
            self.database.rows(
                "SELECT name, count(*) FROM type GROUP BY name ORDER BY count(*) DESC, name"
            )
        )

    def count_names(self) -> int:
        """Different names, whatever the case."""
        return self.database.value("SELECT count(DISTINCT folded) FROM name")

    def redirects(self) -> Dict[str, str]:
        return dict(self.database.rows("SELECT old, new FROM redirect"))

    # Editing: each call is one transaction, or part of the one it is called in

    def add(self, entities: Iterable[Entity]) -> int:
        """Add entities; ValueError where an id is taken, and then none is added."""
        return self._in_batches(entities, self._add)

    def update(self, entities: Iterable[Entity]) -> int:
        """Put entities in the place of those with the same ids; KeyError where there is none."""
        return self._in_batches(entities, self._update)

    def upsert(self, entities: Iterable[Entity]) -> int:
        """Update the entities that are there, add the others."""

        def upsert(batch: List[Entity]) -> None:
            known = self._known([entity.id for entity in batch])
            self._add([entity for entity in batch if entity.id not in known])
            self._update([entity for entity in batch if entity.id in known])

        return self._in_batches(entities, upsert)

    def remove(self, ids: Iterable[str]) -> int:
        """Take entities out; KeyError where there is none of an id, and then none is removed.

        Of an id that leads to another only that is taken out: it leads nowhere any more.
        """

        def remove(batch: List[str]) -> None:
            ids = list(dict.fromkeys(batch))
            own = self._known(ids)
            for entity_id in ids:
                if entity_id not in own:
                    self.require(entity_id)
            leads = [(entity_id,) for entity_id in ids if entity_id not in own]
            self.database.many("DELETE FROM redirect WHERE old = ?", leads)
            positions = [self.require(entity_id) for entity_id in ids if entity_id in own]
            self._forget_names(positions)
            database, rows = self.database, [(position,) for position in positions]
            database.many(
                "DELETE FROM redirect WHERE new = (SELECT id FROM entity WHERE position = ?)", rows
            )
            for table in ("entity", "dirty"):
                database.many(f"DELETE FROM {table} WHERE position = ?", rows)
            self.bury(positions)
            database.set(entities=len(self) - len(rows))

        return self._in_batches(ids, remove)

    def merge(self, old: str, new: str, entity: Entity) -> None:
        """Let ``entity`` take the place of the two ids; ``old`` leads to ``new`` from now on."""
        with self.database.transaction():
            before = self.database.rows("SELECT old FROM redirect WHERE new = ?", (old,))
            self.remove([old])
            self.update([entity])
            self.database.many(
                "INSERT OR REPLACE INTO redirect VALUES (?, ?)",
                [(name, new) for (name,) in [*before, (old,)]],
            )

    def redirect(self, leads: Mapping[str, str]) -> int:
        """Let ids lead to entities; ValueError where an id is an entity's own, or leads nowhere."""
        with self.database.transaction():
            for old, new in leads.items():
                position = self.position(new)
                if position < 0:
                    raise ValueError(Errors.E023.format(old=old, new=new, problem="it isn't there"))
                if self._known([old]):
                    problem = f"{old!r} is an entity itself"
                    raise ValueError(Errors.E023.format(old=old, new=new, problem=problem))
                self.database.many(
                    "INSERT OR REPLACE INTO redirect SELECT ?, id FROM entity WHERE position = ?",
                    [(old, position)],
                )
        return len(leads)

    def bury(self, positions: Sequence[int]) -> None:
        """Let go of the vectors of entities."""
        found = self.database.rows(
            f"SELECT first, count FROM owned WHERE count AND position {_IN}",
            (json.dumps(list(positions)),),
        )
        self.database.many("INSERT INTO dead VALUES (?, ?)", found)
        self.database.many(
            "DELETE FROM text WHERE row >= ? AND row < ? + ?",
            ((first, first, count) for first, count in found),
        )
        self.database.many(
            "DELETE FROM owned WHERE position = ?", ((position,) for position in positions)
        )

    def _in_batches(self, items: Iterable, edit: Callable[[List], None]) -> int:
        items, count = iter(items), 0
        first = list(islice(items, BATCH))
        with self.database.transaction():
            for batch in chain([first], iter(lambda: list(islice(items, BATCH)), [])):
                edit(batch)
                count += len(batch)
        return count

    def _known(self, ids: List[str]) -> Set[str]:
        found = self.database.rows(f"SELECT id FROM entity WHERE id {_IN}", (json.dumps(ids),))
        return {entity_id for (entity_id,) in found}

    def _add(self, batch: List[Entity]) -> None:
        ids = [entity.id for entity in batch]
        taken = self._known(ids)
        for entity_id in ids:
            if entity_id in taken:
                raise DuplicateId(entity_id)
            taken.add(entity_id)
        self._check_redirects(ids)
        start = self.positions
        self._write(start, batch)
        self.database.many(
            "INSERT INTO dirty VALUES (?)", ((start + i,) for i in range(len(batch)))
        )
        self.database.set(positions=start + len(batch), entities=len(self) + len(batch))

    def _check_redirects(self, ids: List[str]) -> None:
        found = self.database.rows(
            f"SELECT old, new FROM redirect WHERE old {_IN} LIMIT 1", (json.dumps(ids),)
        )
        if found:
            raise ValueError(Errors.E016.format(old=found[0][0], new=found[0][1]))

    def _update(self, batch: List[Entity]) -> None:
        # The last of several with the same id counts.
        latest = {entity.id: entity for entity in batch}
        positions = []
        for entity_id in latest:
            found = self.database.value("SELECT position FROM entity WHERE id = ?", (entity_id,))
            if found is None:
                raise KeyError(Errors.E003.format(id=entity_id))
            positions.append(found)
        self._forget_names(positions)
        for position, entity in zip(positions, latest.values()):
            self._write(position, [entity])
        self.database.many(
            "INSERT OR IGNORE INTO dirty VALUES (?)", ((position,) for position in positions)
        )

    def _forget_names(self, positions: Sequence[int]) -> None:
        rows = [(position,) for position in positions]
        for statement in (
            "INSERT INTO trigram (trigram, rowid, folded) "
            "SELECT 'delete', number, folded FROM name WHERE position = ?",
            "DELETE FROM name WHERE position = ?",
            "DELETE FROM type WHERE position = ?",
        ):
            self.database.many(statement, rows)

    def _write(self, start: int, batch: Sequence[Entity]) -> None:
        database = self.database
        database.many(
            f"INSERT OR REPLACE INTO entity ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)",
            (_row(start + i, entity) for i, entity in enumerate(batch)),
        )
        database.many(
            "INSERT INTO type VALUES (?, ?)",
            (
                (kind, start + i)
                for i, entity in enumerate(batch)
                for kind in dict.fromkeys(entity.types or ("",))
            ),
        )
        number = (database.value("SELECT max(number) FROM name") or 0) + 1
        folded = [
            (start + i, name)
            for i, entity in enumerate(batch)
            for name in dict.fromkeys(name.casefold() for name in entity.names)
        ]
        database.many(
            "INSERT INTO name VALUES (?, ?, ?)",
            ((number + i, *pair) for i, pair in enumerate(folded)),
        )
        database.many(
            "INSERT INTO trigram (rowid, folded) VALUES (?, ?)",
            ((number + i, name) for i, (_, name) in enumerate(folded)),
        )

    def _read(self, row: Tuple) -> Tuple[int, Entity]:
        position, id_, title, description, aliases, types, frequency, meta, crc = row
        if crc != checksum(row[:-1]):
            raise ValueError(Errors.E017.format(where=self.database.where, id=id_))
        return position, Entity(
            id_,
            title,
            description,
            tuple(json.loads(aliases)),
            tuple(json.loads(types)),
            frequency,
            json.loads(meta),
        )


def _row(position: int, entity: Entity) -> Tuple:
    row = (
        position,
        entity.id,
        entity.title,
        entity.description,
        json.dumps(entity.aliases, ensure_ascii=False) if entity.aliases else "[]",
        json.dumps(entity.types, ensure_ascii=False) if entity.types else "[]",
        float(entity.frequency),
        json.dumps(dict(entity.meta), ensure_ascii=False) if entity.meta else "{}",
    )
    return (*row, checksum(row))


def checksum(row: Tuple) -> int:
    """Of an entity's columns, so that a damaged one is noticed when it is read."""
    return zlib.crc32("\x1f".join(map(str, row)).encode("utf8", "surrogatepass"))
