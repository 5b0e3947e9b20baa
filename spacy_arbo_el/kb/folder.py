"""The folder of a knowledge base: its files, the right to write, and its verified opening.

``entities.sqlite`` holds the entities, each with a checksum. All else follows from them:
the vectors by encoder (``vector_cache.py``), which texts the entities have (``texts.py``), and
search indexes (``attached_index.py``).
"""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from ..base.errors import ArboError, Errors
from ..storage.files import is_temporary, remove_abandoned
from ..storage.folders import (
    LOCK,
    FolderKind,
    acquire,
    check_replaceable,
    link,
    replacing_folder,
    restore,
)
from ..storage.lines import check_exists, read_start
from .database import FORMAT, VERSION, Database
from .vector_files import DTYPES

DATABASE = "entities.sqlite"
# The files of spaCy's ``InMemoryLookupKB``.
SPACY_FILES = ("contents", "strings.json")
# A file that was changed less than so many nanoseconds ago may change again unnoticed.
RACY = 50_000_000

# Databases of at most this many bytes are checked in full whenever they are opened.
CHECKED = 1 << 27

# No count of ours comes near.
LARGEST = 1 << 40
_COUNTS = ("generation", "entities", "positions")
# The tables with positions of entities.
TABLES = ("entity", "name", "type", "changed")

# (type, name, table, statement) of what a database consists of
Schema = frozenset[tuple[str, str, str, str]]

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
    return FILES if read_start(folder / DATABASE, 16) == b"SQLite format 3\0" else None


KB_FOLDER = FolderKind("a knowledge base", _names_in_folder)


def is_derived(path: Path) -> bool:
    """Return whether a file in the folder of a knowledge base follows from its entities."""
    is_known = re.fullmatch(DERIVED, path.name) is not None
    return is_known and path.with_name(DATABASE).is_file()


@contextmanager
def replacing_kb(path: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """A folder to write a knowledge base to; see ``replacing_folder``.

    ValueError where another program is editing the one that is there.

    overwrite: Whether a knowledge base may be replaced. Otherwise ValueError where there is one.
    """
    check_new(path, overwrite=overwrite)
    held = lock(path) if (path / DATABASE).is_file() else None
    try:
        with replacing_folder(path, KB_FOLDER) as folder:
            yield folder
            carry_over(path, folder)
    finally:
        if held is not None:
            held.release()


def carry_over(path: Path, folder: Path) -> None:
    """Move the vectors in a folder to the one that replaces it.

    Texts may be the same.
    """
    for file in path.glob("vectors-*"):
        if not (folder / file.name).exists():
            link(file, folder / file.name)


def check_new(path: Path, *, overwrite: bool = False) -> None:
    """Raise ValueError if a folder cannot hold a new KB.

    overwrite: Whether a knowledge base that is there may be replaced.
    """
    restore(path)
    target = check_replaceable(path, KB_FOLDER)
    if not overwrite and target.is_dir() and any(target.iterdir()):
        raise ArboError(Errors.E034.format(path=path))


def find(path: Path) -> Path:
    """Absolute path of a folder. A replacement that was killed is undone first.

    FileNotFoundError where it does not exist, ValueError where it is a file.
    """
    path = path.absolute()
    restore(path)
    check_exists(path, "Check the path, or build a knowledge base there: spacy arbo kb build.")
    if not path.is_dir():
        raise ArboError(Errors.E035.format(path=path))
    return path


def is_of_spacy(path: Path) -> bool:
    """Return whether a folder was written by spaCy's ``InMemoryLookupKB``."""
    return all((path / name).is_file() for name in SPACY_FILES)


def lock(path: Path) -> FileLock:
    """The right to write, held until it is released. ValueError where another program has it."""
    check_files(path)
    file_lock = FileLock(str(path / LOCK))
    acquire(file_lock, Errors.E018.format(where=path))
    return file_lock


def check_files(path: Path) -> None:
    """Raise ValueError for links, devices or foreign journals. A file is a symbolic link, a device
    or a folder, or a journal names others.

    To read a link shows, and to write to it changes, files outside the folder: a stranger's folder
    may link to any file. So those of the caches of a hub, of DVC or of git-annex are copied first.
    """
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if not _USED.fullmatch(entry.name) or entry.is_file(follow_symlinks=False):
            continue
        if entry.is_symlink():
            raise ArboError(Errors.E042.format(where=path, name=entry.name))
        problem = f"{entry.name} is a folder or a device instead of a file"
        raise ArboError(Errors.E019.format(where=path, problems=problem))
    journal = path / f"{DATABASE}-journal"
    # A writer removes its journal at the end of each edit, also while this reads.
    with suppress(FileNotFoundError), journal.open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - len(_NAMES_ANOTHER_FILE), 0))
        if file.read() == _NAMES_ANOTHER_FILE:
            problem = f"{journal.name} names a file outside"
            raise ArboError(Errors.E019.format(where=path, problems=problem))


def stamp(path: Path) -> tuple[int, ...] | None:
    """A value that changes with each write; None for unknown. It is read from no file.

    It is unknown where the file was written at this moment, since the clock of files is coarse.
    """
    try:
        status = (path / DATABASE).stat()
    except OSError:
        return None
    if abs(time.time_ns() - status.st_mtime_ns) < RACY:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def state(path: Path) -> tuple[str, int] | None:
    """The knowledge base's uuid and its number of edits. None where they can't be read."""
    try:
        check_files(path)
        database = Database(path / DATABASE, writable=False)
        try:
            return identity(database)
        finally:
            database.close()
    except (ValueError, OSError):
        return None


def identity(database: Database) -> tuple[str, int]:
    """A knowledge base's uuid and its number of edits."""
    return str(database.get("uuid")), database.get("generation") or 0


def foreign_names(path: Path) -> list[str]:
    """Names of files that no knowledge base has, such as leftovers."""
    known = re.compile(rf"{FILES}|{re.escape(LOCK)}")
    return sorted(entry.name for entry in os.scandir(path) if not known.fullmatch(entry.name))


def remove_leftovers(path: Path) -> None:
    """Remove the files that killed writers have left. Only for who has the right to write."""
    for name in foreign_names(path):
        if is_temporary(name):
            remove_abandoned(path / name[1 : -len(f".{0:032x}.tmp")])


def open_database(path: Path, *, writable: bool) -> Database:
    """Check a folder's files and open its database.

    Raises ValueError where it is missing, damaged, cut off, or of something else. Databases of more
    than ``CHECKED`` bytes are not read in full for that; ``verify`` does so.
    """
    check_files(path)
    check_complete(path)
    database = Database(path / DATABASE, writable=writable)
    try:
        with database.snapshot():
            check_version(path, database)
            problems = database_problems(database)
            if not problems and database.size() <= CHECKED:
                problems = list(damages_of(database))
        if problems:
            raise ArboError(Errors.E019.format(where=path, problems="; ".join(problems)))
    except BaseException:
        database.close()
        raise
    return database


def database_problems(database: Database) -> list[str]:
    """Problems of schema or manifest."""
    found = list(schema_problems(database))
    if not found:
        found = [f"{DATABASE}: {one}" for one in manifest_problems(database.manifest())]
    return found[:5]


def manifest_problems(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Values that no knowledge base of ours has. They become parts of statements and sizes."""
    for key in _COUNTS:
        value = manifest.get(key)
        if type(value) is not int or not 0 <= value < LARGEST:
            yield f"{key} is {value!r:.60}"
    for key, pattern in (("uuid", r"[0-9a-f]{32}"), ("dtype", "|".join(DTYPES))):
        value = manifest.get(key)
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            yield f"{key} is {value!r:.60}"


def schema_problems(database: Database) -> Iterator[str]:
    """Foreign and missing tables, triggers and views."""
    found = _schema_of(database)
    expected = _expected_schema()
    names = sorted({name for _, name, _, _ in found ^ expected})
    if names:
        listed = ", ".join(f"{name!r:.60}" for name in names[:3])
        yield f"{DATABASE} has other tables, triggers or views than a knowledge base ({listed})"


@lru_cache(maxsize=1)
def _expected_schema() -> Schema:
    database = Database()
    try:
        return _schema_of(database)
    finally:
        database.close()


def _schema_of(database: Database) -> Schema:
    rows = database.rows("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
    return frozenset(tuple(map(str, row)) for row in rows)  # type: ignore[misc]


def check_complete(path: Path) -> None:
    """Raise ValueError for a folder without a database, with what it seems to be instead."""
    if (path / DATABASE).is_file():
        return
    if (path / "entities.jsonl").is_file():
        raise ArboError(Errors.E008.format(where=path, found=1))
    if is_of_spacy(path):
        raise ArboError(Errors.E040.format(path=path))
    folders = [path / "kb", *sorted(path.glob("*/kb"))]
    inner = [folder for folder in folders if (folder / DATABASE).is_file()]
    if inner:
        raise ArboError(Errors.E029.format(path=path, inner=", ".join(map(str, inner))))
    raise ArboError(Errors.E010.format(path=path, missing=DATABASE))


def check_version(where: object, database: Database) -> None:
    """Raise ValueError for a knowledge base of another version."""
    tables = database.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'manifest'")
    if tables and (database.get("format"), database.get("version")) != (FORMAT, VERSION):
        found = f"{database.get('version')!r:.20} in {DATABASE}"
        raise ArboError(Errors.E008.format(where=where, found=found))


def damages_of(database: Database) -> Iterator[str]:
    """Damages of pages, indexes and counts. A damaged entity shows when it is read."""
    (result,) = database.rows("PRAGMA integrity_check(1)")[0]
    if result != "ok":
        yield f"{DATABASE} is damaged: {result}"
        return
    manifest = database.manifest()
    counts = {
        "entities": "SELECT count(*) FROM entity",
        "positions": "SELECT coalesce(max(position) + 1, 0) FROM changed",
    }
    for key, statement in counts.items():
        found = database.value(statement)
        if found != manifest[key]:
            yield f"{DATABASE} holds {found} {key} instead of {manifest[key]}"
    limits = [(table, "position", manifest["positions"]) for table in TABLES]
    limits.append(("changed", "generation", manifest["generation"] + 1))
    for table, column, limit in limits:
        first, last = database.rows(f"SELECT min({column}), max({column}) FROM {table}")[0]
        if last is not None and not 0 <= first <= last < limit:
            yield f"{DATABASE} has numbers out of range in the table {table}"
