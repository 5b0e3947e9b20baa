"""A search index that is saved beside the vectors that it covers."""

import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import Warnings
from ..base.log import warn_once
from ..storage.files import temporary, write_json
from .database import CHECKED
from .vector_files import VectorKind

# How many bytes of a file are read at a time.
CHUNK = 1 << 22
_SUFFIX = re.compile(r"\.\w{1,20}", re.ASCII)


@dataclass(frozen=True)
class AttachedIndex:
    """A search index stored beside the rows it covers.

    about: Its description, JSON-serialisable; see ``retrieval/index/approximate.py``.
    source: Its file, or a function that writes it to a path.
    """

    about: dict[str, Any]
    source: Path | Callable[[Path], None]

    def write(
        self, folder: Path, kind: VectorKind, keys: np.ndarray
    ) -> "AttachedIndex":
        """Write it to files that replace those of an older one. RETURNS: It, in its file.

        keys: (rows,) int64, the texts of all rows.
        """
        start = _start_of(kind)
        with temporary(
            folder / start, lambda path: os.open(path, os.O_CREAT | os.O_RDWR)
        ) as place:
            if isinstance(self.source, Path):
                place.write_bytes(self.source.read_bytes())
            else:
                self.source(place)
            with place.open("r+b") as file:
                os.fsync(file.fileno())
            crc = file_checksum(place)
            path = folder / f"{start}-{crc:08x}{self.about['suffix']}"
            size = place.stat().st_size
            os.replace(place, path)
        covered = _digest(keys[: self.about["rows"]])
        entry = {**self.about, "size": size, "crc": crc, "keys": covered}
        write_json(folder / f"{start}.json", entry)
        for old in folder.glob(f"{start}-*"):
            if old != path:
                old.unlink(missing_ok=True)
        return AttachedIndex(self.about, path)

    @classmethod
    def read(
        cls, folder: Path, kind: VectorKind, keys: np.ndarray
    ) -> "AttachedIndex | None":
        """The index of a folder. None where it has none over the first of these rows."""
        entry = _entry(folder / f"{_start_of(kind)}.json")
        if entry is None or entry["keys"] != _digest(keys[: entry["rows"]]):
            return None
        path = _file_of(folder / f"{_start_of(kind)}.json", entry)
        if not path.is_file() or path.stat().st_size != entry["size"]:
            return None
        if entry["size"] <= CHECKED and file_checksum(path) != entry["crc"]:
            warn_once(Warnings.W504.format(path=path, problem="its checksum is wrong"))
            return None
        details = {
            name: value
            for name, value in entry.items()
            if name not in ("size", "crc", "keys")
        }
        return cls(details, path)


def index_problems(folder: Path) -> Iterator[str]:
    """Damages of the indexes in a folder, with everything read."""
    for path in sorted(folder.glob("index-*.json")):
        entry = _entry(path)
        if entry is None:
            yield f"{path.name} is damaged"
            continue
        file = _file_of(path, entry)
        if not file.is_file():
            yield f"{file.name} is missing"
        elif file_checksum(file) != entry["crc"]:
            yield f"{file.name} is damaged"


def _start_of(kind: VectorKind) -> str:
    return f"index-{kind.name.rpartition('-')[2]}"


def _file_of(path: Path, entry: dict[str, Any]) -> Path:
    return path.with_name(f"{path.stem}-{entry['crc']:08x}{entry['suffix']}")


def _entry(path: Path) -> dict[str, Any] | None:
    """The description of an index; None for a file of another kind."""
    try:
        entry: dict[str, Any] = dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    counts = [entry.get(name) for name in ("size", "crc", "rows")]
    is_valid = all(type(count) is int and 0 <= count < 1 << 40 for count in counts)
    if is_valid and _SUFFIX.fullmatch(str(entry.get("suffix"))):
        return entry
    return None


def _digest(keys: np.ndarray) -> str:
    return hashlib.blake2b(np.ascontiguousarray(keys).data, digest_size=16).hexdigest()


def file_checksum(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc
