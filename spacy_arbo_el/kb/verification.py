"""Verified opening of a knowledge base's database."""

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..base.errors import ArboError, Errors
from .attached_index import index_problems
from .database import FORMAT, VERSION, Database
from .folder import DATABASE, check_files, find, foreign_names, is_of_spacy
from .store import EntityStore
from .texts import TextRows, file_of
from .vector_cache import VectorCache, VectorFolder, read_header
from .vectors import DTYPES

# Databases of at most this many bytes are checked in full whenever they are opened.
CHECKED = 1 << 27

# No count of ours comes near.
LARGEST = 1 << 40
_COUNTS = ("generation", "entities", "positions")
# The tables with positions of entities.
TABLES = ("entity", "name", "type", "changed")

# (type, name, table, statement) of what a database consists of
Schema = frozenset[tuple[str, str, str, str]]


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
                problems = list(_damages(database))
        if problems:
            raise ArboError(Errors.E019.format(where=path, problems="; ".join(problems)))
    except BaseException:
        database.close()
        raise
    return database


def verify(path: Path) -> list[str]:
    """Read a whole folder and list its problems. Empty where it is undamaged.

    Files that don't belong to it are problems too.
    """
    try:
        path = find(Path(path))
        database = open_database(path, writable=False)
        try:
            with database.snapshot():
                foreign = foreign_names(path)
                return [
                    *(_damages(database) if database.size() > CHECKED else ()),
                    *_entity_problems(database),
                    *_trigram_problems(database),
                    *_derived_problems(path),
                    *(f"{name} does not belong to the knowledge base" for name in foreign),
                ]
        finally:
            database.close()
    except (ValueError, OSError) as error:
        return [str(error)]


def database_problems(database: Database) -> list[str]:
    """Problems of schema or manifest."""
    found = list(schema_problems(database))
    if not found:
        found = [f"{DATABASE}: {one}" for one in manifest_problems(database.manifest())]
    return found[:5]


def _derived_problems(path: Path) -> Iterator[str]:
    """Damages of what follows from the entities. It is made again where it is used."""
    for keys in sorted(path.glob("vectors-*.keys")):
        header, rows = read_header(keys), keys.with_suffix(".bin").name
        if header is None or header[0].name != keys.stem:
            yield f"{keys.name} or {rows} is damaged: it has another header"
            continue
        cache = VectorCache(header[0], VectorFolder(path), most_checked=sys.maxsize)
        if cache.damage:
            yield f"{keys.name} or {rows} is damaged: {cache.damage}"
    for texts in sorted(path.glob("texts-*")):
        try:
            if file_of(TextRows.from_bytes(texts.read_bytes()).identity) != texts.name:
                yield f"{texts.name} is of other texts"
        except ValueError as error:
            yield f"{texts.name} is damaged: {error}"
    yield from index_problems(path)


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
    return frozenset(tuple(map(str, row)) for row in rows)  # type: ignore[misc]


def check_complete(path: Path) -> None:
    """Raise ValueError if a folder lacks the database. It says what the folder seems to be
    instead.
    """
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


def _damages(database: Database) -> Iterator[str]:
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


def _entity_problems(database: Database) -> Iterator[str]:
    """Entities whose checksum is wrong."""
    try:
        for _ in EntityStore(database):
            pass
    except (ValueError, OSError) as error:
        yield str(error)


def _trigram_problems(database: Database) -> Iterator[str]:
    """Find deviations of the trigram index from the names."""
    # The check is a statement that writes, so it is made on a copy.
    with tempfile.TemporaryDirectory() as place:
        copy = database.copy(Path(place) / DATABASE)
        try:
            copy.rows("INSERT INTO trigram (trigram, rank) VALUES ('integrity-check', 1)")
        except (ValueError, OSError) as error:
            yield f"{DATABASE} has an index of trigrams that differs from its names ({error})"
        finally:
            copy.close()
