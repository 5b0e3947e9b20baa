"""Storage of a knowledge base, and its write access. It is in memory, in a folder or in bytes."""

import json
import os
import shutil
import tempfile
import uuid
import warnings
import weakref
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Optional, Tuple, Union

import srsly
from filelock import FileLock

from ..errors import Errors, Warnings
from ..storage.files import pack_arrays, unpack_arrays
from ..storage.locks import SharedLock
from . import folder
from .database import Database
from .manifest import index_entry, new_manifest
from .store import EntityStore
from .vectors import VectorFile, VectorRows
from .verification import check_version, database_problems, open_database, owners_of

# Databases of at most this many bytes are copied into memory when they are opened for reading, and
# get a checksum when they are closed.
IN_MEMORY = 1 << 26
# Databases of at most this many bytes get a checksum with each edit.
SUMMED = 1 << 24


@dataclass(frozen=True)
class AttachedIndex:
    """A search index stored beside the rows it covers.

    about: Its description, JSON-serialisable; see ``retrieval/index/approximate.py``.
    source: Its file, or a function that writes it to a path.
    """

    about: Dict[str, Any]
    source: Union[Path, Callable[[Path], None]]

    @property
    def can_be_written(self) -> bool:
        """Return whether its file still exists. A writer may have replaced it by another."""
        return not isinstance(self.source, Path) or self.source.is_file()

    def write(self, path: Path) -> str:
        """Write it to a new file. RETURNS: What the manifest holds about it."""
        if isinstance(self.source, Path):
            shutil.copyfile(self.source, path)
        else:
            self.source(path)
        with path.open("r+b") as file:
            os.fsync(file.fileno())
        size, crc = path.stat().st_size, folder.file_checksum(path)
        return json.dumps({**self.about, "file": path.name, "size": size, "crc": crc})


@dataclass(frozen=True)
class Followed:
    """A folder opened for reading, with its state then.

    path: The folder.
    stamp: See ``folder.stamp``.
    state: See ``folder.state``.
    """

    path: Path
    stamp: Optional[Tuple[int, ...]]
    state: Optional[Tuple[str, int]]


@dataclass(frozen=True)
class Contents:
    """The content of a folder or from bytes.

    database: The database, or a copy of it in memory.
    rows: The vectors.
    index: The search index; None if there is none.
    path: The folder whose files stay in use; None where the database is a copy.
    followed: The folder whose later changes are of interest; None for a writer.
    """

    database: Database
    rows: VectorRows
    index: Optional[AttachedIndex] = None
    path: Optional[Path] = None
    followed: Optional[Followed] = None


def read_contents(path: Path, *, writable: bool) -> Contents:
    """Open a folder; ValueError where it is damaged."""
    stamp = folder.stamp(path)
    database = open_database(path, writable=writable)
    try:
        with database.snapshot():
            manifest = database.manifest()
            rows = map_rows(path, database)
            about = index_entry(manifest)
            small = not writable and database.size() <= IN_MEMORY
            copy = database.copy(None) if small else None
    except BaseException:
        database.close()
        raise
    index = AttachedIndex(about, path / about["file"]) if about else None
    followed = None if writable else Followed(path, stamp, folder.identity(manifest))
    if copy is None:
        return Contents(database, rows, index, path, followed)
    # With a copy no writer is kept waiting, and nothing changes between two statements.
    database.close()
    return Contents(copy, rows, index, None, followed)


def map_rows(path: Path, database: Database) -> VectorRows:
    """The vectors of a folder, mapped and not read."""
    manifest = database.manifest()
    file = folder.vector_file(path, manifest)
    if file is None or not manifest["rows"]:
        return VectorRows(dtype=manifest["dtype"])
    return VectorRows(file.map(manifest["rows"]), owners_of(database), manifest["dtype"])


def restore(data: bytes) -> Contents:
    """Load the result of ``Storage.to_bytes`` into memory. ValueError where it is damaged."""
    where = "the bytes given"
    try:
        parts = dict(srsly.msgpack_loads(data))
        vectors = unpack_arrays(parts["rows"])["vectors"]
        database = Database.from_bytes(parts["database"])
    except Exception as error:  # whatever reading damaged bytes may raise
        if str(error).startswith("[arbo-"):
            raise
        raise ValueError(Errors.E013.format(where=where, problem=error)) from error
    check_version(where, database)
    problems = database_problems(database)
    if problems:
        raise ValueError(Errors.E019.format(where=where, problems="; ".join(problems)))
    manifest = database.manifest()
    counts = (manifest["rows"], manifest["width"] if manifest["rows"] else vectors.shape[-1])
    if vectors.shape != counts:
        shapes = (manifest["entities"], vectors.shape)
        raise ValueError(Errors.E009.format(where=where, manifest=manifest, counts=shapes))
    database.set(files=0, index="")
    return Contents(database, VectorRows(vectors, owners_of(database), manifest["dtype"]))


class Storage:
    """The database of a knowledge base and its folder.

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
                self._seal(IN_MEMORY)
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
                    self.database.seal(0)
                    self.database.rows(
                        "UPDATE manifest SET value = value + 1 WHERE key = 'generation'"
                    )

    def _committed(self) -> None:
        self.edits += 1
        self._seal(SUMMED)

    def _seal(self, limit: int) -> None:
        """Seal a small database of a folder with a checksum."""
        if self.path is None or self.database.sealed or self.database.size() > limit:
            return
        try:
            self.database.seal()
        except OSError as error:  # the change itself is safe
            warnings.warn(Warnings.W500.format(path=self.path / folder.DATABASE, problem=error))

    def _copy_if_read_only(self, vectors_only: bool) -> None:
        """Copy a read-only folder's data before edits."""
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

    def put(self, **values: Any) -> None:
        """Write changed values into the manifest.

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
        with self.database.snapshot(), folder.replacing_kb(path) as target:
            copy = self.database.copy(target / folder.DATABASE)
            try:
                copy.seal(0)
                with copy.transaction():
                    copy.set(uuid=uuid.uuid4().hex, files=0, index="", indexes=0, crc=0)
                    _write_rows(copy, self._present_rows(rows), target)
                    if index is not None and index.can_be_written:
                        file = target / f"index-1{index.about['suffix']}"
                        copy.set(index=index.write(file), indexes=1)
            finally:
                copy.close()
            folder.seal(target / folder.DATABASE)

    def to_bytes(self, rows: VectorRows) -> bytes:
        """Everything but the search index as bytes."""
        with self.database.snapshot():
            present = self._present_rows(rows)
            vectors = pack_arrays({"vectors": present.array().astype(present.dtype)})
            return srsly.msgpack_dumps({"database": self.database.to_bytes(), "rows": vectors})

    def _present_rows(self, rows: VectorRows) -> VectorRows:
        """Vectors of the database's present state.

        rows: The vectors in use. Those in a folder may belong to an earlier state.
        """
        return rows if self.path is None else map_rows(self.path, self.database)


def _write_rows(database: Database, rows: VectorRows, path: Path) -> None:
    if not len(rows):
        return
    crc, file = 0, VectorFile(path, 1, database.get("uuid"), rows.width, rows.dtype).create()
    for start, block in rows.blocks():
        crc = file.write(start, block.astype(rows.dtype), crc)
    database.set(files=1, crc=crc)


def _unlink_in(process: int, path: Path) -> None:
    """Remove a file, except in a forked process."""
    if os.getpid() == process:
        path.unlink(missing_ok=True)
