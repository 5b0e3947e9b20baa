"""Vectors by the keys of their texts, in memory or in a shared folder.

A folder has two files for each encoder and each kind of texts::

    vectors-names-0123456789abcdef.bin   a header, then rows of vectors
    vectors-names-0123456789abcdef.keys  the same header, then blocks of keys with checksums

Both only grow. Rows are on the disk before the block that makes them valid, so that a killed writer
leaves the old state or the new one. A key stands for a text, whatever entity or knowledge base has
it: no edit makes a vector invalid.
"""

import hashlib
import json
import os
import struct
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import platformdirs
from filelock import FileLock, Timeout

from ..base.arrays import AppendOnly, has_vector
from ..base.errors import ArboError, Errors, Warnings
from ..base.log import log, warn_once
from ..storage.locks import ForkableLock
from .vectors import DTYPES, as_stored, check_vectors

# A header takes so many bytes, so that the rows after it are aligned to a page.
HEADER = 4096
WIDEST = 1 << 20
# Files of at most this many bytes are compared with their checksums when they are opened.
CHECKED = 1 << 27
# Encoders whose vectors a folder keeps, of each kind: those that were used last.
MOST_ENCODERS = 4
# Bytes of the user's cache folder.
CACHE_BYTES = 2 << 30
# The environment variable with the path of the cache folder; empty for none.
CACHE = "ARBO_CACHE"
# Seconds to wait for another program that encodes the same texts.
PATIENCE = 600.0
# How many rows a block has, and its checksum.
_BLOCK = struct.Struct("<qq")


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
        digest = hashlib.blake2b(f"{self.encoder} {self.dtype}".encode(), digest_size=8)
        return f"vectors-{self.kind}-{digest.hexdigest()}"


@dataclass(frozen=True)
class VectorFolder:
    """A folder with files of vectors.

    path: The folder.
    most_bytes: The size of all files together; 0 to keep ``MOST_ENCODERS`` of each kind, however
        large.
    """

    path: Path
    most_bytes: int = 0

    def kinds(self, kind: str = "names") -> list[VectorKind]:
        """The encoders whose vectors are here, those used last first."""
        files = self._by_use(f"vectors-{kind}-*")
        headers = [(path, read_header(path)) for path in files]
        # Headers may come from strangers: a kind is part of a path.
        return [found[0] for path, found in headers if found and found[0].name == path.stem]

    def has(self, about: VectorKind) -> bool:
        """Return whether there are vectors of a kind."""
        return (self.path / f"{about.name}.keys").is_file()

    def _by_use(self, pattern: str) -> list[Path]:
        """The files of keys, those used last first."""
        times = {}
        for path in self.path.glob(f"{pattern}.keys"):
            with suppress(OSError):
                times[path] = path.stat().st_mtime_ns
        return sorted(times, key=lambda path: (-times[path], path.name))

    def make_room(self, name: str, size: int) -> None:
        """Remove what was used least recently, so that ``size`` bytes may be added to a file.

        OSError where the file alone would be larger than the folder may be.
        """
        pattern = "vectors-*" if self.most_bytes else f"{name.rpartition('-')[0]}-*"
        others = [path for path in self._by_use(pattern) if path.stem != name]
        if not self.most_bytes:
            for path in others[MOST_ENCODERS - 1 :]:
                self.remove(path.stem)
            return
        left = self.most_bytes - size - self._size(name)
        if left < 0:
            self.remove(name)
            raise OSError(f"more than {self.most_bytes} bytes")
        for path in others:
            left -= self._size(path.stem)
            if left < 0:
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


def user_cache() -> VectorFolder | None:
    """The user's cache folder. None where it is switched off or can't be made."""
    place = os.environ.get(CACHE)
    if place == "":
        return None
    path = Path(place) if place else platformdirs.user_cache_path("spacy_arbo_el", False)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return VectorFolder(path, CACHE_BYTES)


class VectorCache:
    """Vectors of one kind, by key. It may be used by several threads and several processes.

    about: What the vectors are.
    folder: The folder of their files; None to keep them in memory.
    most_checked: Files of at most this many bytes are compared with their checksums.
    damage: The problem of the files; "" for none. Vectors that are damaged count as missing.
    """

    def __init__(
        self,
        about: VectorKind,
        folder: VectorFolder | None = None,
        most_checked: int = CHECKED,
    ):
        self.about, self.folder, self.most_checked = about, folder, most_checked
        self._lock = ForkableLock()
        self._file_lock: FileLock | None = None
        self._forget()
        if folder is not None:
            self._file_lock = FileLock(str(folder.path / f"{about.name}.lock"))
            self._read()

    def used(self) -> None:
        """Note that the vectors are in use, so that the files are kept."""
        if self.folder is not None:
            with suppress(OSError):
                os.utime(self._path(".keys"))

    def _forget(self) -> None:
        none = np.zeros(0, dtype=np.int64)
        self._sorted, self._row_of = none, none
        self._vectors = AppendOnly.empty(self.about.dtype)
        self._readable = np.zeros(0, dtype=bool)
        self._header, self._file_width, self._end, self.damage = b"", 0, HEADER, ""

    def _path(self, suffix: str) -> Path:
        assert self.folder is not None
        return self.folder.path / f"{self.about.name}{suffix}"

    def __len__(self) -> int:
        return self._vectors.length

    @property
    def width(self) -> int:
        """The length of a vector; 0 if there are none."""
        return self._vectors.buffer.shape[1] if len(self) else 0

    # Reading

    def get(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Look up texts.

        keys: (n,) int64, see ``texts.keys_of``.
        RETURNS: (n,) bool, which of them have a vector here, and (found, width) float32, these.
        """
        vectors, _, rows = self.locate(keys)
        found = rows >= 0
        return found, vectors[rows[found]].astype(np.float32)

    def has(self, keys: np.ndarray) -> np.ndarray:
        """(n,) bool, which texts have a vector here."""
        return self.locate(keys)[2] >= 0

    def locate(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find the rows of texts.

        keys: (n,) int64.
        RETURNS: All vectors in their stored type, (rows, width), mapped and not read; (rows,) bool,
            whether they are no zeros; (n,) int64 the row of each text, -1 for none.
        """
        with self._lock:
            rows = self._find(keys)
            if (rows < 0).any() and self.folder is not None:
                self._read()
                rows = self._find(keys)
            return self._vectors.rows, self._readable, rows

    def _find(self, keys: np.ndarray) -> np.ndarray:
        if not len(self._sorted):
            return np.full(len(keys), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        return np.where(self._sorted[place] == keys, self._row_of[place], -1)

    def _read(self) -> None:
        """Read what was added to the files since the last time."""
        try:
            with self._path(".keys").open("rb") as file:
                header = file.read(HEADER)
                if header != self._header:
                    self._forget()
                    self._file_width = self._check_header(header)
                    self._header = header
                file.seek(self._end)
                data = file.read()
            if data:
                self._read_blocks(data)
        except FileNotFoundError as error:
            self._forget()
            if error.filename != str(self._path(".keys")):
                self._note_damage("it is missing")
        except (OSError, ValueError) as error:
            self._forget()
            self._note_damage(str(error))

    def _check_header(self, header: bytes) -> int:
        """The width that a header says. ValueError where it is of something else."""
        found = parse_header(header)
        if found is None or found[0] != self.about:
            raise ValueError("it has another header")
        return found[1]

    def _read_blocks(self, data: bytes) -> None:
        """Take in the blocks of rows that follow those which are known.

        data: The end of the file of keys.
        """
        path, start, width = self._path(".bin"), len(self), self._file_width
        stride = width * np.dtype(self.about.dtype).itemsize
        keys, readable, valid = [], [], []
        with path.open("rb") as file:
            if file.read(HEADER) != self._header:
                raise ValueError("it is of other vectors")
            rows = (os.fstat(file.fileno()).st_size - HEADER) // stride
            at, end = 0, start
            while at + _BLOCK.size <= len(data):
                count, crc = _BLOCK.unpack_from(data, at)
                last = at + _BLOCK.size + 9 * count
                if count <= 0 or last > len(data) or end + count > rows:
                    break
                part = data[at + _BLOCK.size : last]
                keys.append(np.frombuffer(part, "<i8", count))
                readable.append(np.frombuffer(part, bool, count, 8 * count))
                is_valid = rows * stride > self.most_checked or crc == zlib.crc32(
                    _read_at(file, HEADER + end * stride, count * stride), zlib.crc32(part)
                )
                valid.append(np.full(count, is_valid))
                at, end = last, end + count
        usable = np.concatenate([*valid, np.zeros(0, dtype=bool)])
        if len(usable):
            mapped = np.memmap(path, self.about.dtype, "r", HEADER, (end, width))
            self._vectors = AppendOnly.of(np.asarray(mapped))
            self._index(np.concatenate(keys), start, usable)
            self._readable = np.concatenate([self._readable, *readable])
        self._end += at
        if not usable.all():
            self._note_damage("its checksum is wrong")
        elif at < len(data):
            self._note_damage("it is cut off")

    def _index(self, keys: np.ndarray, start: int, usable: np.ndarray) -> None:
        """Note the keys of the rows from ``start`` on."""
        order = np.argsort(keys, kind="stable")
        order = order[usable[order]]
        places = np.searchsorted(self._sorted, keys[order])
        self._sorted = np.insert(self._sorted, places, keys[order])
        self._row_of = np.insert(self._row_of, places, start + order)

    def _note_damage(self, problem: str) -> None:
        self.damage = problem
        warn_once(Warnings.W504.format(path=self._path(".bin"), problem=problem))

    # Writing

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Keep other programs from encoding the same texts. They wait, and find the vectors."""
        lock, is_locked = self._file_lock, False
        if lock is not None:
            with suppress(OSError, Timeout):
                lock.acquire(timeout=PATIENCE)
                is_locked = True
        try:
            yield
        finally:
            if lock is not None and is_locked:
                lock.release()

    def put(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Add vectors of texts. Those that are here already stay.

        Where the files can't be written, these and all further ones are kept in memory.

        keys: (n,) int64.
        vectors: (n, width), finite.
        """
        stored = as_stored(check_vectors(vectors, len(keys)), self.about.dtype)
        with self._lock:
            if len(self) and len(keys) and stored.shape[1] != self.width:
                message = Errors.E007.format(got=stored.shape[1], expected=self.width)
                raise ArboError(message)
            if self.folder is not None:
                try:
                    with self.filling():
                        self._read()
                        self._write(*self._new(keys, stored))
                    return
                except OSError as error:
                    self._leave_folder(error)
            new_keys, new = self._new(keys, stored)
            self._index(new_keys, len(self), np.ones(len(new_keys), dtype=bool))
            self._vectors = self._vectors.with_rows(new)
            self._readable = np.concatenate([self._readable, has_vector(new)])

    def _new(self, keys: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Keys that are not here, each once, with their vectors."""
        first = np.sort(np.unique(keys, return_index=True)[1])
        first = first[self._find(keys[first]) < 0]
        return keys[first], vectors[first]

    def _write(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Add rows to the files."""
        if not len(keys):
            return
        if self.damage and len(self):
            # Other programs may have the damaged files open: they are not changed.
            keys = np.concatenate([self._sorted, keys])
            vectors = np.concatenate([self._vectors.rows[self._row_of], vectors])
        assert self.folder is not None
        self.folder.make_room(self.about.name, vectors.nbytes + 9 * len(keys) + 2 * HEADER)
        if self.damage or not self._header:
            self._create(vectors.shape[1])
        rows = np.ascontiguousarray(vectors).data
        part = keys.astype("<i8").tobytes() + has_vector(vectors).tobytes()
        block = _BLOCK.pack(len(keys), zlib.crc32(rows, zlib.crc32(part))) + part
        _write_at(self._path(".bin"), HEADER + len(self) * vectors[0].nbytes, rows)
        _write_at(self._path(".keys"), self._end, block)
        self._read()

    def _create(self, width: int) -> None:
        """Begin new files."""
        assert self.folder is not None
        self.folder.remove(self.about.name)
        self._forget()
        about = {**vars(self.about), "width": width, "pair": uuid.uuid4().hex}
        header = json.dumps(about).encode("utf8").ljust(HEADER - 1) + b"\n"
        for suffix in (".bin", ".keys"):
            self._path(suffix).write_bytes(header)
        self._header, self._file_width = header, width

    def _leave_folder(self, error: OSError) -> None:
        """Keep vectors in memory from now on."""
        assert self.folder is not None
        log.info("The vectors are not kept in %s: %s", self.folder.path, error)
        if not len(self):
            self.folder.remove(self.about.name)
        self._vectors = AppendOnly.of(np.array(self._vectors.rows))
        self.folder = self._file_lock = None


def parse_header(header: bytes) -> tuple[VectorKind, int] | None:
    """The kind of vectors, and the length of each. None where they are no vectors of ours."""
    try:
        values: dict[str, Any] = dict(json.loads(header))
        about = VectorKind(*(str(values[name]) for name in ("encoder", "kind", "dtype")))
        width = values["width"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_valid = type(width) is int and 0 < width <= WIDEST and about.dtype in DTYPES
    return (about, width) if is_valid and len(header) == HEADER else None


def read_header(path: Path) -> tuple[VectorKind, int] | None:
    """The header of a file of vectors, see ``parse_header``."""
    with suppress(OSError), path.open("rb") as file:
        return parse_header(file.read(HEADER))
    return None


def _read_at(file: BinaryIO, start: int, size: int) -> bytes:
    file.seek(start)
    return file.read(size)


def _write_at(path: Path, start: int, data: Any) -> None:
    """Write behind the valid part of a file, and wait for the disk."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
