"""The folder of a knowledge base: its files, the right to write, and whether it is undamaged."""

import json
import tempfile
import uuid
import zlib
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import srsly
from filelock import FileLock, Timeout

from ..errors import Errors
from ..io import FolderKind, write_file
from .database import Database
from .store import EntityStore
from .vectors import RowFiles, VectorRows

FORMAT = "spacy-arbo-el.kb"
VERSION = 2

MANIFEST = "manifest.json"
DATABASE = "entities.sqlite"
LOCK = "write.lock"

# Folders of at most this many bytes are read and checked in full whenever they are opened.
CHECKED = 1 << 27
# Databases of at most this many bytes get a checksum with each edit, others when they are closed.
SUMMED = 1 << 24
CHUNK = 1 << 22

Manifest = Dict[str, Any]

# The files of a knowledge base; SQLite's journal is there during an edit, or after a kill.
FILES = (
    r"manifest\.json|entities\.sqlite(-journal)?|write\.lock"
    r"|(vectors|owners)-\d+\.bin|index-\d+\.\w+"
)


def _names_in_folder(folder: Path) -> Optional[str]:
    """The pattern of the names in a knowledge base's folder; None where it is of something else."""
    try:
        shown = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return FILES if _is_sqlite(folder / DATABASE) else None
    return FILES if isinstance(shown, dict) and shown.get("format") == FORMAT else None


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


KB_FOLDER = FolderKind("a knowledge base", _names_in_folder)


def new_manifest(dtype: str) -> Manifest:
    """The manifest of an empty knowledge base.

    dtype: The type of its vectors.
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "uuid": uuid.uuid4().hex,
        "generation": 0,
        "entities": 0,
        "positions": 0,
        "rows": 0,
        "width": 0,
        "dtype": dtype,
        "files": 0,
        "encoder": "",
        "index": "",
        "settled": 0,
    }


def lock(path: Path) -> FileLock:
    """The right to write, held until it is released; ValueError where another program has it."""
    file_lock = FileLock(str(path / LOCK), timeout=0)
    try:
        file_lock.acquire()
    except Timeout:
        raise ValueError(Errors.E018.format(where=path)) from None
    return file_lock


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


def _open(path: Path, *, writable: bool) -> Tuple[Manifest, Database]:
    """The contents of manifest.json, and the database; ValueError where one is missing."""
    _check_files_exist(path)
    return _read_manifest(path), Database(path / DATABASE, writable=writable)


def stamp(path: Path) -> Optional[Tuple[int, ...]]:
    """A value that changes whenever the manifest is written. Nothing is read for it."""
    try:
        status = (path / MANIFEST).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def state(path: Path) -> Optional[Tuple[str, int]]:
    """The knowledge base's uuid and its number of edits; None where they can't be read."""
    try:
        shown = _read_manifest(path)
    except (ValueError, OSError):
        return None
    return str(shown.get("uuid")), int(shown.get("generation", 0))


def verify(path: Path) -> List[str]:
    """All problems of a folder, read from first to last byte; none where it is undamaged."""
    try:
        shown, database = _open(path, writable=False)
        try:
            with database.snapshot():
                problems = list(_problems(path, shown, database))
                if problems:
                    return problems
                return [*_damages(path, shown, database), *_trigram_problems(database)]
        finally:
            database.close()
    except (ValueError, OSError) as error:
        return [str(error)]


def show_manifest(path: Path, database: Database, limit: int = SUMMED) -> None:
    """Write the database's manifest into the folder, for people and for checks.

    limit: The checksum of a database of at most so many bytes is computed and written too.
    """
    manifest = database.manifest()
    crc = database.checksum() if database.size() <= limit else None
    write_manifest(path, manifest, crc)


def write_manifest(path: Path, manifest: Manifest, crc: Optional[int]) -> None:
    """Write manifest.json.

    crc: The checksum of the database; None where it was not computed.
    """
    manifest["index"] = index_entry(manifest)
    if crc is not None:
        manifest["crc"] = crc
    write_file(path / MANIFEST, srsly.json_dumps(manifest, indent=2).encode("utf8"))


def index_entry(manifest: Manifest) -> Optional[Dict[str, Any]]:
    """What the database's manifest holds about the search index; None where there is none."""
    return json.loads(manifest.get("index") or "null")


def row_files(path: Path, manifest: Manifest) -> Optional[RowFiles]:
    """The files of the vectors; None where nothing has been encoded."""
    if not manifest["files"]:
        return None
    return RowFiles(path, manifest["files"], manifest["uuid"], manifest["width"], manifest["dtype"])


def map_rows(path: Path, database: Database) -> VectorRows:
    """The vectors of a folder, mapped and not read."""
    manifest = database.manifest()
    files = row_files(path, manifest)
    return files.map(manifest["rows"]) if files else VectorRows(dtype=manifest["dtype"])


def file_checksum(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir() if file.is_file())


def _check_files_exist(path: Path) -> None:
    if (path / "entities.jsonl").is_file() and not (path / DATABASE).is_file():
        raise ValueError(Errors.E008.format(where=path, found=1))
    missing = [name for name in (MANIFEST, DATABASE) if not (path / name).is_file()]
    if missing:
        raise ValueError(Errors.E010.format(path=path, missing=", ".join(missing)))


def _read_manifest(path: Path) -> Manifest:
    try:
        shown = dict(srsly.read_json(path / MANIFEST))
    except (ValueError, TypeError, UnicodeDecodeError) as error:
        problem = f"{MANIFEST}: {error}"
        raise ValueError(Errors.E013.format(where=path, problem=problem)) from None
    if shown.get("format") != FORMAT or shown.get("version") != VERSION:
        raise ValueError(Errors.E008.format(where=path, found=shown.get("version")))
    return shown


def _problems(path: Path, shown: Manifest, database: Database) -> Iterator[str]:
    """Problems that show without reading everything: identities, counts and lengths."""
    manifest = database.manifest()
    if shown.get("uuid") != manifest.get("uuid"):
        yield f"{MANIFEST} and {DATABASE} are of two knowledge bases"
        return
    if shown.get("generation", 0) > manifest["generation"]:
        yield f"{DATABASE} is older than {MANIFEST}"
    if shown.get("generation") == manifest["generation"]:
        for key, value in manifest.items():
            if key != "index" and shown.get(key) != value:
                yield f"{MANIFEST} says {key} is {shown.get(key)!r}, {DATABASE} says {value!r}"
    files = row_files(path, manifest)
    if files is not None:
        yield from files.problems(manifest["rows"])
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
