"""The folder of a knowledge base: its files, and the right to write. ``checks.py`` opens it."""

import json
import os
import re
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List, Optional, Set, Tuple

import srsly
from filelock import FileLock

from ..errors import Errors
from ..storage.files import is_temporary, remove_abandoned, write_file
from ..storage.folders import (
    LOCK,
    FolderKind,
    acquire,
    check_replaceable,
    replacing_folder,
    restore,
)
from ..storage.lines import check_exists, read_start
from .database import Database
from .manifest import FORMAT, VERSION, Manifest, index_entry, is_count
from .vectors import RowFiles, VectorRows

MANIFEST = "manifest.json"
DATABASE = "entities.sqlite"
# The files of spaCy's ``InMemoryLookupKB``.
SPACY_FILES = ("contents", "strings.json")

# Databases of at most this many bytes get a checksum with each edit, others when they are closed.
SUMMED = 1 << 24
CHUNK = 1 << 22
# Manifests are shorter than that. No more is read.
LONGEST_MANIFEST = 1 << 20

# The files of a knowledge base; SQLite's journal is there during an edit, or after a kill.
FILES = (
    r"manifest\.json|entities\.sqlite(-journal)?"
    r"|(vectors|owners)-\d+\.bin|index-\d+\.\w+"
)
# What SQLite or this package would read or write in the folder.
_USED = re.compile(rf"{FILES}|write\.lock|entities\.sqlite-(wal|shm)")
# Files of which there are several generations.
_NUMBERED = re.compile(r"(vectors|owners)-\d+\.bin|index-\d+\.\w+")


def _names_in_folder(folder: Path) -> Optional[str]:
    """The pattern of the names in a knowledge base's folder; None where it is of something else."""
    try:
        shown = json.loads(read_start(folder / MANIFEST, LONGEST_MANIFEST))
    except (OSError, ValueError, RecursionError):
        is_sqlite = read_start(folder / DATABASE, 16) == b"SQLite format 3\0"
        return FILES if is_sqlite else None
    return FILES if isinstance(shown, dict) and shown.get("format") == FORMAT else None


KB_FOLDER = FolderKind("a knowledge base", _names_in_folder)


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
    finally:
        if held is not None:
            held.release()


def check_new(path: Path, *, overwrite: bool = False) -> None:
    """ValueError where a folder may not become that of a new knowledge base.

    overwrite: Whether a knowledge base that is there may be replaced.
    """
    restore(path)
    target = check_replaceable(path, KB_FOLDER)
    if not overwrite and target.is_dir() and any(target.iterdir()):
        raise ValueError(Errors.E034.format(path=path))


def find(path: Path) -> Path:
    """The absolute path of a folder, which is brought back if its replacement was killed.

    FileNotFoundError where it does not exist, ValueError where it is a file.
    """
    path = path.absolute()
    restore(path)
    check_exists(path, "Check the path, or build a knowledge base there: spacy arbo kb build.")
    if not path.is_dir():
        raise ValueError(Errors.E035.format(path=path))
    return path


def is_of_spacy(path: Path) -> bool:
    """Whether a folder was written by spaCy's ``InMemoryLookupKB``."""
    return all((path / name).is_file() for name in SPACY_FILES)


def lock(path: Path) -> FileLock:
    """The right to write, held until it is released; ValueError where another program has it."""
    check_plain_files(path)
    file_lock = FileLock(str(path / LOCK))
    acquire(file_lock, Errors.E018.format(where=path))
    return file_lock


def check_plain_files(path: Path) -> None:
    """ValueError where a file of a knowledge base is a symbolic link, a device or a folder.

    To read a link shows, and to write to it changes, what is not in the folder: a stranger's folder
    may link to any file. So those of the caches of a hub, of DVC or of git-annex are copied first.
    """
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if not _USED.fullmatch(entry.name) or entry.is_file(follow_symlinks=False):
            continue
        if entry.is_symlink():
            raise ValueError(Errors.E042.format(where=path, name=entry.name))
        problem = f"{entry.name} is a folder or a device instead of a file"
        raise ValueError(Errors.E019.format(where=path, problems=problem))


def read_manifest(path: Path) -> Manifest:
    """The contents of manifest.json; ValueError where it can't be read or is of another version."""
    try:
        shown = dict(srsly.json_loads(read_start(path / MANIFEST, LONGEST_MANIFEST)))
    except (ValueError, TypeError, RecursionError) as error:
        problem = f"{MANIFEST}: {error}"
        raise ValueError(Errors.E013.format(where=path, problem=problem)) from None
    if shown.get("format") != FORMAT or shown.get("version") != VERSION:
        raise ValueError(Errors.E008.format(where=path, found=shown.get("version")))
    if not is_count(shown.get("generation")):
        problem = f"{MANIFEST}: generation is {shown.get('generation')!r:.60}"
        raise ValueError(Errors.E013.format(where=path, problem=problem))
    return shown


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
        shown = read_manifest(path)
    except (ValueError, OSError):
        return None
    return str(shown.get("uuid")), shown["generation"]


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


def names_in_use(path: Path, manifest: Manifest) -> Set[str]:
    """The names of all files that belong to a knowledge base at present."""
    files, index = row_files(path, manifest), index_entry(manifest)
    names = {MANIFEST, DATABASE, f"{DATABASE}-journal", LOCK}
    names.update(file.name for file in (files.paths().values() if files else ()))
    return names | ({index["file"]} if index else set())


def foreign_names(path: Path, manifest: Manifest) -> List[str]:
    """The names of files that don't belong to a knowledge base, such as those a kill has left."""
    return sorted({entry.name for entry in os.scandir(path)} - names_in_use(path, manifest))


def remove_leftovers(path: Path, manifest: Manifest) -> None:
    """Remove the files that killed writers have left. Only for who has the right to write."""
    for name in foreign_names(path, manifest):
        if _NUMBERED.fullmatch(name):
            (path / name).unlink(missing_ok=True)
        elif is_temporary(name):
            remove_abandoned(path / name[1 : -len(f".{0:032x}.tmp")])


def file_checksum(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc
