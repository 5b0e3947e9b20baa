"""The present database of a knowledge base, and the folder that it came from."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import srsly
from filelock import FileLock

from ..base.errors import ArboError, Errors, code_of
from ..storage.files import unpack_arrays
from ..storage.locks import SharedLock
from . import folder
from .database import FORMAT, VERSION, Database
from .store import EntityStore
from .vector_files import check_dtype


@dataclass(frozen=True)
class SourceFolder:
    """The folder that the entities of a knowledge base came from.

    path: The folder.
    lock: The right to write to it; None for a reader.
    stamp: See ``folder.stamp``; that of the folder as it was read.
    state: The uuid and the number of edits that were read.
    is_current: Whether the entities are still those in the folder. A reader's own edits are not.
    """

    path: Path
    lock: FileLock | None
    stamp: tuple[int, ...] | None
    state: tuple[str, int]
    is_current: bool = True


def open_source(path: Path, lock: FileLock | None = None) -> tuple[Database, SourceFolder]:
    """Open a folder; ValueError where it is damaged.

    lock: The right to write; None to read. No writer is kept waiting by readers of a small database
        then, which is copied, and nothing changes between two of their statements.
    """
    stamp = folder.stamp(path)
    database = opened = folder.open_database(path, writable=lock is not None)
    try:
        with opened.snapshot():
            state = folder.identity(opened)
            if lock is None and not opened.is_large:
                database = opened.copy()
    except BaseException:
        opened.close()
        raise
    if database is not opened:
        opened.close()
    return database, SourceFolder(path, lock, stamp, state)


def restore(data: bytes) -> tuple[Database, dict[str, Any]]:
    """Load the result of ``ArboKB.to_bytes``. ValueError where it is damaged.

    RETURNS: The database, and the vectors for ``EntityVectors.from_dict``.
    """
    where = "the bytes given"
    try:
        parts = dict(srsly.msgpack_loads(data))
        vectors = dict(parts["vectors"])
        if vectors:
            vectors["arrays"] = unpack_arrays(vectors["arrays"])
        database = Database.from_bytes(parts["database"])
    except Exception as error:  # whatever reading damaged bytes may raise
        if code_of(error):
            raise
        raise ArboError(Errors.E013.format(where=where, problem=error)) from error
    folder.check_version(where, database)
    problems = folder.database_problems(database)
    if problems:
        raise ArboError(Errors.E019.format(where=where, problems="; ".join(problems)))
    return database, vectors


class Storage:
    """The database of a knowledge base, in memory or in a file.

    The file is that of ``source`` for a writer, whose edits are in it once they are committed, and
    for a reader of a large one, whose first edit copies it. What has no source is in memory.

    database: The SQLite database.
    entities: The entities in it.
    source: The folder that they came from; None where they came from none.
    edits: Grows with every change.
    guard: Threads that link have it as readers, edits as writers.
    """

    database: Database
    entities: EntityStore
    source: SourceFolder | None

    def __init__(self, dtype: str):
        self.edits = 0
        self.guard = SharedLock()
        self._set(Database(), None)
        self.database.set(
            format=FORMAT,
            version=VERSION,
            uuid=uuid.uuid4().hex,
            generation=0,
            entities=0,
            positions=0,
            dtype=check_dtype(dtype),
        )

    def _set(self, database: Database, source: SourceFolder | None) -> None:
        self.database = database
        self.entities = EntityStore(database)
        self.source = source
        self.edits += 1

    def use(self, database: Database, source: SourceFolder | None = None) -> None:
        """Use another database from now on. The present one is closed."""
        self.close()
        self._set(database, source)

    def close(self) -> None:
        """Close the database and give up the right to write."""
        self.database.close()
        if self.source is not None and self.source.lock is not None:
            self.source.lock.release()
            self.source = replace(self.source, lock=None, is_current=False)

    @property
    def dtype(self) -> str:
        """The type in which vectors are stored."""
        return self.database.get("dtype")

    @property
    def folder(self) -> Path | None:
        """The folder that the entities came from."""
        return None if self.source is None else self.source.path

    @property
    def open_folder(self) -> Path | None:
        """The folder that is open for writing."""
        return None if self.source is None or self.source.lock is None else self.source.path

    @property
    def is_unedited(self) -> bool:
        """Return whether the entities are those in the folder that they came from."""
        return self.source is not None and self.source.is_current

    @contextmanager
    def editing(self) -> Iterator[EntityStore]:
        """The entities, to edit them: all edits in the block or none."""
        with self.guard.writing():
            outermost = not self.database.in_transaction
            if outermost and self.open_folder is None:
                self._detach()
            with self.database.transaction():
                if outermost and not self.is_unedited:
                    # What others save of the folder's state is not of this one.
                    self.database.set(uuid=uuid.uuid4().hex)
                yield self.entities
                if outermost:
                    self.database.set(generation=self.database.get("generation") + 1)
            self.edits += outermost

    def _detach(self) -> None:
        """Have entities of one's own, which do not follow the folder any more."""
        if self.source is not None:
            self.source = replace(self.source, is_current=False)
        if not self.database.writable:
            self.use(self.database.copy(), self.source)

    def changed_folder(self) -> Path | None:
        """The folder that was read, if another program has edited it since; else None."""
        if self.source is None or self.source.lock is not None:
            return None
        # No edit is made meanwhile, whose own note this one would replace.
        with self.guard.reading():
            source = self.source
            stamp = folder.stamp(self.source.path)
            if not source.is_current or (stamp is not None and stamp == source.stamp):
                return None
            state = folder.state(source.path)
            if state is not None and state != source.state and state[0] == source.state[0]:
                return source.path
            # A folder that was replaced by another knowledge base is not followed any more.
            self.source = replace(source, stamp=stamp, is_current=state == source.state)
            return None

    def write(self, path: Path, write_vectors: Callable[[Path, str], None]) -> None:
        """Write everything into a folder; see ``ArboKB.to_disk``.

        write_vectors: Writes the vectors into a folder, for a knowledge base of a uuid.
        """
        place = self.open_folder
        if place is not None and path.exists() and path.samefile(place):
            return  # Every change is in it already.
        with self.database.snapshot(), folder.replacing_kb(path) as target:
            copy = self.database.copy(target / folder.DATABASE)
            identity = uuid.uuid4().hex
            try:
                copy.set(uuid=identity)
            finally:
                copy.close()
            folder.carry_over(path, target)
            write_vectors(target, identity)
