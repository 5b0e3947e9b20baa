"""Where a knowledge base is stored: in memory or in a folder, and who may change it."""

import os
import tempfile
import warnings
import weakref
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Iterator, Optional, Tuple

from filelock import FileLock

from ..errors import Warnings
from ..storage.locks import SharedLock
from . import folder
from .checks import open_database
from .database import Database
from .manifest import new_manifest
from .saving import AttachedIndex, attached_index, dump, write
from .store import EntityStore
from .vectors import VectorRows

# Databases of at most this many bytes are copied into memory when they are opened for reading.
IN_MEMORY = 1 << 26


@dataclass(frozen=True)
class Followed:
    """A folder that was opened for reading, with its state at that time.

    path: The folder.
    stamp: See ``folder.stamp``.
    state: See ``folder.state``.
    """

    path: Path
    stamp: Optional[Tuple[int, ...]]
    state: Optional[Tuple[str, int]]


@dataclass(frozen=True)
class Contents:
    """What is read from a folder.

    database: The database, or a copy of it in memory.
    rows: The vectors.
    index: The search index; None where there is none.
    path: The folder whose files stay in use; None where the database is a copy.
    followed: The folder whose later changes are of interest; None for a writer.
    """

    database: Database
    rows: VectorRows
    index: Optional[AttachedIndex]
    path: Optional[Path]
    followed: Optional[Followed]


def read_contents(path: Path, *, writable: bool) -> Contents:
    """Open a folder; ValueError where it is damaged."""
    followed = None if writable else Followed(path, folder.stamp(path), folder.state(path))
    database = open_database(path, writable=writable)
    try:
        with database.snapshot():
            rows = folder.map_rows(path, database)
            index = attached_index(path, database)
            small = not writable and database.size() <= IN_MEMORY
            copy = database.copy(None) if small else None
    except BaseException:
        database.close()
        raise
    if copy is None:
        return Contents(database, rows, index, path, followed)
    # With a copy no writer is kept waiting, and nothing changes between two statements.
    database.close()
    return Contents(copy, rows, index, None, followed)


class Storage:
    """The database of a knowledge base, and the folder it is in.

    A knowledge base is in one of three states. In memory it has neither ``path`` nor ``lock``; this
    is also the state of a small one that was read from a folder. A large one that was opened for
    reading has a ``path`` only, and the first edit copies it. One that was opened for writing has
    both, and each edit is in the folder when it is committed.

    database: The SQLite database.
    entities: The entities in it.
    path: The folder whose files are in use; None in memory.
    lock: The right to write to the folder; None without.
    edits: Grows with every change.
    guard: Threads that link have it as readers, edits as writers.
    """

    database: Database
    entities: EntityStore

    def __init__(self, dtype: str):
        self.path: Optional[Path] = None
        self.lock: Optional[FileLock] = None
        self.edits = 0
        self.guard = SharedLock()
        self._followed: Optional[Followed] = None
        self._use(Database())
        with self.database.transaction():
            self.database.set(**new_manifest(dtype))

    def _use(self, database: Database) -> None:
        self.database, self.entities = database, EntityStore(database)
        self.edits += 1

    def replace(
        self,
        database: Database,
        path: Optional[Path] = None,
        followed: Optional[Followed] = None,
    ) -> None:
        """Use another database from now on. The present one is closed."""
        self.database.close()
        self.path, self._followed = path, followed
        self._use(database)

    def close(self) -> None:
        """Close the database and give up the right to write."""
        try:
            if self.lock is not None:
                self._show_manifest(IN_MEMORY)
        finally:
            self.database.close()
            if self.lock is not None:
                self.lock.release()
                self.lock = None

    @contextmanager
    def transaction(self, *, vectors_only: bool = False) -> Iterator[None]:
        """Several edits, all or none.

        vectors_only: Whether only vectors change, which follow from the rest.
        """
        with self.guard.writing():
            self._copy_if_read_only(vectors_only)
            outermost = not self.database.in_transaction
            with self.database.transaction():
                if outermost:
                    self.database.after_commit(self._committed)
                yield
                if outermost:
                    self.database.rows(
                        "UPDATE manifest SET value = value + 1 WHERE key = 'generation'"
                    )

    def _committed(self) -> None:
        self.edits += 1
        self._show_manifest(folder.SUMMED)

    def _show_manifest(self, limit: int) -> None:
        if self.path is None:
            return
        try:
            folder.show_manifest(self.path, self.database, limit)
        except OSError as error:  # the change itself is safe
            name = self.path / folder.MANIFEST
            warnings.warn(Warnings.W500.format(path=name, problem=error))

    def _copy_if_read_only(self, vectors_only: bool) -> None:
        """Edits of a folder that was opened for reading are made in a copy."""
        if self.lock is not None:
            return
        if self.path is None:
            if not vectors_only:
                self.stop_following()
            return
        handle, name = tempfile.mkstemp(suffix=".sqlite")
        os.close(handle)
        target = Path(name)
        target.unlink()
        weakref.finalize(self, _unlink_in, os.getpid(), target)
        self.replace(self.database.copy(target))

    def stop_following(self) -> None:
        """Have ``changed_folder`` find no changes any more."""
        self._followed = None

    def changed_folder(self) -> Optional[Path]:
        """The folder that was read, where another program has edited it since; otherwise None.

        A folder that was replaced by another knowledge base is not followed any more.
        """
        followed = self._followed
        if followed is None or folder.stamp(followed.path) == followed.stamp:
            return None
        stamp, state = folder.stamp(followed.path), folder.state(followed.path)
        if state == followed.state:
            self._followed = replace(followed, stamp=stamp)
            return None
        if state is None or followed.state is None or state[0] != followed.state[0]:
            self.stop_following()
            return None
        return followed.path

    def put(self, **values: Any) -> None:
        """Write values into the manifest that differ from those in it.

        A large database that was opened for reading is not copied for that.
        """
        if self.path is not None and self.lock is None:
            return
        manifest = self.database.manifest()
        if any(manifest.get(key) != value for key, value in values.items()):
            with self.transaction(vectors_only=True):
                self.database.set(**values)

    def write(self, path: Path, rows: VectorRows, index: Optional[AttachedIndex]) -> None:
        """Write everything into a folder; see ``ArboKB.to_disk``."""
        if self.lock is not None and self.path and path.exists() and path.samefile(self.path):
            return  # Every change is in it already.
        with self.database.snapshot():
            write(self.database, self._present_rows(rows), index, path)

    def to_bytes(self, rows: VectorRows) -> bytes:
        """Everything but the search index as bytes."""
        with self.database.snapshot():
            return dump(self.database, self._present_rows(rows))

    def _present_rows(self, rows: VectorRows) -> VectorRows:
        """The vectors that belong to the present state of the database.

        rows: The vectors in use. Those in a folder may belong to an earlier state.
        """
        return rows if self.path is None else folder.map_rows(self.path, self.database)


def _unlink_in(process: int, path: Path) -> None:
    """Remove a file, but not in a forked copy of the process that made it."""
    if os.getpid() == process:
        path.unlink(missing_ok=True)
