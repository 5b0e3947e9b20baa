"""The folder of a knowledge base: its files, the right to write, and the database in use.

``entities.sqlite`` holds the entities, each with a checksum. All else follows from them:
the vectors by encoder (``vector_cache.py``), which texts the entities have (``texts.py``), and
search indexes (``attached_index.py``).
"""

import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import srsly
from filelock import FileLock

from ..base.errors import Errors, Warnings, code_of
from ..base.log import warn_once
from ..base.settings import check_choice
from ..records.lines import check_exists, read_start
from ..storage.files import MANIFEST, is_temporary, remove_abandoned
from ..storage.folders import (
    LOCK,
    FolderKind,
    acquire,
    check_replaceable,
    replacing_folder,
)
from ..storage.folders import restore as restore_folder
from ..storage.locks import SharedLock
from .database import DATABASE, DTYPES, FORMAT, VERSION, Database, check_database
from .store import EntityStore
from .vector_cache import carry_over

# The files of spaCy's ``InMemoryLookupKB``.
SPACY_FILES = ("contents", "strings.json")
# A file that was changed less than so many nanoseconds ago may change again unnoticed.
RACY = 50_000_000

_DIGEST = "[0-9a-f]{16}"
# The files that follow from the entities.
DERIVED = (
    rf"vectors-[a-z]+-{_DIGEST}\.(bin|keys|lock)|texts-{_DIGEST}\.bin"
    rf"|index-{_DIGEST}(\.json|-[0-9a-f]{{8}}\.\w+)"
)
# The files of a knowledge base; SQLite's journal is there during an edit, or after a kill.
FILES = rf"entities\.sqlite(-journal)?|{DERIVED}"
# What SQLite or this package would read or write in the folder.
_USED = re.compile(rf"{FILES}|write\.lock|entities\.sqlite-(wal|shm)")
# What ends a journal that names another file, which SQLite may remove when it rolls back.
_NAMES_ANOTHER_FILE = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"


def _names_in_folder(folder: Path) -> str | None:
    """The pattern of the names in a knowledge base's folder. None where it is of something else."""
    if read_start(folder / DATABASE, 16) == b"SQLite format 3\0":
        return FILES
    return None


KB_FOLDER = FolderKind("a knowledge base", _names_in_folder)


def is_derived(path: Path) -> bool:
    """Return whether a file in the folder of a knowledge base follows from its entities."""
    is_known = re.fullmatch(DERIVED, path.name) is not None
    return is_known and path.with_name(DATABASE).is_file()


@contextmanager
def replacing_kb(path: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """A folder to write a knowledge base to, see ``replacing_folder``. Nobody may be editing it."""
    check_new(path, overwrite=overwrite)
    with ExitStack() as stack:
        if (path / DATABASE).is_file():
            stack.callback(lock(path).release)
        folder = stack.enter_context(replacing_folder(path, KB_FOLDER))
        yield folder
        carry_over(path, folder)


def check_new(path: Path, *, overwrite: bool = False) -> None:
    """Raise ValueError if a folder cannot hold a new knowledge base."""
    restore_folder(path)
    target = check_replaceable(path, KB_FOLDER)
    if not overwrite and target.is_dir() and any(target.iterdir()):
        raise Errors.E034(path=path)


def find(path: Path) -> Path:
    """Absolute path of a folder, brought back where a kill moved it. Errors for no folder."""
    path = path.absolute()
    restore_folder(path)
    check_exists(
        path, "Check the path, or build a knowledge base there: spacy arbo kb build."
    )
    if not path.is_dir():
        raise Errors.E035(path=path)
    return path


def lock(path: Path) -> FileLock:
    """The right to write, held until it is released. ValueError where another program has it."""
    check_files(path)
    file_lock = FileLock(str(path / LOCK))
    acquire(file_lock, Errors.E018(where=path))
    return file_lock


def check_files(path: Path) -> None:
    """Refuse links, devices, and a journal that names a file outside.

    To read a link shows, and to write to it changes, files outside the folder: a stranger's folder
    may link to any file. So those of the caches of a hub, of DVC or of git-annex are copied first.
    """
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if not _USED.fullmatch(entry.name) or entry.is_file(follow_symlinks=False):
            continue
        if entry.is_symlink():
            raise Errors.E042(where=path, name=entry.name)
        problem = f"{entry.name} is a folder or a device instead of a file"
        raise Errors.E019(where=path, problems=problem)
    journal = path / f"{DATABASE}-journal"
    # A writer removes its journal at the end of each edit, also while this reads.
    with suppress(FileNotFoundError), journal.open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - len(_NAMES_ANOTHER_FILE), 0))
        if file.read() == _NAMES_ANOTHER_FILE:
            problem = f"{journal.name} names a file outside"
            raise Errors.E019(where=path, problems=problem)


def foreign_names(path: Path) -> list[str]:
    """Names of files that no knowledge base has, such as leftovers."""
    kb_files = re.compile(rf"{FILES}|{re.escape(LOCK)}")
    return sorted(
        entry.name for entry in os.scandir(path) if not kb_files.fullmatch(entry.name)
    )


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers have left in a folder and beside it. For who may write to it."""
    remove_abandoned(path.resolve())
    for name in foreign_names(path):
        if is_temporary(name):
            remove_abandoned(path / name[1 : -len(f".{0:032x}.tmp")])


def check_complete(path: Path) -> None:
    """Raise ValueError for a folder without a database, with what it seems to be instead."""
    if (path / DATABASE).is_file():
        return
    if all((path / name).is_file() for name in SPACY_FILES):
        raise Errors.E040(path=path)
    folders = [path / "kb", *sorted(path.glob("*/kb"))]
    inner = [folder for folder in folders if (folder / DATABASE).is_file()]
    if inner:
        raise Errors.E029(path=path, inner=", ".join(map(str, inner)))
    raise Errors.E010(path=path, missing=DATABASE)


@dataclass(frozen=True)
class SourceFolder:
    """The folder that the entities of a knowledge base came from.

    lock: The right to write to it; None for a reader.
    stamp: See ``_stamp_of``; that of the folder as it was read.
    state: The uuid and the number of edits that were read.
    is_alone: Whether it is in no saved pipeline. What replaces it there belongs to the rest of
        another pipeline.
    is_current: Whether the entities are still those in the folder. A reader's own edits are not.
    """

    path: Path
    lock: FileLock | None
    stamp: tuple[int, ...] | None
    state: tuple[str, int]
    is_alone: bool = True
    is_current: bool = True


def open_source(
    path: Path, lock: FileLock | None = None
) -> tuple[Database, SourceFolder]:
    """Open a folder. ValueError where it is damaged, or of something else.

    lock: The right to write; None to read. No writer is kept waiting by readers of a small database
        then, which is copied, and nothing changes between two of their statements.
    """
    check_files(path)
    check_complete(path)
    stamp = _stamp_of(path)
    opened = Database(path / DATABASE, writable=lock is not None)
    database = opened
    try:
        with opened.snapshot():
            check_database(opened, path)
            state = _identity(opened)
            if lock is None and not opened.is_large:
                database = opened.copy()
    except BaseException:
        opened.close()
        raise
    if database is not opened:
        opened.close()
    is_alone = not (path.parent / MANIFEST).exists()
    return database, SourceFolder(path, lock, stamp, state, is_alone)


def _stamp_of(path: Path) -> tuple[int, ...] | None:
    """A value that changes with each write; None if it was written at this very moment."""
    try:
        status = (path / DATABASE).stat()
    except OSError:
        return None
    if abs(time.time_ns() - status.st_mtime_ns) < RACY:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def state_of(path: Path) -> tuple[str, int] | None:
    """The knowledge base's uuid and its number of edits. None where they can't be read."""
    try:
        check_files(path)
        with closing(Database(path / DATABASE, writable=False)) as database:
            return _identity(database)
    except (ValueError, OSError):
        return None


def _identity(database: Database) -> tuple[str, int]:
    return str(database.get("uuid")), database.get("generation") or 0


def unpack_kb(data: bytes, folder: Path) -> Database:
    """Write the files of ``ArboKB.to_bytes`` into a folder. ValueError where they are damaged.

    RETURNS: Their database, copied.
    """
    where = "the bytes given"
    try:
        files = dict(srsly.msgpack_loads(data))
        (folder / DATABASE).write_bytes(files.pop(DATABASE))
        for name, content in files.items():
            if not re.fullmatch(DERIVED, name):
                raise ValueError(f"a file is named {name!r:.40}")
            (folder / name).write_bytes(content)
        with closing(Database(folder / DATABASE, writable=False)) as on_disk:
            on_disk.origin = None
            database = on_disk.copy()
    except Exception as error:  # whatever reading damaged bytes may raise
        if code_of(error):
            raise
        raise Errors.E013(where=where, problem=error) from error
    # Copies of a pipeline in other processes are made of such bytes, so they are not read in full.
    check_database(database, where, most_bytes=0)
    return database


# Writes the vectors into a folder, for a knowledge base of a uuid.
WriteVectors = Callable[[Path, str], None]


class Storage:
    """The database of a knowledge base, in memory or in a file.

    The file is that of ``source`` for a writer, whose edits are in it once they are committed, and
    for a reader of a large one, whose first edit copies it. What has no source is in memory.

    source: The folder that they came from; None where they came from none.
    edits: Grows with every change.
    guard: Threads that link have it as readers, edits as writers.
    """

    database: Database
    entities: EntityStore
    source: SourceFolder | None

    def __init__(self, dtype: str):
        check_choice("dtype", dtype, DTYPES)
        self.edits = 0
        self.guard = SharedLock()
        self.source = None
        self.use(Database())
        self.database.set(
            format=FORMAT,
            version=VERSION,
            uuid=uuid.uuid4().hex,
            generation=0,
            entities=0,
            positions=0,
            dtype=dtype,
        )

    def use(self, database: Database, source: SourceFolder | None = None) -> None:
        """Use another database from now on. Threads that are reading the present one go on."""
        if self.open_folder is not None:
            self.close()
        self.database = database
        self.entities = EntityStore(database)
        self.source = source
        self.edits += 1

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
        if self.source is None:
            return None
        return self.source.path

    @property
    def open_folder(self) -> Path | None:
        """The folder that is open for writing."""
        if self.source is None or self.source.lock is None:
            return None
        return self.source.path

    @property
    def is_unedited(self) -> bool:
        """Return whether the entities are those in the folder that they came from."""
        is_current = self.source is not None and self.source.is_current
        return is_current and not self.database.in_transaction

    @contextmanager
    def editing(self) -> Iterator[EntityStore]:
        """The entities, to edit them: all edits in the block or none."""
        with self.guard.writing():
            outermost = not self.database.in_transaction
            is_own = outermost and self.open_folder is None
            if is_own and not self.database.writable:
                self.use(self.database.copy(), self.source)
            with self.database.transaction():
                is_first = outermost and not self.entities.positions
                if is_own:
                    # What others save of the folder's state is not of this one.
                    self.database.set(uuid=uuid.uuid4().hex)
                yield self.entities
                if outermost:
                    generation = self.entities.generation + 1
                    self.database.set(generation=generation)
                    if is_first and (count := self.entities.positions):
                        # Later entities and edits are told from those of the first import.
                        self.database.set(imported=generation, listed=count)
            if is_own and self.source is not None:
                # Entities of one's own do not follow the folder any more.
                self.source = replace(self.source, is_current=False)
            self.edits += outermost

    def changed_folder(self) -> Path | None:
        """The folder that was read, if another program has edited it since; else None."""
        if self.source is None or self.source.lock is not None:
            return None
        # No edit is made meanwhile, whose own note this one would replace.
        with self.guard.reading():
            source = self.source
            stamp = _stamp_of(self.source.path)
            if not source.is_current or (stamp is not None and stamp == source.stamp):
                return None
            state = state_of(source.path)
            if state is None:
                # It is looked at again. A folder of a loaded pipeline is of no more use.
                if source.is_alone:
                    warn_once(Warnings.W505.format(path=source.path))
                return None
            if state == source.state:
                self.source = replace(source, stamp=stamp)
                return None
            if not source.is_alone and state[0] != source.state[0]:
                self.source = replace(source, is_current=False)
                return None
            return source.path

    def write(self, path: Path, write_vectors: WriteVectors) -> None:
        """Write everything into a folder that replaces another; see ``ArboKB.to_disk``."""
        place = self.open_folder
        if place is not None and path.exists() and path.samefile(place):
            return  # Every change is in it already.
        with self.database.snapshot(), replacing_kb(path) as target:
            carry_over(path, target)
            self.write_files(target, write_vectors)

    def write_files(self, folder: Path, write_vectors: WriteVectors) -> None:
        """Write everything into a new folder, which may have vectors."""
        identity = uuid.uuid4().hex
        with closing(self.database.copy(folder / DATABASE)) as copy:
            copy.set(uuid=identity)
        write_vectors(folder, identity)
