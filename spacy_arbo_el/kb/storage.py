"""Storage of a knowledge base, and its write access. It is in memory, in a folder or in bytes."""

import os
import tempfile
import uuid
import weakref
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
from .database import Database
from .manifest import new_manifest
from .store import EntityStore
from .verification import check_version, database_problems, open_database

# Databases of at most this many bytes are copied into memory when they are opened for reading.
IN_MEMORY = 1 << 26


@dataclass(frozen=True)
class Followed:
    """A folder opened for reading, with its state then.

    path: The folder.
    stamp: See ``folder.stamp``.
    state: See ``folder.state``.
    """

    path: Path
    stamp: tuple[int, ...] | None
    state: tuple[str, int] | None


@dataclass(frozen=True)
class Contents:
    """The content of a folder or from bytes.

    database: The database, or a copy of it in memory.
    path: The folder whose database stays in use; None where it is a copy.
    followed: The folder whose later changes are of interest; None for a writer.
    vectors: For ``EntityVectors.from_dict``, if they are not in the folder.
    """

    database: Database
    path: Path | None = None
    followed: Followed | None = None
    vectors: dict[str, Any] | None = None


def read_contents(path: Path, *, writable: bool) -> Contents:
    """Open a folder; ValueError where it is damaged."""
    stamp = folder.stamp(path)
    database = open_database(path, writable=writable)
    try:
        with database.snapshot():
            manifest = database.manifest()
            small = not writable and database.size() <= IN_MEMORY
            copy = database.copy(None) if small else None
    except BaseException:
        database.close()
        raise
    followed = None if writable else Followed(path, stamp, folder.identity(manifest))
    if copy is None:
        return Contents(database, path, followed)
    # With a copy no writer is kept waiting, and nothing changes between two statements.
    database.close()
    return Contents(copy, None, followed)


def restore(data: bytes) -> Contents:
    """Load the result of ``ArboKB.to_bytes`` into memory. ValueError where it is damaged."""
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
    check_version(where, database)
    problems = database_problems(database)
    if problems:
        raise ArboError(Errors.E019.format(where=where, problems="; ".join(problems)))
    return Contents(database, vectors=vectors)


class Storage:
    """The database of a knowledge base and its folder.

    A knowledge base is in one of three states. In memory it has neither ``path`` nor ``lock``; this
    is also the state of a small one that was read from a folder. A large one that was opened for
    reading has a ``path`` only, and the first edit copies it. One that was opened for writing has
    both, and each edit is in the folder when it is committed.

    database: The SQLite database.
    entities: The entities in it.
    path: The folder whose database is in use; None in memory.
    home: The folder that the entities came from; None where they came from none.
    lock: The right to write to the folder; None without.
    edits: Grows with every change.
    guard: Threads that link have it as readers, edits as writers.
    """

    database: Database
    entities: EntityStore

    def __init__(self, dtype: str):
        self.path: Path | None = None
        self.home: Path | None = None
        self.lock: FileLock | None = None
        self.edits = 0
        self.guard = SharedLock()
        self._followed: Followed | None = None
        self._use(Database())
        with self.database.transaction():
            self.database.set(**new_manifest(dtype))

    def _use(self, database: Database) -> None:
        self.database, self.entities = database, EntityStore(database)
        self.edits += 1

    def replace(
        self,
        database: Database,
        path: Path | None = None,
        followed: Followed | None = None,
    ) -> None:
        """Use another database from now on. The present one is closed."""
        self.database.close()
        self.path, self._followed = path, followed
        self.home = followed.path if followed is not None else path
        self._use(database)

    @property
    def dtype(self) -> str:
        """The type in which vectors are stored."""
        return self.database.get("dtype")

    @property
    def is_in_home(self) -> bool:
        """Return whether the entities are those in ``home``."""
        return self.lock is not None or self._followed is not None

    def close(self) -> None:
        """Close the database and give up the right to write."""
        self.database.close()
        if self.lock is not None:
            self.lock.release()
            self.lock = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Several edits, all or none."""
        with self.guard.writing():
            self._copy_if_read_only()
            outermost = not self.database.in_transaction
            with self.database.transaction():
                if outermost:
                    self.database.after_commit(self._committed)
                    if not self.is_in_home:
                        # What others save of the folder's state is not of this one.
                        self.database.set(uuid=uuid.uuid4().hex)
                yield
                if outermost:
                    self.database.rows(
                        "UPDATE manifest SET value = value + 1 WHERE key = 'generation'"
                    )

    def _committed(self) -> None:
        self.edits += 1

    def _copy_if_read_only(self) -> None:
        """Copy a read-only folder's data before edits."""
        if self.lock is not None:
            return
        self.stop_following()
        if self.path is None:
            return
        home = self.home
        handle, name = tempfile.mkstemp(suffix=".sqlite")
        os.close(handle)
        target = Path(name)
        target.unlink()
        weakref.finalize(self, _unlink_in, os.getpid(), target)
        self.replace(self.database.copy(target))
        self.home = home

    def stop_following(self) -> None:
        """Have ``changed_folder`` find no changes any more."""
        self._followed = None

    def changed_folder(self) -> Path | None:
        """The read folder if edited elsewhere since, else None.

        A folder that was replaced by another knowledge base is not followed any more.
        """
        followed = self._followed
        if followed is None:
            return None
        stamp = folder.stamp(followed.path)
        if stamp is not None and stamp == followed.stamp:
            return None
        state = folder.state(followed.path)
        if state == followed.state:
            self._followed = replace(followed, stamp=stamp)
            return None
        if state is None or followed.state is None or state[0] != followed.state[0]:
            self.stop_following()
            return None
        return followed.path

    def write(self, path: Path, write_vectors: Callable[[Path, str], None]) -> None:
        """Write everything into a folder; see ``ArboKB.to_disk``.

        write_vectors: Writes the vectors into a folder, for a knowledge base of a uuid.
        """
        if self.lock is not None and self.path and path.exists() and path.samefile(self.path):
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


def _unlink_in(process: int, path: Path) -> None:
    """Remove a file, except in a forked process."""
    if os.getpid() == process:
        path.unlink(missing_ok=True)
