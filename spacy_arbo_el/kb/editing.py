"""Edits of the entities in SQLite. Each call is one transaction, or part of the surrounding one."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from ..base.errors import ArboError, Errors
from ..storage.lines import is_storable
from .database import IN
from .entity import Entity
from .store import BATCH, COLUMNS, EntityStore, row_of

T = TypeVar("T")


class DuplicateId(ArboError):
    """An id that is taken.

    entity_id: The id.
    where: Where it occurs, to be added to the message.
    """

    def __init__(self, entity_id: str, where: str = ""):
        super().__init__(Errors.E002.format(id=entity_id, where=where))
        self.id = entity_id


class EntityEditor:
    """Adds, updates, removes and merges entities.

    store: The entities.
    """

    def __init__(self, store: EntityStore):
        self.store, self.database = store, store.database

    def add(self, entities: Iterable[Entity]) -> int:
        """Add entities, all or none. ValueError where an id is taken. RETURNS: How many."""
        return self._in_batches(entities, self._add)

    def update(self, entities: Iterable[Entity]) -> int:
        """Replace the entities with the same ids, all or none. KeyError if there is none.

        RETURNS: How many.
        """
        return self._in_batches(entities, self._update)

    def upsert(self, entities: Iterable[Entity]) -> int:
        """Update existing entities and add the others, all or none.

        RETURNS: How many there were.

        Raises DuplicateId where an id that no entity had occurs twice.
        """
        return self._in_batches(entities, partial(self._upsert, self.store.positions))

    def remove(self, ids: Iterable[str]) -> int:
        """Remove entities, all or none. KeyError if an id is unknown.

        An id that leads to another entity is removed alone; the entity stays.
        RETURNS: How many.
        """
        return self._in_batches(ids, self._remove)

    def merge(self, old: str, new: str, entity: Entity) -> None:
        """Replace two entities by one.

        old: Id that leads to ``new`` from now on.
        new: Id that stays.
        entity: What replaces them; its id is ``new``.
        """
        with self.database.transaction():
            redirects = self.database.rows("SELECT old FROM redirect WHERE new = ?", (old,))
            self.remove([old])
            self.update([entity])
            self.database.many(
                "INSERT OR REPLACE INTO redirect VALUES (?, ?)",
                [(name, new) for (name,) in [*redirects, (old,)]],
            )

    def redirect(self, redirects: Mapping[str, str]) -> int:
        """Let other ids lead to entities, all or none. RETURNS: How many.

        ValueError where an id is an entity's own, or where there is no entity to lead to.
        """
        with self.database.transaction():
            for old, new in redirects.items():
                if not is_storable(old):
                    raise ArboError(Errors.E037.format(id=new, value=old))
                position = self.store.position(new)
                if position < 0:
                    problem = "there is no such entity"
                    raise ArboError(Errors.E023.format(old=old, new=new, problem=problem))
                if self._existing([old]):
                    problem = f"{old!r} is an entity itself"
                    raise ArboError(Errors.E023.format(old=old, new=new, problem=problem))
                self.database.many(
                    "INSERT OR REPLACE INTO redirect SELECT ?, id FROM entity WHERE position = ?",
                    [(old, position)],
                )
        return len(redirects)

    def _in_batches(self, items: Iterable[T], edit: Callable[[list[T]], Any]) -> int:
        items, count = iter(items), 0
        first = list(islice(items, BATCH))
        with self.database.transaction():
            for batch in chain([first], iter(lambda: list(islice(items, BATCH)), [])):
                edit(batch)
                count += len(batch)
        return count

    def _existing(self, ids: list[str]) -> set[str]:
        """Existing ids that are an entity's own."""
        rows = self.database.rows_among(f"SELECT id FROM entity WHERE id {IN}", ids)
        return {entity_id for (entity_id,) in rows}

    def _add(self, batch: list[Entity]) -> None:
        ids = [entity.id for entity in batch]
        taken = self._existing(ids)
        for entity_id in ids:
            if entity_id in taken:
                raise DuplicateId(entity_id)
            taken.add(entity_id)
        self._check_redirects(ids)
        start, count = self.store.positions, len(self.store)
        self._write(start, batch)
        self._note(range(start, start + len(batch)))
        self.database.set(positions=start + len(batch), entities=count + len(batch))

    def _check_redirects(self, ids: list[str]) -> None:
        statement = f"SELECT old, new FROM redirect WHERE old {IN} LIMIT 1"
        rows = self.database.rows_among(statement, ids)
        if rows:
            raise ArboError(Errors.E016.format(old=rows[0][0], new=rows[0][1]))

    def _update(self, batch: list[Entity]) -> None:
        # Of several entities with the same id the last one counts.
        latest = {entity.id: entity for entity in batch}
        positions = []
        for entity_id in latest:
            position = self.database.value("SELECT position FROM entity WHERE id = ?", (entity_id,))
            if position is None:
                raise KeyError(Errors.E003.format(id=entity_id))
            positions.append(position)
        self._note(positions)
        self._delete_names(positions)
        for position, entity in zip(positions, latest.values()):
            self._write(position, [entity])

    def _upsert(self, first_new: int, batch: list[Entity]) -> None:
        """Update or add a batch of entities. first_new: Entities at this position and later ones
        were added by earlier batches.
        """
        ids = [entity.id for entity in batch]
        for (entity_id,) in self.database.rows(
            f"SELECT id FROM entity WHERE position >= ? AND id {IN} LIMIT 1",
            (first_new, json.dumps(ids)),
        ):
            raise DuplicateId(entity_id)
        existing = self._existing(ids)
        self._add([entity for entity in batch if entity.id not in existing])
        self._update([entity for entity in batch if entity.id in existing])

    def _remove(self, batch: list[str]) -> None:
        ids = list(dict.fromkeys(batch))
        existing = self._existing(ids)
        for entity_id in ids:
            if entity_id not in existing:
                self.store.require(entity_id)
        redirects = [(entity_id,) for entity_id in ids if entity_id not in existing]
        self.database.many("DELETE FROM redirect WHERE old = ?", redirects)
        positions = [self.store.require(entity_id) for entity_id in ids if entity_id in existing]
        self._note(positions)
        self._delete_names(positions)
        rows = [(position,) for position in positions]
        self.database.many(
            "DELETE FROM redirect WHERE new = (SELECT id FROM entity WHERE position = ?)", rows
        )
        self.database.many("DELETE FROM entity WHERE position = ?", rows)
        self.database.set(entities=len(self.store) - len(rows))

    def _note(self, positions: Iterable[int]) -> None:
        """Note that entities are added, changed or removed by the present edit."""
        positions = list(positions)
        self.store.changes.add(positions)
        generation = self.database.get("generation") + 1
        self.database.many(
            "INSERT OR REPLACE INTO changed VALUES (?, ?)",
            ((position, generation) for position in positions),
        )

    def _delete_names(self, positions: Sequence[int]) -> None:
        rows = [(position,) for position in positions]
        for statement in (
            "INSERT INTO trigram (trigram, rowid, folded) "
            "SELECT 'delete', number, folded FROM name WHERE position = ?",
            "DELETE FROM name WHERE position = ?",
            "DELETE FROM type WHERE position = ?",
        ):
            self.database.many(statement, rows)

    def _write(self, start: int, batch: Sequence[Entity]) -> None:
        """Write entities to the positions from ``start`` on."""
        self.database.many(
            f"INSERT OR REPLACE INTO entity ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?)",
            (row_of(start + i, entity) for i, entity in enumerate(batch)),
        )
        self.database.many(
            "INSERT INTO type VALUES (?, ?)",
            (
                (name, start + i)
                for i, entity in enumerate(batch)
                for name in dict.fromkeys(entity.types or ("",))
            ),
        )
        number = (self.database.value("SELECT max(number) FROM name") or 0) + 1
        folded = [
            (start + i, name)
            for i, entity in enumerate(batch)
            for name in dict.fromkeys(name.casefold() for name in entity.names)
        ]
        self.database.many(
            "INSERT INTO name VALUES (?, ?, ?)",
            ((number + i, *pair) for i, pair in enumerate(folded)),
        )
        self.database.many(
            "INSERT INTO trigram (rowid, folded) VALUES (?, ?)",
            ((number + i, name) for i, (_, name) in enumerate(folded)),
        )
