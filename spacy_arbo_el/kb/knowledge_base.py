"""The knowledge base. Entities that can be edited, in memory or in a folder.

``ArboKB`` delegates: ``folder.py`` has the database and its folder, ``store.py`` the entities in
it, and ``vectors.py`` their vectors.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import srsly
from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Span
from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab

from ..base.display import counted
from ..records.lines import is_storable
from .database import Database
from .entity import Entity
from .folder import (
    SourceFolder,
    Storage,
    check_complete,
    check_new,
    find,
    lock,
    open_source,
    remove_leftovers,
    unpack_kb,
)
from .importers.common import ImportReport, Records, entities_from
from .lookup import same_name, similar_names
from .store import EntityStore
from .vectors import Encode, EntityVectors, VectorRows
from .verbalizations import Verbalization


class ArboKB(KnowledgeBase):
    """A spaCy knowledge base whose vectors come from an encoder.

    It is in memory or in a folder. ``from_disk`` opens a folder for reading, and changes then stay
    in memory until ``to_disk``. ``open`` opens one for writing, and each change is in the folder
    when the call returns, or not at all. Entities are in SQLite and vectors in a mapped file, so
    that a large folder opens at once.

    Entities can be added, updated, merged and removed at any time. An edit of one or many entities
    is made in full or not at all, and returns their number. ``encode_missing`` then encodes the
    texts that are new, and only these. ``reload_if_changed`` reads what another program has written
    to the folder. The linker that owns the knowledge base calls both before it links.

    spaCy's own methods work as usual: ``get_candidates`` finds entities by alias (whatever the
    case), ``get_vector`` gives the vector of an entity's first text.

    vocab: The pipeline's vocabulary.
    entities: Entities to begin with.
    dtype: Type of the vectors, "float32" or "float16" (half the size).
    """

    vocab: Vocab

    def __init__(
        self, vocab: Vocab, entities: Records = (), *, dtype: str = "float32"
    ):
        super().__init__(vocab, 0)
        self.storage = Storage(dtype)
        # Linking has this lock as a reader, and edits as writers.
        self.guard = self.storage.guard
        self.vectors = EntityVectors(self.storage)
        self.add(entities)

    @classmethod
    def open(cls, path: str | Path, vocab: Vocab | None = None) -> "ArboKB":
        """Open a folder for writing. It is open in a ``with`` statement or until ``close``.

        ValueError where another program has it open for writing.
        """
        path = find(Path(path))
        check_complete(path)
        kb = cls(Vocab() if vocab is None else vocab)
        folder_lock = lock(path)
        try:
            kb._use(*open_source(path, folder_lock))
            remove_leftovers(path)
            return kb
        except BaseException:
            kb.close()
            folder_lock.release()
            raise

    @classmethod
    def for_reading(cls, path: str | Path) -> "ArboKB":
        """Open a folder for reading, with a new vocabulary."""
        return cls(Vocab()).from_disk(path)

    @classmethod
    def create(
        cls,
        path: str | Path,
        vocab: Vocab | None = None,
        *,
        dtype: str = "float32",
        overwrite: bool = False,
    ) -> "ArboKB":
        """Create an empty knowledge base's folder, open for writing.

        ValueError where there is a knowledge base, or a folder of something else.

        dtype: Type of the vectors, "float32" or "float16".
        overwrite: Whether a knowledge base that is there is replaced, with all its entities.
        """
        check_new(Path(path), overwrite=overwrite)
        cls(Vocab(), dtype=dtype).to_disk(path)
        return cls.open(path, vocab)

    def close(self) -> None:
        """Close the folder. All changes are in it already."""
        self.storage.close()

    def __enter__(self) -> "ArboKB":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # State

    @property
    def database(self) -> Database:
        """The SQLite database."""
        return self.storage.database

    @property
    def entities(self) -> EntityStore:
        """The entities, to look them up."""
        return self.storage.entities

    @property
    def rows(self) -> VectorRows:
        """The vectors of the entities' texts."""
        return self.vectors.rows

    @property
    def edits(self) -> int:
        """A number that grows with every change."""
        return self.storage.edits

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the vectors' encoder; "" if none."""
        return self.vectors.fingerprint

    @property
    def in_sync(self) -> bool:
        """Return whether every entity's vectors are up to date."""
        return self.vectors.in_sync

    # Entities

    def __len__(self) -> int:
        return len(self.entities)

    def __contains__(self, entity_id: str) -> bool:
        return entity_id in self.entities

    def __iter__(self) -> Iterator[Entity]:
        return iter(self.entities)

    def __repr__(self) -> str:
        path = self.storage.folder
        where = "in memory" if path is None else f"from {str(path)!r}"
        try:
            state = (
                "encoded" if self.fingerprint and self.in_sync else "not encoded yet"
            )
            return (
                f"ArboKB({counted(len(self), 'entity', 'entities')}, {where}, {state})"
            )
        except (ValueError, OSError):
            return f"ArboKB({where}, closed)"

    def is_empty(self) -> bool:
        return len(self) == 0

    def __getitem__(self, entity_id: str) -> Entity:
        return self.get(entity_id)

    def search(self, name: str, count: int = 10) -> list[Entity]:
        """Entities with a similar name, the most similar first. Misspelled names are found too."""
        with self.guard.reading():
            exact = same_name(self.entities, name)[:count]
            similar = similar_names(self.entities, name, count, 0.0)
            places = dict.fromkeys([*exact, *(position for position, _ in similar)])
            entities = self.entities.at_all(places)
            return [entities[position] for position in places][:count]

    def get(self, entity_id: str) -> Entity:
        """Get an entity by its id, or by one that was merged into it; KeyError if there is none."""
        return self.entities.get(entity_id)

    def transaction(self) -> AbstractContextManager[Any]:
        """Group several edits: all are kept or none."""
        return self.storage.editing()

    def add(self, entities: Records) -> int:
        """Add entities or records of them, see ``entities_from``. ValueError for ids in use."""
        return self._edit(EntityStore.add, entities)

    def update(self, entities: Records) -> int:
        """Change the entities with the same ids. KeyError where an id does not exist.

        A dict or a row changes what it gives, such as the aliases, and keeps the rest. An
        ``Entity`` replaces the whole.
        """
        return self._edit(EntityStore.update, entities, changes=True)

    def upsert(self, entities: Records) -> int:
        """Update the entities that exist, see ``update``, and add the others."""
        return self._edit(EntityStore.upsert, entities, changes=True)

    def _edit(
        self,
        edit: Callable[[EntityStore, Iterable[Entity]], int],
        records: Records,
        changes: bool = False,
    ) -> int:
        report = ImportReport()
        # Of two changes of an entity in one call, the second keeps the first.
        changed: dict[str, Entity] = {}

        def known(entity_id: str) -> Entity | None:
            return changed.get(entity_id) or _with_id(store, entity_id)

        def entities() -> Iterator[Entity]:
            for entity in entities_from(records, report, known):
                changed[entity.id] = entity
                yield entity

        with self.storage.editing() as store:
            count = edit(
                store, entities() if changes else entities_from(records, report)
            )
            store.redirect(store.usable(report.redirects))
            store.note_layout(report.layout)
        return count

    def remove(self, ids: str | Iterable[str]) -> int:
        """Remove entities, or ids that lead to others. KeyError where an id does not exist."""
        with self.storage.editing() as store:
            return store.remove([ids] if isinstance(ids, (str, Entity)) else ids)

    def redirect(self, redirects: Mapping[str, str]) -> int:
        """Redirect ids, such as merged ones, to the ids of entities."""
        with self.storage.editing() as store:
            return store.redirect(redirects)

    def merge(self, old: str, new: str) -> Entity:
        """Merge two entities; see ``Entity.merged_with``. ``old`` leads to ``new`` from then on."""
        with self.storage.editing() as store:
            return store.merge(old, new)

    # Vectors

    def encode_missing(
        self,
        verbalize: Verbalization,
        encode: Encode,
        fingerprint: str,
        **options: Any,
    ) -> int:
        """Encode what has no vector of an encoder yet; see ``EntityVectors.encode_missing``."""
        with self.guard.writing():
            return self.vectors.encode_missing(
                verbalize, encode, fingerprint, **options
            )

    # Folders and bytes

    @property
    def has_changed_outside(self) -> bool:
        """Return whether another program has edited the folder."""
        return self.storage.changed_folder() is not None

    def reload_if_changed(self) -> bool:
        """Read the folder again where another program has edited it, and return whether it had.

        It is not followed any more once entities are edited here, or where the whole pipeline was
        replaced that it is in. While it can't be read, the entities stay.
        """
        if not self.has_changed_outside:
            return False
        with self.guard.writing():
            path = self.storage.changed_folder()
            if path is not None:
                self._use(*open_source(path))
            return path is not None

    def to_disk(
        self, path: str | Path, exclude: Iterable[str] = SimpleFrozenList()
    ) -> None:
        """Write a folder in one step. ValueError where it is being edited, or holds other files."""
        with self.guard.reading():
            self.storage.write(Path(path), self.vectors.write)

    def from_disk(
        self, path: str | Path, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "ArboKB":
        """Open a folder that ``to_disk`` wrote, for reading. Changes stay in memory."""
        return self._use(*open_source(find(Path(path))))

    def _use(self, database: Database, source: SourceFolder) -> "ArboKB":
        with self.guard.writing():
            self.storage.use(database, source)
            self.vectors.reloaded()
        return self

    def to_bytes(self, **kwargs: Any) -> bytes:
        with self.guard.reading(), TemporaryDirectory() as place:
            folder = Path(place)
            # Search indexes are built again where they are needed.
            self.storage.write_files(folder, self.vectors.write_rows)
            return srsly.msgpack_dumps(
                {path.name: path.read_bytes() for path in folder.iterdir()}
            )

    def from_bytes(
        self, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "ArboKB":
        with self.guard.writing(), TemporaryDirectory() as place:
            self.storage.use(unpack_kb(bytes_data, Path(place)))
            self.vectors.read(Path(place))
        return self

    # The methods of spaCy's knowledge bases

    @property
    def entity_vector_length(self) -> int:
        return self.rows.width

    def get_vector(self, entity: str) -> np.ndarray:
        """(width,) float32; see ``EntityVectors.of_entity``."""
        self.reload_if_changed()
        return self.vectors.of_entity(entity)

    def get_candidates(self, mention: Span) -> list[Candidate]:
        """Entities that have the mention as a name, in any case, in the order of the KB."""
        return self.get_alias_candidates(mention.text)

    def get_alias_candidates(self, alias: str) -> list[Candidate]:
        """Entities of an alias, with shares of frequencies, and vectors if these are up to date."""
        self.reload_if_changed()
        strings = self.vocab.strings
        named = self._priors(alias)
        vectors = self.vectors.of_positions(list(named))
        return [
            Candidate(
                kb=self,
                entity_hash=strings.add(entity.id),
                entity_freq=entity.frequency,
                entity_vector=vectors[position].tolist()
                if position in vectors
                else [],
                alias_hash=strings.add(alias),
                prior_prob=prior,
            )
            for position, (entity, prior) in named.items()
        ]

    def get_prior_prob(self, entity: str, alias: str) -> float:
        position = self.entities.position(entity)
        return self._priors(alias).get(position, (None, 0.0))[1]

    def _priors(self, alias: str) -> dict[int, tuple[Entity, float]]:
        """Entities with the alias, by position. With their shares of the frequencies."""
        named = self.entities.at_all(self.entities.with_name(alias))
        total = sum(entity.frequency for entity in named.values())
        return {
            position: (entity, entity.frequency / total if total else 1 / len(named))
            for position, entity in sorted(named.items())
        }

    def contains_entity(self, entity: str) -> bool:
        return entity in self.entities

    def contains_alias(self, alias: str) -> bool:
        return bool(self.entities.with_name(alias))

    def get_entity_strings(self) -> list[str]:
        return [entity.id for entity in self.entities]

    def get_alias_strings(self) -> list[str]:
        return list(
            dict.fromkeys(
                name for entity in self.entities for name in entity.names_in_text
            )
        )

    def get_size_entities(self) -> int:
        return len(self.entities)

    def get_size_aliases(self) -> int:
        return self.entities.count_names()


def _with_id(store: EntityStore, entity_id: str) -> Entity | None:
    """The entity with an id; None where no entity has it, or where the id leads to another."""
    position = store.position(entity_id) if is_storable(entity_id) else -1
    entity = store.at(position) if position >= 0 else None
    if entity is not None and entity.id == entity_id:
        return entity
    return None
