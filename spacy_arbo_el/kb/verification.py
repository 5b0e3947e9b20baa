"""Verified opening of a knowledge base's database."""

import re
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import FrozenSet, Iterator, List, Tuple

import numpy as np

from ..errors import Errors
from .database import Database
from .folder import (
    DATABASE,
    check_files,
    file_checksum,
    find,
    foreign_names,
    is_of_spacy,
    vector_file,
)
from .manifest import FORMAT, VERSION, Manifest, index_entry, manifest_problems
from .store import EntityStore

# Folders of at most this many bytes are read and checked in full whenever they are opened.
CHECKED = 1 << 27

# (type, name, table, statement) of what a database consists of
Schema = FrozenSet[Tuple[str, str, str, str]]
# The two indexes of names are divided at a number that differs.
_DIVIDED = re.compile(r"(?<=WHERE number (<=|> )) ?\d+$")


def open_database(path: Path, *, writable: bool) -> Database:
    """Check a folder's files and open its database.

    Raises ValueError where a file is missing, damaged, cut off, or of another knowledge base.
    Folders of more than ``CHECKED`` bytes are not read in full for that; ``verify`` does so.
    """
    check_files(path)
    check_complete(path)
    database = Database(path / DATABASE, writable=writable)
    try:
        with database.snapshot():
            check_version(path, database)
            problems = list(_problems(path, database))
            if not problems and _size(path) <= CHECKED:
                problems = list(_damages(path, database))
        if problems:
            raise ValueError(Errors.E019.format(where=path, problems="; ".join(problems)))
    except BaseException:
        database.close()
        raise
    return database


def verify(path: Path) -> List[str]:
    """Read a whole folder and list its problems. Empty where it is undamaged.

    Files that don't belong to it are problems too.
    """
    try:
        path = find(Path(path))
        database = open_database(path, writable=False)
        try:
            with database.snapshot():
                foreign = foreign_names(path, database.manifest())
                return [
                    *(_damages(path, database) if _size(path) > CHECKED else ()),
                    *_trigram_problems(database),
                    *(f"{name} does not belong to the knowledge base" for name in foreign),
                ]
        finally:
            database.close()
    except (ValueError, OSError) as error:
        return [str(error)]


def database_problems(database: Database) -> List[str]:
    """Problems of schema, manifest or owners of rows."""
    problems = list(schema_problems(database))
    if not problems:
        found = manifest_problems(database.manifest())
        problems = [f"{DATABASE}: {problem}" for problem in found][:5]
    return problems or list(owner_problems(database))


def schema_problems(database: Database) -> Iterator[str]:
    """Foreign and missing tables, triggers and views."""
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


def _size(path: Path) -> int:
    total = 0
    for file in path.iterdir():
        # A writer that is at work removes its journal.
        with suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def check_complete(path: Path) -> None:
    """Raise ValueError if a folder lacks the database. It says what the folder seems to be
    instead.
    """
    if (path / DATABASE).is_file():
        return
    if (path / "entities.jsonl").is_file():
        raise ValueError(Errors.E008.format(where=path, found=1))
    if is_of_spacy(path):
        raise ValueError(Errors.E040.format(path=path))
    folders = [path / "kb", *sorted(path.glob("*/kb"))]
    inner = [folder for folder in folders if (folder / DATABASE).is_file()]
    if inner:
        raise ValueError(Errors.E029.format(path=path, inner=", ".join(map(str, inner))))
    raise ValueError(Errors.E010.format(path=path, missing=DATABASE))


def check_version(where: object, database: Database) -> None:
    """Raise ValueError for a knowledge base of another version."""
    tables = database.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'manifest'")
    if tables and database.get("format") == FORMAT and database.get("version") == 2:
        raise ValueError(Errors.E044.format(path=where))
    if tables and (database.get("format"), database.get("version")) != (FORMAT, VERSION):
        found = f"{database.get('version')!r:.20} in {DATABASE}"
        raise ValueError(Errors.E008.format(where=where, found=found))


def _problems(path: Path, database: Database) -> Iterator[str]:
    """Problems that show without reading everything: identities, counts and lengths."""
    problems = database_problems(database)
    if problems:
        yield from problems
        return
    manifest = database.manifest()
    file = vector_file(path, manifest)
    if file is not None:
        yield from file.problems(manifest["rows"])
    elif manifest["rows"]:
        yield f"{DATABASE} has {manifest['rows']} rows without files"
    index = index_entry(manifest)
    if index is not None:
        place = path / index["file"]
        if not place.is_file():
            yield f"{place.name} is missing"
        elif place.stat().st_size != index["size"]:
            yield f"{place.name} has {place.stat().st_size} bytes instead of {index['size']}"


def owners_of(database: Database) -> np.ndarray:
    """Entity that each row was added for: (rows,) int64. -1 for none."""
    parts = database.rows("SELECT positions FROM owner ORDER BY first")
    return np.frombuffer(b"".join(part for (part,) in parts), dtype=np.int64)


def owner_problems(database: Database) -> Iterator[str]:
    """Find rows without a valid owner. The owner is an entity, or -1 for a text that can't be
    read.
    """
    manifest, end = database.manifest(), 0
    for first, part in database.rows("SELECT first, positions FROM owner ORDER BY first"):
        if first != end or not isinstance(part, bytes) or len(part) % 8:
            break
        end += len(part) // 8
    else:
        owners = owners_of(database) if end == manifest["rows"] else None
        if owners is not None:
            if len(owners) and not -1 <= owners.min() <= owners.max() < manifest["positions"]:
                yield f"{DATABASE} has owners that are no entities"
            return
    yield f"{DATABASE} has other owners than rows of vectors"


def _damages(path: Path, database: Database) -> Iterator[str]:
    """Problems that show when everything is read."""
    manifest, sealed = database.manifest(), database.sealed
    found = database.checksum() if sealed else 0
    if not found:
        yield from _database_damages(database)
    elif found != sealed:
        yield f"{DATABASE} is damaged"
    else:
        yield from _row_problems(manifest, database)
    file = vector_file(path, manifest)
    if file is not None and file.checksum(manifest["rows"]) != manifest["crc"]:
        yield f"{file.path.name} is damaged"
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
    if orphans:
        yield f"{DATABASE} holds {orphans} rows, names or redirects of entities that are gone"
    unmarked = database.value(
        "SELECT count(*) FROM entity WHERE position NOT IN (SELECT position FROM owned)"
        " AND position NOT IN (SELECT position FROM dirty)"
    )
    if unmarked:
        yield f"{DATABASE} holds {unmarked} entities without vectors that are not marked for them"
    yield from _row_problems(database.manifest(), database)


def _row_problems(manifest: Manifest, database: Database) -> Iterator[str]:
    """Numbers of rows and entities that are out of range."""
    rows, positions = manifest["rows"], manifest["positions"]
    for statement, limit in (
        *((f"SELECT min(position), max(position) + 1 FROM {table}", positions) for table in TABLES),
        ("SELECT min(min(first, count)), max(first + count) FROM owned", rows),
        ("SELECT min(min(first, count)), max(first + count) FROM dead", rows),
        ("SELECT min(row), max(row) + 1 FROM text", rows),
    ):
        first, end = database.rows(statement)[0]
        if end is not None and not 0 <= first <= end <= limit:
            yield f"{DATABASE} has numbers out of range in the table {statement.split()[-1]}"


# Those with positions of entities.
TABLES = ("entity", "name", "type", "dirty")


def _trigram_problems(database: Database) -> Iterator[str]:
    """Find deviations of the trigram index from the names."""
    # The check is a statement that writes, so it is made on a copy.
    with tempfile.TemporaryDirectory() as place:
        copy = database.copy(Path(place) / DATABASE)
        try:
            copy.rows("INSERT INTO trigram (trigram) VALUES ('integrity-check')")
        except (ValueError, OSError) as error:
            yield f"{DATABASE} has an index of trigrams that differs from its names ({error})"
        finally:
            copy.close()
