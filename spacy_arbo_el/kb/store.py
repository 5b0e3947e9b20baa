"""The entities in SQLite: found by id, position, name and type, and edited.

Each edit is one transaction, or part of the surrounding one.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from spacy.util import minibatch

from ..base.arrays import int_array, places_of
from ..base.errors import Errors
from ..names.spellings import OWN, all_spellings, folded
from ..records.lines import is_storable
from .database import IN, Database
from .entity import Entity
from .layout import Layout

T = TypeVar("T")

# The number of entities read or written at a time.
BATCH = 2000

COLUMNS = "position, id, title, description, aliases, types, frequency, meta, crc"

# One row of the table of entities.
EntityRow = tuple[Any, ...]


class EntityStore:
    """Entities in the order in which they were added, found and edited.

    Each entity has a position that stays its own: when it is removed, no other entity gets it.
    """

    def __init__(self, database: Database):
        self.database = database
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
        return int(self.positions_of([entity_id])[0])

    def positions_of(self, ids: Sequence[str]) -> np.ndarray:
        """(n,) int64, ``position`` of each id."""
        by_id = self._found(ids)
        return int_array(
            [by_id.get(entity_id, (-1, entity_id))[0] for entity_id in ids]
        )

    def current_ids(self, ids: Iterable[str]) -> dict[str, str]:
        """Current ids: of the entity, or the id itself."""
        all_ids = list(ids)
        by_id = self._found(all_ids)
        return {
            entity_id: by_id.get(entity_id, (-1, entity_id))[1]
            for entity_id in all_ids
        }

    def _found(self, ids: Iterable[str]) -> dict[str, tuple[int, str]]:
        """Positions and present ids by id, without ids that lead to no entity."""
        distinct = _distinct(ids)
        among = self.database.rows_among
        moved = among(
            f"SELECT old, position, id FROM redirect JOIN entity ON id = new WHERE old {IN}",
            distinct,
        )
        # An id that an entity has is not followed.
        present = among(f"SELECT id, position, id FROM entity WHERE id {IN}", distinct)
        return {
            entity_id: (position, now)
            for entity_id, position, now in (*moved, *present)
        }

    def require(self, entity_id: str) -> int:
        """The position of an id. KeyError where there is no such entity."""
        position = self.position(entity_id)
        if position < 0:
            raise KeyError(Errors.E003.format(id=entity_id))
        return position

    def get(self, entity_id: str) -> Entity:
        """Get an entity by its id, or by one that was merged into it; KeyError if there is none."""
        return self.at(self.require(entity_id))

    def at(self, position: int) -> Entity:
        """The entity at a position; KeyError if there is none."""
        entities = self.at_all([position])
        if not entities:
            raise KeyError(Errors.E003.format(id=f"at position {position}"))
        return entities[position]

    def at_all(self, positions: Iterable[int]) -> dict[int, Entity]:
        """Entities by position; positions without an entity are left out."""
        statement = f"SELECT {COLUMNS} FROM entity WHERE position {IN}"
        entities: dict[int, Entity] = {}
        for batch in minibatch(positions, BATCH):
            entities.update(
                map(self._entity, self.database.rows_among(statement, batch))
            )
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
        distinct = np.unique(positions[positions >= 0])
        missing = [
            position for position in distinct.tolist() if position not in self._ids
        ]
        if missing:
            self._ids.update(self.ids_at(missing))
        ids = [*[self._ids.get(position, "") for position in distinct.tolist()], ""]
        return np.array(ids, dtype=object)[places_of(distinct, positions)]

    def with_name(self, name: str) -> list[int]:
        """Positions of the entities that have a name, in order. Case does not count."""
        return self.with_names([name]).get(name, [])

    def with_names(self, names: Iterable[str]) -> dict[str, list[int]]:
        """Positions of the entities of names in their own spelling, whatever the case, if any."""
        spellings = {name: folded(name) for name in names}
        entities_of = self.with_spellings(spellings.values())
        positions = {
            name: [
                position
                for position, kind in entities_of.get(spelling, ())
                if kind == OWN
            ]
            for name, spelling in spellings.items()
        }
        return {name: places for name, places in positions.items() if places}

    def with_spellings(
        self, spellings: Iterable[str]
    ) -> dict[str, list[tuple[int, int]]]:
        """Entities of folded spellings, as (position, kind of spelling) in order, if any."""
        by_spelling: dict[str, list[tuple[int, int]]] = {}
        for name, position, kind in self.database.rows_among(
            f"SELECT folded, position, min(kind) FROM name WHERE folded {IN} "
            "GROUP BY folded, position ORDER BY position",
            dict.fromkeys(spellings),
        ):
            by_spelling.setdefault(name, []).append((position, kind))
        return by_spelling

    def with_prefix(self, prefix: str, count: int) -> list[int]:
        """Positions of entities by prefix of a name in any spelling, short names first.

        prefix: Not empty.
        """
        prefix = folded(prefix)
        rows = self.database.rows(
            "SELECT position FROM name WHERE folded >= ? AND folded < ? "
            "GROUP BY position ORDER BY min(length(folded)), position LIMIT ?",
            (prefix, prefix + chr(0x10FFFF), count),
        )
        return [position for (position,) in rows]

    def beginning_with(
        self, beginnings: Iterable[str], most: int
    ) -> dict[str, list[int]]:
        """Positions of the entities with a name that begins with these words and has others.

        RETURNS: In order, by the beginning; none where there are more than ``most``.
        """
        names = list(dict.fromkeys(beginnings))
        rows = self.database.rows(
            "SELECT (SELECT json_group_array(position) FROM (SELECT DISTINCT position FROM name "
            "WHERE folded >= words.value || ' ' AND folded < words.value || '!' LIMIT ?)) "
            "FROM json_each(?) AS words ORDER BY words.key",
            (most + 1, json.dumps([folded(name) for name in names])),
        )
        return {
            name: sorted(positions)
            for name, (array,) in zip(names, rows)
            if len(positions := json.loads(array)) <= most
        }

    def of_types(self, types: Iterable[str]) -> np.ndarray:
        """Positions of the entities of any of these types, or without a type: (n,) int64."""
        statement = (
            f"SELECT DISTINCT position FROM type WHERE name {IN} ORDER BY position"
        )
        rows = self.database.rows_among(statement, [*types, ""])
        return int_array([position for (position,) in rows])

    def type_counts(self) -> dict[str, int]:
        """Number of entities per type; '' for those without."""
        return dict(
            self.database.rows(
                "SELECT name, count(*) FROM type GROUP BY name ORDER BY count(*) DESC, name"
            )
        )

    def have_frequencies(self) -> bool:
        """Return whether some entity has a frequency."""
        return bool(
            self.database.rows("SELECT 1 FROM entity WHERE frequency > 0 LIMIT 1")
        )

    def count_names(self) -> int:
        """The number of distinct names in their own spelling, whatever the case."""
        return self.database.value(
            f"SELECT count(DISTINCT folded) FROM name WHERE kind = {OWN}"
        )

    @property
    def generation(self) -> int:
        """The number of edits so far."""
        return self.database.get("generation")

    def changed_since(self, generation: int) -> list[int]:
        """The entities that an edit after that of a number added, changed or removed, in order."""
        statement = (
            "SELECT position FROM changed WHERE generation > ? ORDER BY position"
        )
        return [
            position for (position,) in self.database.rows(statement, (generation,))
        ]

    def redirects(self) -> dict[str, str]:
        """The ids that lead to entities with another id."""
        return dict(self.database.rows("SELECT old, new FROM redirect"))

    def further_ids(self) -> dict[str, list[str]]:
        """The ids that lead to each entity, if any, in order."""
        ids_of: dict[str, list[str]] = {}
        for old, new in sorted(self.redirects().items()):
            ids_of.setdefault(new, []).append(old)
        return ids_of

    def _entity(self, row: EntityRow) -> tuple[int, Entity]:
        position, id_, title, description, aliases, types, frequency, meta, crc = row
        if crc != checksum(row[:-1]):
            raise Errors.E017(where=self.database.where, id=id_)
        try:
            texts = tuple(json.loads(aliases)), tuple(json.loads(types))
            return position, Entity(
                id_, title, description, *texts, frequency, json.loads(meta)
            )
        except (ValueError, TypeError, RecursionError):
            raise Errors.E017(where=self.database.where, id=id_) from None

    # Edits, each of them in a transaction; they return how many entities or ids were given

    def add(self, entities: Iterable[Entity]) -> int:
        """Add entities. ValueError where an id is taken."""
        return self._in_batches(entities, self._add)

    def update(self, entities: Iterable[Entity]) -> int:
        """Replace the entities with the same ids. KeyError if there is none."""
        return self._in_batches(entities, self._update)

    def upsert(self, entities: Iterable[Entity]) -> int:
        """Update existing entities and add the others. ValueError where a new id occurs twice."""
        return self._in_batches(entities, partial(self._upsert, self.positions))

    def remove(self, ids: Iterable[str]) -> int:
        """Remove entities, or ids that lead to others. KeyError if an id is unknown."""
        return self._in_batches(_distinct(ids), self._remove)

    def merge(self, old: str, new: str) -> Entity:
        """Merge two entities; see ``Entity.merged_with``. ``old`` leads to ``new`` from then on."""
        absorbed = self.get(old)
        target = self.get(new)
        if absorbed.id == target.id:
            raise Errors.E021(id=absorbed.id)
        merged = target.merged_with(absorbed)
        moved = self.database.rows(
            "SELECT old FROM redirect WHERE new = ?", (absorbed.id,)
        )
        self.remove([absorbed.id])
        self.update([merged])
        self._redirect((name, target.id) for (name,) in [*moved, (absorbed.id,)])
        return merged

    def redirect(self, redirects: Mapping[str, str]) -> int:
        """Redirect other ids to entities. ValueError for an entity's own id, or no entity."""
        for old, new in redirects.items():
            if not is_storable(old):
                raise Errors.E037(id=new, value=old)
            target = self._found([new])
            problem = ""
            if not target:
                problem = "there is no such entity"
            elif self._own([old]):
                problem = f"{old!r} is an entity itself"
            if problem:
                raise Errors.E023(old=old, new=new, problem=problem)
            self._redirect([(old, target[new][1])])
        return len(redirects)

    def note_layout(self, layout: Layout) -> None:
        """Note the columns of the first import, if this is it."""
        if layout.columns and self.database.get("imported") is None:
            self.database.set(layout=layout.to_json())

    def usable(self, redirects: Mapping[str, str]) -> dict[str, str]:
        """Redirects to entities that exist, from ids that lead nowhere yet."""
        ends = {old: _end(redirects, old) for old in redirects}
        positions = self.positions_of([*ends, *ends.values()])
        is_usable = (positions[: len(ends)] < 0) & (positions[len(ends) :] >= 0)
        return {
            old: end
            for (old, end), use in zip(ends.items(), is_usable.tolist())
            if use
        }

    def _redirect(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.database.many("INSERT OR REPLACE INTO redirect VALUES (?, ?)", pairs)

    def _in_batches(self, items: Iterable[T], edit: Callable[[list[T]], None]) -> int:
        count = 0
        with self.database.transaction():
            for batch in minibatch(items, BATCH):
                edit(batch)
                count += len(batch)
        return count

    def _own(self, ids: Iterable[str]) -> dict[str, int]:
        statement = f"SELECT id, position FROM entity WHERE id {IN}"
        return dict(self.database.rows_among(statement, ids))

    def _add(self, batch: list[Entity]) -> None:
        ids = [entity.id for entity in batch]
        taken = set(self._own(ids))
        for entity_id in ids:
            if entity_id in taken:
                raise Errors.E002(id=entity_id)
            taken.add(entity_id)
        statement = f"SELECT old, new FROM redirect WHERE old {IN} LIMIT 1"
        for old, new in self.database.rows_among(statement, ids):
            raise Errors.E016(old=old, new=new)
        start = self.positions
        end = start + len(batch)
        self._write(range(start, end), batch)
        self.database.set(positions=end, entities=len(self) + len(batch))

    def _update(self, batch: list[Entity]) -> None:
        # Of several entities with the same id the last one counts.
        latest = {entity.id: entity for entity in batch}
        position_of = self._own(latest)
        for entity_id in latest:
            if entity_id not in position_of:
                raise KeyError(Errors.E003.format(id=entity_id))
        positions = [position_of[entity_id] for entity_id in latest]
        self._delete_names(positions)
        self._write(positions, list(latest.values()))

    def _upsert(self, first_new: int, batch: list[Entity]) -> None:
        """Update or add a batch. Entities from ``first_new`` on were added by earlier batches."""
        position_of = self._own([entity.id for entity in batch])
        for entity_id, position in position_of.items():
            if position >= first_new:
                raise Errors.E002(id=entity_id)
        self._add([entity for entity in batch if entity.id not in position_of])
        self._update([entity for entity in batch if entity.id in position_of])

    def _remove(self, batch: list[str]) -> None:
        position_of = self._own(batch)
        missing = [entity_id for entity_id in batch if entity_id not in position_of]
        for entity_id in missing:
            self.require(entity_id)
        among = self.database.rows_among
        among(f"DELETE FROM redirect WHERE old {IN}", missing)
        positions = list(position_of.values())
        self._note(positions)
        self._delete_names(positions)
        among(f"DELETE FROM redirect WHERE new {IN}", position_of)
        among(f"DELETE FROM entity WHERE position {IN}", positions)
        self.database.set(entities=len(self) - len(position_of))

    def _note(self, positions: Sequence[int]) -> None:
        generation = self.generation + 1
        self.database.many(
            "INSERT OR REPLACE INTO changed VALUES (?, ?)",
            ((position, generation) for position in positions),
        )

    def _delete_names(self, positions: Sequence[int]) -> None:
        for statement in (
            "INSERT INTO trigram (trigram, rowid, folded) "
            "SELECT 'delete', number, folded FROM name",
            "DELETE FROM name",
            "DELETE FROM type",
        ):
            self.database.rows_among(f"{statement} WHERE position {IN}", positions)

    def _write(self, positions: Sequence[int], entities: Sequence[Entity]) -> None:
        """Write entities to positions without names and types."""
        many = self.database.many
        self._note(positions)
        many(
            f"INSERT OR REPLACE INTO entity ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)",
            map(row_of, positions, entities),
        )
        many(
            "INSERT INTO type VALUES (?, ?)",
            (
                (name, position)
                for position, entity in zip(positions, entities)
                for name in dict.fromkeys(entity.types or ("",))
            ),
        )
        number = (self.database.value("SELECT max(number) FROM name") or 0) + 1
        spelled = (
            (position, *spelling)
            for position, entity in zip(positions, entities)
            for spelling in all_spellings(entity.names_in_text).items()
        )
        names = [(number + i, *spelling) for i, spelling in enumerate(spelled)]
        many("INSERT INTO name VALUES (?, ?, ?, ?)", names)
        many(
            "INSERT INTO trigram (rowid, folded) VALUES (?, ?)",
            ((number, name) for number, _, name, _ in names),
        )


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


def _end(redirects: Mapping[str, str], old: str) -> str:
    """Resolve an id through replaced terms. These may be replaced by obsolete ones."""
    passed = {old}
    while (new := redirects[old]) in redirects and new not in passed:
        passed.add(new)
        old = new
    return new


def _distinct(ids: Iterable[str]) -> list[str]:
    """The ids, each once. ValueError for an entity in the place of its id."""
    all_ids = list(ids)
    for entity in all_ids:
        if isinstance(entity, Entity):
            raise Errors.E048(id=entity.id)
    return list(dict.fromkeys(all_ids))
