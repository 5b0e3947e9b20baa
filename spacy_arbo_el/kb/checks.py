"""Whether the folder of a knowledge base is undamaged, and what it seems to be."""

import os
import re
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import FrozenSet, Iterator, List, Tuple

from ..errors import Errors
from .database import Database
from .folder import (
    DATABASE,
    MANIFEST,
    check_plain_files,
    file_checksum,
    find,
    foreign_names,
    is_of_spacy,
    read_manifest,
    row_files,
)
from .manifest import Manifest, index_entry, manifest_problems
from .store import EntityStore

# Folders of at most this many bytes are read and checked in full whenever they are opened.
CHECKED = 1 << 27

# (type, name, table, statement) of what a database consists of
Schema = FrozenSet[Tuple[str, str, str, str]]
# The two indexes of names are divided at a number that differs.
_DIVIDED = re.compile(r"(?<=WHERE number (<=|> )) ?\d+$")


def open_database(path: Path, *, writable: bool) -> Database:
    """The database of a folder, after a check of its files.

    Raises ValueError where a file is missing, damaged, cut off, or of another knowledge base.
    Folders of more than ``CHECKED`` bytes are not read in full for that; ``verify`` does so.
    """
    shown, database = _open(path, writable=writable)
    try:
        with database.snapshot():
            problems = list(_problems(path, shown, database))
            if not problems and _size(path) <= CHECKED:
                problems = list(_damages(path, shown, database))
        if problems:
            raise ValueError(Errors.E019.format(where=path, problems="; ".join(problems)))
    except BaseException:
        database.close()
        raise
    return database


def verify(path: Path) -> List[str]:
    """All problems of a folder, read from first to last byte; none where it is undamaged.

    Files that don't belong to it are problems too.
    """
    try:
        path = find(Path(path))
        shown, database = _open(path, writable=False)
        try:
            with database.snapshot():
                problems = list(_problems(path, shown, database))
                if problems:
                    return problems
                return [
                    *_damages(path, shown, database),
                    *_trigram_problems(database),
                    *_foreign_files(path, database),
                ]
        finally:
            database.close()
    except (ValueError, OSError) as error:
        return [str(error)]


def schema_problems(database: Database) -> Iterator[str]:
    """Tables, triggers and views that no knowledge base of ours has, and those that are missing."""
    found, expected = _schema_of(database), _expected_schema()
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
    return frozenset(
        (str(kind), str(name), str(table), _DIVIDED.sub(" N", str(sql)))
        for kind, name, table, sql in rows
    )


def _open(path: Path, *, writable: bool) -> Tuple[Manifest, Database]:
    """The contents of manifest.json, and the database; ValueError where one is missing."""
    check_plain_files(path)
    check_complete(path)
    shown = read_manifest(path)
    _check_journal(path)
    return shown, Database(path / DATABASE, writable=writable)


def _size(path: Path) -> int:
    total = 0
    for file in path.iterdir():
        # A writer that is at work removes its journal.
        with suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def check_complete(path: Path) -> None:
    """ValueError where a folder lacks a file that every knowledge base has."""
    if (path / "entities.jsonl").is_file() and not (path / DATABASE).is_file():
        raise ValueError(Errors.E008.format(where=path, found=1))
    missing = [name for name in (MANIFEST, DATABASE) if not (path / name).is_file()]
    if missing and is_of_spacy(path):
        raise ValueError(Errors.E040.format(path=path))
    folders = [path / "kb", *sorted(path.glob("*/kb"))]
    inner = [folder for folder in folders if (folder / DATABASE).is_file()]
    if missing and inner:
        raise ValueError(Errors.E029.format(path=path, inner=", ".join(map(str, inner))))
    if missing:
        raise ValueError(Errors.E010.format(path=path, missing=", ".join(missing)))


# What ends a journal that names another file, which SQLite may remove when it rolls back.
_NAMES_ANOTHER_FILE = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"


def _check_journal(path: Path) -> None:
    """ValueError where the journal of a killed writer is none of ours."""
    journal = path / f"{DATABASE}-journal"
    # A writer removes its journal at the end of each edit, also while this reads.
    with suppress(FileNotFoundError), journal.open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - len(_NAMES_ANOTHER_FILE), 0))
        if file.read() == _NAMES_ANOTHER_FILE:
            problem = f"{journal.name} names a file outside"
            raise ValueError(Errors.E019.format(where=path, problems=problem))


def _problems(path: Path, shown: Manifest, database: Database) -> Iterator[str]:
    """Problems that show without reading everything: identities, counts and lengths."""
    problems = list(schema_problems(database))
    if problems:
        yield from problems
        return
    manifest = database.manifest()
    problems = [f"{DATABASE}: {problem}" for problem in manifest_problems(manifest)]
    if problems:
        yield from problems
        return
    if shown.get("uuid") != manifest["uuid"]:
        yield f"{MANIFEST} and {DATABASE} are of two knowledge bases"
        return
    if shown["generation"] > manifest["generation"]:
        yield f"{DATABASE} is older than {MANIFEST}"
    if shown["generation"] == manifest["generation"]:
        for key, value in manifest.items():
            if key != "index" and shown.get(key) != value:
                yield f"{MANIFEST} says {key} is {shown.get(key)!r:.60}, {DATABASE} says {value!r}"
    files = row_files(path, manifest)
    if files is not None:
        yield from files.problems(manifest["rows"], manifest["positions"])
    elif manifest["rows"]:
        yield f"{DATABASE} has {manifest['rows']} rows without files"
    index = index_entry(manifest)
    if index is not None:
        file = path / index["file"]
        if not file.is_file():
            yield f"{file.name} is missing"
        elif file.stat().st_size != index["size"]:
            yield f"{file.name} has {file.stat().st_size} bytes instead of {index['size']}"


def _damages(path: Path, shown: Manifest, database: Database) -> Iterator[str]:
    """Problems that show when everything is read."""
    manifest = database.manifest()
    expected = shown.get("crc") if shown.get("generation") == manifest["generation"] else None
    crc = database.checksum() if expected is not None else None
    if crc is None:
        yield from _database_damages(database)
    elif crc != expected:
        yield f"{DATABASE} is damaged"
    else:
        yield from _row_problems(database)
    files = row_files(path, manifest)
    if files is not None:
        blocks = database.rows("SELECT number, vectors, owners FROM block ORDER BY number")
        yield from files.damaged(manifest["rows"], blocks)
    index = index_entry(manifest)
    if index is not None and file_checksum(path / index["file"]) != index["crc"]:
        yield f"{index['file']} is damaged"


def _database_damages(database: Database) -> Iterator[str]:
    (result,) = database.rows("PRAGMA integrity_check(1)")[0]
    if result != "ok":
        yield f"{DATABASE} is damaged: {result}"
        return
    store = EntityStore(database)
    try:
        count = sum(1 for _ in store.items())
    except (ValueError, OSError) as error:
        yield str(error)
        return
    if count != len(store):
        yield f"{DATABASE} holds {count} entities instead of {len(store)}"
    orphans = database.value(
        "SELECT (SELECT count(*) FROM owned WHERE position NOT IN (SELECT position FROM entity))"
        " + (SELECT count(*) FROM name WHERE position NOT IN (SELECT position FROM entity))"
        " + (SELECT count(*) FROM redirect WHERE new NOT IN (SELECT id FROM entity))"
    )
    unmarked = database.value(
        "SELECT count(*) FROM entity WHERE position NOT IN (SELECT position FROM owned)"
        " AND position NOT IN (SELECT position FROM dirty)"
    )
    if unmarked:
        yield f"{DATABASE} holds {unmarked} entities without vectors that are not marked for them"
    if orphans:
        yield f"{DATABASE} holds {orphans} rows, names or redirects of entities that are gone"
    yield from _row_problems(database)


def _row_problems(database: Database) -> Iterator[str]:
    """Numbers of rows and entities that are out of range."""
    manifest = database.manifest()
    rows, positions = manifest["rows"], manifest["positions"]
    for statement, limit in (
        ("SELECT min(position), max(position) + 1 FROM entity", positions),
        ("SELECT min(position), max(position) + 1 FROM name", positions),
        ("SELECT min(position), max(position) + 1 FROM type", positions),
        ("SELECT min(position), max(position) + 1 FROM dirty", positions),
        ("SELECT min(min(first, count)), max(first + count) FROM owned", rows),
        ("SELECT min(min(first, count)), max(first + count) FROM dead", rows),
        ("SELECT min(row), max(row) + 1 FROM text", rows),
    ):
        first, end = database.rows(statement)[0]
        if end is not None and not 0 <= first <= end <= limit:
            yield f"{DATABASE} has numbers out of range in the table {statement.split()[-1]}"


def _trigram_problems(database: Database) -> Iterator[str]:
    """Whether the index of trigrams covers exactly the names in the database."""
    # The check is a statement that writes, so it is made on a copy.
    with tempfile.TemporaryDirectory() as place:
        copy = database.copy(Path(place) / DATABASE)
        try:
            copy.rows("INSERT INTO trigram (trigram) VALUES ('integrity-check')")
        except (ValueError, OSError) as error:
            yield f"{DATABASE} has an index of trigrams that differs from its names ({error})"
        finally:
            copy.close()


def _foreign_files(path: Path, database: Database) -> Iterator[str]:
    for name in foreign_names(path, database.manifest()):
        yield f"{name} does not belong to the knowledge base"
