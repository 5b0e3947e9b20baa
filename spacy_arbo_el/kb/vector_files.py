"""Files of vectors by encoder and kind, in a folder or in the user's cache.

A folder has two files for each encoder and each kind of texts::

    vectors-names-0123456789abcdef.bin   a header, then rows of vectors
    vectors-names-0123456789abcdef.keys  the same header, then the key and the checksum of each row

Both only grow. Rows are on the disk before the keys that make them valid, so that a killed writer
leaves the old state or the new one. A key stands for a text, whatever entity or knowledge base has
it: no edit makes a vector invalid.
"""

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from .database import DTYPES

# A header takes so many bytes, so that the rows after it are aligned to a page.
HEADER = 4096
WIDEST = 1 << 20
# Encoders whose vectors a folder keeps, of each kind: those that were used last.
MOST_ENCODERS = 4
# Bytes of the user's cache folder.
CACHE_BYTES = 2 << 30
# The environment variable with the path of the cache folder; empty for none.
CACHE = "ARBO_CACHE"


@dataclass(frozen=True)
class VectorKind:
    """Vectors that may stand in one file.

    encoder: The fingerprint of what encodes the texts.
    kind: What the texts are, such as "names".
    dtype: The type in which vectors are stored, "float32" or "float16".
    """

    encoder: str
    kind: str = "names"
    dtype: str = "float32"

    @property
    def name(self) -> str:
        """The name of its files, without suffix."""
        digest = hashlib.blake2b(
            f"rows {self.encoder} {self.dtype}".encode(), digest_size=8
        )
        return f"vectors-{self.kind}-{digest.hexdigest()}"


@dataclass(frozen=True)
class VectorFolder:
    """A folder with files of vectors.

    most_bytes: The size of all files together; 0 to keep ``MOST_ENCODERS`` of each kind, however
        large.
    """

    path: Path
    most_bytes: int = 0

    def kinds(self, kind: str = "names") -> list[VectorKind]:
        """The encoders whose vectors are here, those used last first."""
        files = by_use(self.path, f"vectors-{kind}-*.keys")
        return [vector_kind for vector_kind in map(kind_of_file, files) if vector_kind]

    @property
    def is_writable(self) -> bool:
        return os.access(self.path, os.W_OK)

    def has(self, vector_kind: VectorKind) -> bool:
        return (self.path / f"{vector_kind.name}.keys").is_file()

    def make_room(self, name: str, size: int) -> None:
        """Remove what was used least, so that ``size`` bytes fit. OSError for too large a file."""
        pattern = "vectors-*" if self.most_bytes else f"{name.rpartition('-')[0]}-*"
        files = by_use(self.path, f"{pattern}.keys")
        candidates = [path for path in files if path.stem != name]
        if not self.most_bytes:
            for path in candidates[MOST_ENCODERS - 1 :]:
                self.remove(path.stem)
            return
        free = self.most_bytes - size - self._size(name)
        if free < 0:
            self.remove(name)
            raise OSError(f"more than {self.most_bytes} bytes")
        for path in candidates:
            free -= self._size(path.stem)
            if free < 0:
                self.remove(path.stem)

    def _size(self, name: str) -> int:
        total = 0
        for suffix in (".keys", ".bin"):
            with suppress(OSError):
                total += (self.path / f"{name}{suffix}").stat().st_size
        return total

    def remove(self, name: str) -> None:
        """Remove the files of a kind. Programs that have them open keep what they read."""
        for suffix in (".keys", ".bin"):
            with suppress(OSError):
                (self.path / f"{name}{suffix}").unlink()


def by_use(folder: Path, pattern: str) -> list[Path]:
    """Files of a folder, those used last first."""
    times = {}
    for path in folder.glob(pattern):
        with suppress(OSError):
            times[path] = path.stat().st_mtime_ns
    return sorted(times, key=lambda path: (-times[path], path.name))


def user_cache() -> VectorFolder | None:
    """The user's cache folder. None where it is switched off or can't be made."""
    place = os.environ.get(CACHE)
    if place == "":
        return None
    path = (
        Path(place) if place else platformdirs.user_cache_path("spacy_arbo_el", False)
    )
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return VectorFolder(path, CACHE_BYTES)


def parse_header(header: bytes) -> tuple[VectorKind, int] | None:
    """The kind of vectors, and the length of each. None where they are no vectors of ours."""
    try:
        values: dict[str, Any] = dict(json.loads(header))
        vector_kind = VectorKind(
            *(str(values[name]) for name in ("encoder", "kind", "dtype"))
        )
        width = values["width"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_valid = (
        type(width) is int and 0 < width <= WIDEST and vector_kind.dtype in DTYPES
    )
    return (vector_kind, width) if is_valid and len(header) == HEADER else None


def kind_of_file(path: Path) -> VectorKind | None:
    """The kind of the vectors in a file. None where it is damaged, or another kind's name."""
    parsed = None
    with suppress(OSError), path.open("rb") as file:
        parsed = parse_header(file.read(HEADER))
    # Headers may come from strangers: a kind is part of a path.
    return parsed[0] if parsed and parsed[0].name == path.stem else None
