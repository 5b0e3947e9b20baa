"""A knowledge base's folder: what lies in it, who may write, and whether it holds together."""

import json
import tempfile
import zlib
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import srsly
from filelock import FileLock, Timeout

from ..errors import Errors
from ..io import write_file
from .database import Database
from .store import EntityStore
from .vectors import RowFiles

FORMAT = "spacy-arbo-el.kb"
VERSION = 2

MANIFEST = "manifest.json"
DATABASE = "entities.sqlite"
LOCK = "write.lock"

# Folders up to this size are checked byte by byte whenever they are opened.
CHECKED = 1 << 27
# Databases up to this size get a checksum with each edit, others when they are saved as a whole.
SUMMED = 1 << 24
CHUNK = 1 << 22


def lock(path: Path) -> FileLock:
    """The right to write, held until it is released; ValueError where another program has it."""
    found = FileLock(str(path / LOCK), timeout=0)
    try:
        found.acquire()
    except Timeout:
        raise ValueError(Errors.E018.format(where=path)) from None
    return found


def open_database(path: Path, *, writable: bool) -> Database:
    """The database of a folder, after a look at what belongs to it.

    Raises ValueError where a file is missing, damaged, cut off, or of another knowledge base.
    Folders of more than ``CHECKED`` bytes are not read for that: ``verify`` does.
    """
    shown, database = _opened(path, writable=writable)
    try:
        with database.snapshot():
            found = list(_problems(path, shown, database))
            if not found and _size(path) <= CHECKED:
                found = list(_damages(path, shown, database))
        if found:
            raise ValueError(Errors.E019.format(where=path, problems="; ".join(found)))
    except BaseException:
        database.close()
        raise
    return database


def _opened(path: Path, *, writable: bool) -> Tuple[Dict[str, Any], Database]:
    """What a folder's manifest shows, and its database; ValueError where one is missing."""
    _check_is_there(path)
    return _read_manifest(path), Database(path / DATABASE, writable=writable)


def stamp(path: Path) -> Optional[Tuple[int, ...]]:
    """Changes whenever the manifest is written; costs no reading."""
    try:
        found = (path / MANIFEST).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def state(path: Path) -> Optional[Tuple[str, int]]:
    """Which knowledge base a folder holds and how often it has been edited, None if unreadable."""
    try:
        shown = _read_manifest(path)
    except (ValueError, OSError):
        return None
    return str(shown.get("uuid")), int(shown.get("generation", 0))


def verify(path: Path) -> List[str]:
    """All that is wrong with a folder, read from first to last byte; nothing where it is whole."""
    try:
        shown, database = _opened(path, writable=False)
        try:
            with database.snapshot():
                found = list(_problems(path, shown, database))
                return found or [*_damages(path, shown, database), *_unlike_names(database)]
        finally:
            database.close()
    except (ValueError, OSError) as error:
        return [str(error)]


def show_manifest(path: Path, database: Database, limit: int = SUMMED) -> None:
    """Write what the database says of itself into the folder's manifest, for people and checks.

    limit: Up to how many bytes the database's checksum is stored too, which takes reading it.
    """
    manifest = database.manifest()
    crc = database.checksum() if database.size() <= limit else None
    write_manifest(path, manifest, crc)


def write_manifest(path: Path, manifest: Dict[str, Any], crc: Optional[int]) -> None:
    """crc: Of the database, where it is known."""
    manifest["index"] = json.loads(manifest.get("index") or "null")
    if crc is not None:
        manifest["crc"] = crc
    write_file(path / MANIFEST, srsly.json_dumps(manifest, indent=2).encode("utf8"))


def row_files(path: Path, manifest: Dict[str, Any]) -> Optional[RowFiles]:
    """The files of the vectors, None where nothing has been encoded."""
    if not manifest["files"]:
        return None
    return RowFiles(path, manifest["files"], manifest["uuid"], manifest["width"], manifest["dtype"])


def file_checksum(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir() if file.is_file())


def _check_is_there(path: Path) -> None:
    if (path / "entities.jsonl").is_file() and not (path / DATABASE).is_file():
        raise ValueError(Errors.E008.format(where=path, found=1))
    missing = [name for name in (MANIFEST, DATABASE) if not (path / name).is_file()]
    if missing:
        raise ValueError(Errors.E010.format(path=path, missing=", ".join(missing)))


def _read_manifest(path: Path) -> Dict[str, Any]:
    try:
        shown = dict(srsly.read_json(path / MANIFEST))
    except (ValueError, TypeError, UnicodeDecodeError) as error:
        problem = f"{MANIFEST}: {error}"
        raise ValueError(Errors.E013.format(where=path, problem=problem)) from None
    if shown.get("format") != FORMAT or shown.get("version") != VERSION:
        raise ValueError(Errors.E008.format(where=path, found=shown.get("version")))
    return shown


def _problems(path: Path, shown: Dict[str, Any], database: Database) -> Iterator[str]:
    """What is wrong at first sight: identities, counts and lengths."""
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
    index = json.loads(manifest.get("index") or "null")
    if index is not None:
        file = path / index["file"]
        if not file.is_file():
            yield f"{file.name} is missing"
        elif file.stat().st_size != index["size"]:
            yield f"{file.name} has {file.stat().st_size} bytes instead of {index['size']}"


def _damages(path: Path, shown: Dict[str, Any], database: Database) -> Iterator[str]:
    """What is wrong when everything is read."""
    manifest = database.manifest()
    expected = shown.get("crc") if shown.get("generation") == manifest["generation"] else None
    found = database.checksum() if expected is not None else None
    if found is None:
        yield from _database_damages(database)
    elif found != expected:
        yield f"{DATABASE} is damaged"
    files = row_files(path, manifest)
    if files is not None:
        blocks = database.rows("SELECT number, vectors, owners FROM block ORDER BY number")
        yield from files.damaged(manifest["rows"], blocks)
    index = json.loads(manifest.get("index") or "null")
    if index is not None and file_checksum(path / index["file"]) != index["crc"]:
        yield f"{index['file']} is damaged"


def _database_damages(database: Database) -> Iterator[str]:
    (state,) = database.rows("PRAGMA integrity_check(1)")[0]
    if state != "ok":
        yield f"{DATABASE} is damaged: {state}"
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
    lost = database.value(
        "SELECT count(*) FROM entity WHERE position NOT IN (SELECT position FROM owned)"
        " AND position NOT IN (SELECT position FROM dirty)"
    )
    if lost:
        yield f"{DATABASE} holds {lost} entities that have neither vectors nor a mark to get them"
    if orphans:
        yield f"{DATABASE} holds {orphans} rows, names or redirects of entities that are gone"


def _unlike_names(database: Database) -> Iterator[str]:
    """Whether the search by trigrams knows the very names there are."""
    # The check is a statement that writes: it is made on a copy.
    with tempfile.TemporaryDirectory() as place:
        copy = database.copy(Path(place) / DATABASE)
        try:
            copy.rows("INSERT INTO trigram (trigram) VALUES ('integrity-check')")
        except (ValueError, OSError) as error:
            yield f"{DATABASE} finds other names by their letters than it holds ({error})"
        finally:
            copy.close()
