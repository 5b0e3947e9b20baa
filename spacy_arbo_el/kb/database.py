"""The SQLite database of a knowledge base, and its verification.

Each process has one connection, and each edit is one transaction. Threads share the connection, one
statement at a time: another thread never sees half an edit. ``store.py`` has the entities in it.
"""

import json
import os
import re
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..base.errors import Errors

SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf8")
# The name of its file.
DATABASE = "entities.sqlite"
FORMAT = "spacy-arbo-el.kb"
VERSION = 6
# The types in which vectors are stored.
DTYPES = ("float32", "float16")

# A condition on values that are given as a JSON array, see ``Database.rows_among``.
IN = "IN (SELECT value FROM json_each(?))"

# Words in SQLite's errors that say that the disk is at fault and not the file.
OF_THE_DISK = ("full", "locked", "disk I/O", "readonly", "unable to open", "too big")

# The first version of SQLite that can index trigrams.
OLDEST = (3, 34, 0)

# The size of the cache of pages, in KiB.
CACHE = 65536

# Databases of at most this many bytes are copied into memory, and larger ones into a file.
IN_MEMORY = 1 << 26

_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()


class Database:
    """A connection that survives forks, and whose errors name the knowledge base.

    path: The SQLite file; None for a database in memory.
    writable: Whether statements may change the file.
    schema: Whether a new database in memory gets its tables.
    lock: A thread has it for a statement, or for a transaction.
    """

    def __init__(
        self, path: Path | None = None, *, writable: bool = True, schema: bool = True
    ):
        self.path = path
        self.writable = writable
        # The file that errors name: of a copy in memory, that which it was read from.
        self.origin = path
        self.lock = threading.RLock()
        _databases.add(self)
        self._connection: sqlite3.Connection | None = None
        self._process = -1
        self._depth = 0
        self._closed = False
        if sqlite3.sqlite_version_info < OLDEST:
            raise ImportError(Errors.E027.format(found=sqlite3.sqlite_version))
        if path is None and schema:
            self.connection.executescript(SCHEMA)

    @property
    def where(self) -> str:
        if self.origin is None:
            return "memory"
        return str(self.origin.parent)

    @property
    def connection(self) -> sqlite3.Connection:
        if self._closed:
            raise Errors.E028(where=self.where)
        # SQLite's locks don't survive a fork. A database in memory has no locks.
        if self._connection is None or (self.path and self._process != os.getpid()):
            self._connection = self._connect()
            self._process = os.getpid()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        name = ":memory:"
        if self.path is not None:
            # Even a reader may have to roll back what a killed writer left.
            mode = "rw" if os.access(self.path, os.W_OK) else "ro"
            name = f"{self.path.absolute().as_uri()}?mode={mode}"
        with self.reading():
            connection = sqlite3.connect(
                name,
                timeout=60,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
            for pragma in (
                f"cache_size = -{CACHE}",
                # Otherwise a long edit would lock readers out before it is committed.
                "cache_spill = OFF",
                # The file may come from strangers: its schema runs no functions that do harm.
                "trusted_schema = OFF",
                "cell_size_check = ON",
                f"query_only = {not self.writable:d}",
            ):
                connection.execute(f"PRAGMA {pragma}")
        return connection

    def close(self) -> None:
        # SQLite crashes where a connection is closed while another thread uses it.
        with self.lock:
            if self._connection is not None and (
                not self.path or self._process == os.getpid()
            ):
                self._connection.close()
            self._connection = None
            self._closed = True

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Name the knowledge base in errors of reading and writing."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        # A damaged schema may be part of a message that is no text.
        except (sqlite3.DatabaseError, OverflowError, UnicodeDecodeError) as error:
            name = self.origin.name if self.origin else "SQLite"
            problem = f"{name}: {error}"
            if any(hint in str(error) for hint in OF_THE_DISK):
                raise OSError(
                    Errors.E015.format(where=self.where, problem=problem)
                ) from error
            raise Errors.E013(where=self.where, problem=problem) from error

    def rows(
        self, statement: str, values: Sequence[Any] = ()
    ) -> list[tuple[Any, ...]]:
        with self.lock, self.reading():
            return self.connection.execute(statement, values).fetchall()

    def rows_among(
        self, statement: str, values: Iterable[Any]
    ) -> list[tuple[Any, ...]]:
        """All rows that a statement with ``IN`` returns for values."""
        return self.rows(statement, (json.dumps(list(values)),))

    def value(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """First value of the first row; None without rows."""
        rows = self.rows(statement, values)
        if rows:
            return rows[0][0]
        return None

    def many(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement with the values of each row."""
        with self.lock, self.reading():
            self.connection.executemany(statement, rows)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Several statements, all or none. Within another one, a part that may fail alone."""
        with self.lock:
            name = f"part{self._depth}"
            begin, commit, undo = (
                (f"SAVEPOINT {name}", f"RELEASE {name}", f"ROLLBACK TO {name}")
                if self._depth
                else ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
            )
            self.rows(begin)
            self._depth += 1
            try:
                yield
                self.rows(commit)
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute(undo)
                raise
            finally:
                self._depth -= 1

    @property
    def in_transaction(self) -> bool:
        return self._depth > 0

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Keep the file unchanged for the duration. Writers wait, and other threads."""
        with self.lock:
            self.rows("BEGIN")
            try:
                self.rows("SELECT count(*) FROM manifest")
                yield
            finally:
                self.connection.execute("ROLLBACK")

    @contextmanager
    def bulk_loading(self) -> Iterator[None]:
        """Write without waiting, and index names at the end. A kill may damage the new file."""
        for pragma in (
            "journal_mode = MEMORY",
            "synchronous = OFF",
            "cache_spill = ON",
        ):
            self.rows(f"PRAGMA {pragma}")
        self.rows("DROP INDEX name_folded")
        yield
        self.rows("CREATE INDEX name_folded ON name (folded)")

    def size(self) -> int:
        """The size of all pages, in bytes."""
        return self.value("PRAGMA page_count") * self.value("PRAGMA page_size")

    @property
    def is_large(self) -> bool:
        """Return whether copies are files."""
        return self.size() > IN_MEMORY

    def manifest(self) -> dict[str, Any]:
        return dict(self.rows("SELECT key, value FROM manifest"))

    def get(self, key: str) -> Any:
        """A value of the manifest. None where it has none of that name."""
        return self.value("SELECT value FROM manifest WHERE key = ?", (key,))

    def set(self, **values: Any) -> None:
        self.many("INSERT OR REPLACE INTO manifest VALUES (?, ?)", values.items())

    def copy(self, path: Path | None = None) -> "Database":
        """A copy in a new file; without a path in memory, or in a temporary file if large."""
        is_private = path is None
        if is_private and self.is_large:
            path = Path(tempfile.mkdtemp()) / DATABASE
        if path is not None:
            path.touch(exist_ok=False)
        target = Database(path, schema=False)
        if is_private and path is not None:
            weakref.finalize(target, _remove_in, os.getpid(), path.parent)
        with self.lock, self.reading(), target.reading():
            # Nobody reads a copy that is not complete.
            target.connection.execute("PRAGMA synchronous = OFF")
            self.connection.backup(target.connection)
        target.origin = self.origin if is_private else path
        return target


def _remove_in(process: int, folder: Path) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


# Databases of at most this many bytes are checked in full whenever they are opened.
CHECKED = 1 << 27
# No count of ours comes near.
LARGEST = 1 << 40
_COUNTS = ("generation", "entities", "positions")
# The tables with positions of entities.
_TABLES = ("entity", "name", "type", "changed")


def check_database(
    database: Database, where: object, most_bytes: int = CHECKED
) -> None:
    """Raise ValueError for a database of another version, of something else, or damaged.

    most_bytes: Larger ones are not read in full for that; ``verify`` does so.
    """
    tables = database.rows(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'manifest'"
    )
    if tables and (database.get("format"), database.get("version")) != (
        FORMAT,
        VERSION,
    ):
        version = f"{database.get('version')!r:.20} in {DATABASE}"
        raise Errors.E008(where=where, found=version)
    problems = list(_schema_problems(database)) or list(
        _manifest_problems(database.manifest())
    )
    if not problems and database.size() <= most_bytes:
        problems = list(damages_of(database))
    if problems:
        raise Errors.E019(where=where, problems="; ".join(problems[:5]))


def _manifest_problems(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Values that no knowledge base of ours has. They become parts of statements and sizes."""
    wrong = [
        key
        for key in _COUNTS
        if type(manifest.get(key)) is not int or not 0 <= manifest[key] < LARGEST
    ]
    patterns = {"uuid": r"[0-9a-f]{32}", "dtype": "|".join(DTYPES)}
    wrong += [
        key
        for key, pattern in patterns.items()
        if not isinstance(manifest.get(key), str)
        or not re.fullmatch(pattern, manifest[key])
    ]
    for key in wrong:
        yield f"{DATABASE}: {key} is {manifest.get(key)!r:.60}"


def _schema_problems(database: Database) -> Iterator[str]:
    names = sorted({row[1] for row in _schema_of(database) ^ _expected_schema()})
    if names:
        listed = ", ".join(f"{name!r:.60}" for name in names[:3])
        yield f"{DATABASE} has other tables, triggers or views than a knowledge base ({listed})"


@lru_cache(maxsize=1)
def _expected_schema() -> frozenset[tuple[str, ...]]:
    with closing(Database()) as database:
        return _schema_of(database)


def _schema_of(database: Database) -> frozenset[tuple[str, ...]]:
    """(type, name, table, statement) of what a database consists of."""
    rows = database.rows(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master"
    )
    return frozenset(tuple(map(str, row)) for row in rows)


def damages_of(database: Database) -> Iterator[str]:
    """Damages of pages, indexes and counts. A damaged entity shows when it is read."""
    result = database.value("PRAGMA integrity_check(1)")
    if result != "ok":
        yield f"{DATABASE} is damaged: {result}"
        return
    manifest = database.manifest()
    counts = {
        "entities": "SELECT count(*) FROM entity",
        "positions": "SELECT coalesce(max(position) + 1, 0) FROM changed",
    }
    for key, statement in counts.items():
        count = database.value(statement)
        if count != manifest[key]:
            yield f"{DATABASE} holds {count} {key} instead of {manifest[key]}"
    limits = [(table, "position", manifest["positions"]) for table in _TABLES]
    limits.append(("changed", "generation", manifest["generation"] + 1))
    for table, column, limit in limits:
        first, last = database.rows(
            f"SELECT min({column}), max({column}) FROM {table}"
        )[0]
        if last is not None and not 0 <= first <= last < limit:
            yield f"{DATABASE} has numbers out of range in the table {table}"


# A process is forked between statements: neither SQLite nor the locks are left as another thread,
# which does not exist in the new process, had them.
_forking: list[Database] = []


def _before_fork() -> None:
    _forking.extend(_databases)
    for database in _forking:
        database.lock.acquire()


def _after_fork() -> None:
    while _forking:
        _forking.pop().lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
