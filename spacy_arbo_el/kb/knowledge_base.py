"""The knowledge base: entities that can be edited, in memory or in a folder.

``encoded.py`` has its vectors, ``spacy_view.py`` what spaCy's users know of it.
"""

import json
import os
import tempfile
import uuid
import warnings
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    Mapping,
    Optional,
    Tuple,
    Union,
)

import numpy as np
from filelock import FileLock
from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab

from ..errors import Errors, Warnings
from . import folder
from .database import Database
from .encoded import EncodedKB
from .entity import Entity
from .saving import AttachedIndex, dump, restore, write
from .store import EntityStore
from .vectors import VectorRows

# A database up to this size is copied into memory when it is opened for reading.
IN_MEMORY = 1 << 26

Entities = Union[Entity, Iterable[Entity]]


class ArboKB(EncodedKB):
    """A spaCy knowledge base whose vectors come from an encoder.

    It lives in memory, or in a folder: ``from_disk`` opens one for reading, and what is changed
    then stays in memory until ``to_disk``; ``open`` opens one for writing, and each change is in
    the folder when the call returns, or not at all. Entities lie in SQLite, vectors in a mapped
    file, so that a large one opens at once. One that was opened for reading and not changed takes
    in what a writer has changed (``renew``), as the linker has it do before it links.

    Entities are added, updated, merged and removed at any time; ``sync`` then encodes the texts
    that are new, and only these. The linker that owns the knowledge base calls it before it links.

    What spaCy's users know works as they expect: ``get_candidates`` finds entities by alias
    (whatever the case), ``get_vector`` gives the vector of an entity's first text.

    vocab: The pipeline's vocabulary.
    entities: Entities to begin with.
    dtype: "float32", or "float16" for vectors of half the size.

    The attribute ``entities`` is the ``EntityStore``, ``rows`` are the ``VectorRows``; ``layout``
    grows whenever rows get other numbers, ``edits`` whenever anything has changed.
    """

    def __init__(self, vocab: Vocab, entities: Iterable[Entity] = (), *, dtype: str = "float32"):
        super().__init__(vocab, 0)
        self.path: Optional[Path] = None
        self._followed: Optional[Tuple[Path, Any, Any]] = None
        self.layout = self.edits = 0
        self.index: Optional[AttachedIndex] = None
        self._lock: Optional[FileLock] = None
        self._take(Database(), VectorRows(dtype=dtype))
        with self.database.transaction():
            self.database.set(
                format=folder.FORMAT,
                version=folder.VERSION,
                uuid=uuid.uuid4().hex,
                generation=0,
                entities=0,
                positions=0,
                rows=0,
                width=0,
                dtype=dtype,
                files=0,
                encoder="",
                index="",
                settled=0,
            )
            self.entities.add(entities)

    def _take(self, database: Database, rows: VectorRows) -> None:
        self.database, self.rows = database, rows
        self.entities = EntityStore(database)
        self._ids: Dict[int, str] = {}
        self._touched = False
        self.edits += 1

    @classmethod
    def open(cls, path: Union[str, Path], vocab: Optional[Vocab] = None) -> "ArboKB":
        """Open a folder for writing; ValueError where another program has. ``close`` it, or use
        it in a ``with`` statement."""
        path = Path(path).absolute()
        if not path.is_dir():
            raise ValueError(Errors.E010.format(path=path, missing=folder.MANIFEST))
        kb = cls(Vocab() if vocab is None else vocab)
        kb._lock = folder.lock(path)
        try:
            return kb._read_folder(path, writable=True)
        except BaseException:
            kb.close()
            raise

    @classmethod
    def for_reading(cls, path: Union[str, Path]) -> "ArboKB":
        """Open a folder for reading, with a vocabulary of its own."""
        return cls(Vocab()).from_disk(path)

    @classmethod
    def create(
        cls, path: Union[str, Path], vocab: Optional[Vocab] = None, *, dtype: str = "float32"
    ) -> "ArboKB":
        """An empty folder of a knowledge base, opened for writing; an older one is replaced."""
        cls(Vocab(), dtype=dtype).to_disk(path)
        return cls.open(path, vocab)

    def close(self) -> None:
        """Give up the folder; what was changed is in it already."""
        try:
            if self._lock is not None and self.path is not None:
                self._show_manifest(IN_MEMORY)
        finally:
            self.database.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def __enter__(self) -> "ArboKB":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # Entities

    def __len__(self) -> int:
        return len(self.entities)

    def __contains__(self, entity_id: str) -> bool:
        return entity_id in self.entities

    def __iter__(self) -> Iterator[Entity]:
        return iter(self.entities)

    def is_empty(self) -> bool:
        return len(self) == 0

    def get(self, entity_id: str) -> Entity:
        """The entity of that id, or of the one it was merged into; KeyError where there is none."""
        return self.entities.get(entity_id)

    def add(self, entities: Entities) -> int:
        """Add one or many, all or none; ValueError where an id is taken. RETURNS: How many."""
        return self._edit("add", _stream(entities))

    def update(self, entities: Entities) -> int:
        """Put entities in the place of those with the same ids, all or none; KeyError where there
        is none. RETURNS: How many."""
        return self._edit("update", _stream(entities))

    def upsert(self, entities: Entities) -> int:
        """Update what is there and add the rest, all or nothing. RETURNS: How many."""
        return self._edit("upsert", _stream(entities))

    def remove(self, ids: Union[str, Iterable[str]]) -> int:
        """Take entities out, all or none; KeyError where there is none. RETURNS: How many."""
        return self._edit("remove", [ids] if isinstance(ids, str) else ids)

    def redirect(self, leads: Mapping[str, str]) -> int:
        """Let other ids lead to entities, all or none. RETURNS: How many."""
        return self._edit("redirect", leads)

    def merge(self, old: str, new: str) -> Entity:
        """Make one entity of two. ``old`` leads to ``new`` from now on, and its names are aliases.

        RETURNS: The entity that is left, which has the title of ``new``, the description of ``new``
            if it has one, and what else the two have.
        """
        left, right = self.get(old), self.get(new)
        if left.id == right.id:
            raise ValueError(Errors.E021.format(id=left.id))
        merged = Entity(
            right.id,
            right.title,
            right.description or left.description,
            tuple(name for name in dict.fromkeys([*right.names, *left.names]))[1:],
            tuple(dict.fromkeys([*right.types, *left.types])),
            left.frequency + right.frequency,
            {**left.meta, **right.meta},
        )
        self._edit("merge", left.id, right.id, merged)
        return merged

    def _edit(self, edit: str, *values) -> Any:
        with self.transaction():  # which may have given the knowledge base another store
            return getattr(self.entities, edit)(*values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Several edits, of which all are kept or none."""
        with self._changing(by_hand=True):
            yield

    @contextmanager
    def _changing(self, by_hand: bool) -> Iterator[None]:
        """by_hand: Whether more changes than the vectors, which follow from the rest."""
        self._own(by_hand)
        outermost = not self.database.in_transaction
        with self.database.transaction():
            if outermost:
                self.database.after_commit(self._committed)
            yield
            if outermost:
                self.database.rows("UPDATE manifest SET value = value + 1 WHERE key = 'generation'")

    def _committed(self) -> None:
        self.edits += 1
        if self.path is not None:
            self._show_manifest(folder.SUMMED)

    def _show_manifest(self, limit: int) -> None:
        assert self.path is not None
        try:
            folder.show_manifest(self.path, self.database, limit)
        except OSError as error:  # the change itself is safe
            name = self.path / folder.MANIFEST
            warnings.warn(Warnings.W500.format(path=name, problem=error))

    def _own(self, by_hand: bool) -> None:
        """What is changed of a folder that was opened for reading is a copy."""
        if self._lock is not None:
            return
        if self.path is None:
            if by_hand:
                self._followed = None
            return
        handle, name = tempfile.mkstemp(suffix=".sqlite")
        os.close(handle)
        target = Path(name)
        target.unlink()
        weakref.finalize(self, target.unlink, missing_ok=True)
        database = self.database.copy(target)
        self.database.close()
        self.path, self._followed, touched = None, None, self._touched
        self._take(database, self.rows)
        self._touched = touched

    def touch(self) -> None:
        """Have the next ``sync`` look at all texts again; those it knows are not encoded."""
        self._touched = True

    def ids_of(self, positions: np.ndarray) -> np.ndarray:
        """The ids of entities, in the shape of ``positions``; "" for -1."""
        wanted = np.unique(positions[positions >= 0])
        missing = [position for position in wanted.tolist() if position not in self._ids]
        if missing:
            self._ids.update(self.entities.ids_at(missing))
        names = [*(self._ids.get(position, "") for position in wanted.tolist()), ""]
        found = np.where(positions >= 0, np.searchsorted(wanted, positions), len(wanted))
        return np.array(names, dtype=object)[found]

    # Folders and bytes

    def renew(self) -> bool:
        """Take in what another program has written to the folder this was read from.

        What was changed here by hand would be lost, so that this folder is not followed any more;
        neither is one that was replaced by another knowledge base.
        RETURNS: Whether there was anything new.
        """
        if self._followed is None:
            return False
        path, stamp, before = self._followed
        if folder.stamp(path) == stamp:
            return False
        stamp, now = folder.stamp(path), folder.state(path)
        if now == before:
            self._followed = (path, stamp, before)
            return False
        if now is None or now[0] != before[0]:
            self._followed = None
            return False
        self._read_folder(path, writable=False)
        return True

    def to_disk(self, path: Union[str, Path], exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """Write the folder ``path``; an older one is replaced in one step.

        ValueError where another program is editing the older one.
        """
        path = Path(path)
        if self._lock is not None and self.path and path.exists() and path.samefile(self.path):
            return  # Every change is there already.
        lock = folder.lock(path) if (path / folder.DATABASE).is_file() else None
        try:
            with self.database.snapshot():
                rows = self.rows if self.path is None else self._map_rows(self.database, self.path)
                write(self.database, rows, self.index, path)
        finally:
            if lock is not None:
                lock.release()

    def from_disk(
        self, path: Union[str, Path], exclude: Iterable[str] = SimpleFrozenList()
    ) -> "ArboKB":
        """Open a folder that ``to_disk`` wrote, for reading. Changes stay in memory."""
        return self._read_folder(Path(path).absolute(), writable=False)

    def _read_folder(self, path: Path, *, writable: bool) -> "ArboKB":
        stamp, state = folder.stamp(path), folder.state(path)
        database = folder.open_database(path, writable=writable)
        try:
            with database.snapshot():
                rows = self._map_rows(database, path)
                about = json.loads(database.manifest().get("index") or "null")
                small = not writable and database.size() <= IN_MEMORY
                copy = database.copy(None) if small else None
        except BaseException:
            database.close()
            raise
        if copy is not None:
            # One of its own: a writer is not kept waiting, and nothing changes in between.
            database.close()
        self.database.close()
        self.path = None if small else path
        self._followed = None if writable else (path, stamp, state)
        self._take(copy or database, rows)
        self.index = AttachedIndex(about, path / about["file"]) if about else None
        self.layout += 1
        return self

    @staticmethod
    def _map_rows(database: Database, path: Path) -> VectorRows:
        manifest = database.manifest()
        files = folder.row_files(path, manifest)
        return files.map(manifest["rows"]) if files else VectorRows(dtype=manifest["dtype"])

    def to_bytes(self, **kwargs) -> bytes:
        with self.database.snapshot():
            rows = self.rows if self.path is None else self._map_rows(self.database, self.path)
            return dump(self.database, rows)

    def from_bytes(
        self, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "ArboKB":
        database, rows = restore(bytes_data)
        self.close()
        self.path, self.index, self._followed = None, None, None
        self._take(database, rows)
        self.layout += 1
        return self


def _stream(entities: Entities) -> Iterable[Entity]:
    return [entities] if isinstance(entities, Entity) else entities
