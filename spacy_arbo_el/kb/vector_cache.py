"""Vectors of one kind by the keys of their texts, in files or in memory."""

import json
import os
import struct
import sys
import uuid
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from ..base.arrays import (
    AppendOnly,
    check_vectors,
    has_vector,
    int_array,
    places_of,
    take_or,
)
from ..base.errors import Errors, Warnings
from ..base.log import log, warn_once
from ..storage.folders import link
from ..storage.locks import ForkableLock
from .database import CHECKED
from .texts import TextRows
from .vector_files import (
    HEADER,
    VectorFolder,
    VectorKind,
    parse_header,
    read_header,
)

# Seconds to wait for another program that encodes the same texts.
PATIENCE = 600.0
# A file with more rows for each text than so many is written anew without those of older lists.
MOST_ROWS = 2
# The number of rows copied at a time.
STEP = 65536
# How many rows a block has, and its checksum.
_BLOCK = struct.Struct("<qq")


def as_stored(vectors: np.ndarray, dtype: str) -> np.ndarray:
    """Vectors in the type they are stored in. ValueError where a value is too large for it."""
    with np.errstate(over="ignore"):
        stored = vectors.astype(dtype)
    if not np.isfinite(stored).all():
        raise Errors.E022(largest=float(np.abs(vectors).max()))
    return stored


@dataclass
class _KnownFiles:
    """The state of a cache's files as it was last read.

    vectors: All vectors, in the order of the file.
    sorted: (n,) int64, the keys of those that can be used, ascending.
    row_of: (n,) int64, the row of each of these keys.
    readable: (rows,) bool, the vectors that are no zeros.
    header: The first bytes of both files; empty for no files.
    width: The length of a vector in the files.
    end: The first byte of the file of keys that was not read.
    damage: The problem of the files; "" for none.
    """

    vectors: AppendOnly
    sorted: np.ndarray
    row_of: np.ndarray
    readable: np.ndarray
    header: bytes = b""
    width: int = 0
    end: int = HEADER
    damage: str = ""

    @classmethod
    def empty(cls, dtype: str) -> "_KnownFiles":
        none = int_array([])
        return cls(AppendOnly.empty(dtype), none, none, np.zeros(0, dtype=bool))


class VectorCache:
    """Vectors of one kind, by key. It may be used by several threads and several processes.

    folder: The folder of their files; None to keep them in memory.
    most_checked: Files of at most this many bytes are compared with their checksums.
    """

    def __init__(
        self,
        vector_kind: VectorKind,
        folder: VectorFolder | None = None,
        most_checked: int = CHECKED,
    ):
        self.about = vector_kind
        self.folder = folder
        self.most_checked = most_checked
        self._lock = ForkableLock()
        # By process: a lock is not inherited by a fork.
        self._file_locks: dict[int, FileLock] = {}
        self._forget()
        if folder is not None:
            self._read()

    def used(self) -> None:
        """Note that the vectors are in use, so that the files are kept."""
        if self.folder is not None:
            with suppress(OSError):
                os.utime(self._path(".keys"))

    def _forget(self) -> None:
        self._state = _KnownFiles.empty(self.about.dtype)

    @property
    def damage(self) -> str:
        """The problem of the files; "" for none. Vectors that are damaged count as missing."""
        return self._state.damage

    def _path(self, suffix: str) -> Path:
        assert self.folder is not None
        return self.folder.path / f"{self.about.name}{suffix}"

    def __len__(self) -> int:
        return self._state.vectors.length

    @property
    def keys(self) -> np.ndarray:
        """(n,) int64, the keys of the texts that have a vector, ascending."""
        return self._state.sorted

    @property
    def width(self) -> int:
        """The length of a vector; 0 if there are none."""
        return self._state.vectors.buffer.shape[1] if len(self) else 0

    # Reading

    def get(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Look up texts.

        keys: (n,) int64, see ``texts.keys_of``.
        RETURNS: (n,) bool, which of them have a vector here, and (found, width) float32, these.
        """
        vectors, _, rows = self.locate(keys)
        has_row = rows >= 0
        return has_row, vectors[rows[has_row]].astype(np.float32)

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
                state = replace(self._state)
                self._read()
                again = self._find(keys)
                if ((rows >= 0) & (again < 0)).any():
                    # The files were replaced by others, or are being replaced. What was mapped
                    # stays readable.
                    self._state = state
                else:
                    rows = again
            return self._state.vectors.rows, self._state.readable, rows

    def _find(self, keys: np.ndarray) -> np.ndarray:
        return take_or(self._state.row_of, places_of(self._state.sorted, keys), -1)

    def _read(self) -> None:
        try:
            with self._path(".keys").open("rb") as file:
                header = file.read(HEADER)
                # A shorter file is an older copy, such as a backup that was put back.
                is_older = os.fstat(file.fileno()).st_size < self._state.end
                if header != self._state.header or is_older:
                    self._forget()
                    parsed = parse_header(header)
                    if parsed is None or parsed[0] != self.about:
                        raise ValueError("it has another header")
                    self._state.width = parsed[1]
                    self._state.header = header
                file.seek(self._state.end)
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

    def _read_blocks(self, data: bytes) -> None:
        """Take in the blocks of rows that follow those which are known."""
        path = self._path(".bin")
        start = len(self)
        width = self._state.width
        stride = width * np.dtype(self.about.dtype).itemsize
        keys = []
        readable = []
        valid = []
        with path.open("rb") as file:
            if file.read(HEADER) != self._state.header:
                raise ValueError("it is of other vectors")
            rows = (os.fstat(file.fileno()).st_size - HEADER) // stride
            at = 0
            end = start
            while at + _BLOCK.size <= len(data):
                count, crc = _BLOCK.unpack_from(data, at)
                last = at + _BLOCK.size + 9 * count
                if count <= 0 or last > len(data) or end + count > rows:
                    break
                entries = data[at + _BLOCK.size : last]
                keys.append(np.frombuffer(entries, "<i8", count))
                readable.append(np.frombuffer(entries, bool, count, 8 * count))
                is_valid = True
                if rows * stride <= self.most_checked:
                    file.seek(HEADER + end * stride)
                    is_valid = crc == zlib.crc32(
                        file.read(count * stride), zlib.crc32(entries)
                    )
                valid.append(np.full(count, is_valid))
                at = last
                end = end + count
            usable = np.concatenate([*valid, np.zeros(0, dtype=bool)])
            if len(usable):
                # By the open file: the path may be that of another by now.
                mapped = np.memmap(file, self.about.dtype, "r", HEADER, (end, width))
                self._state.vectors = AppendOnly.of(np.asarray(mapped))
        if len(usable):
            self._index(np.concatenate(keys), start, usable)
            self._state.readable = np.concatenate([self._state.readable, *readable])
        self._state.end += at
        if not usable.all():
            self._note_damage("its checksum is wrong")
        elif at < len(data):
            self._note_damage("it is cut off")

    def _index(self, keys: np.ndarray, start: int, usable: np.ndarray) -> None:
        order = np.argsort(keys, kind="stable")
        order = order[usable[order]]
        places = np.searchsorted(self._state.sorted, keys[order])
        self._state.sorted = np.insert(self._state.sorted, places, keys[order])
        self._state.row_of = np.insert(self._state.row_of, places, start + order)

    def _note_damage(self, problem: str) -> None:
        self._state.damage = problem
        warn_once(Warnings.W504.format(path=self._path(".bin"), problem=problem))

    # Writing

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Keep other programs from encoding the same texts. They wait, and find the vectors."""
        with ExitStack() as stack:
            if self.folder is not None:
                path = str(self._path(".lock"))
                lock = self._file_locks.setdefault(os.getpid(), FileLock(path))
                with suppress(OSError, Timeout):
                    stack.enter_context(lock.acquire(timeout=PATIENCE))
            yield

    def put(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Add vectors of texts. Those that are here already stay.

        Where the files can't be written, these and all further ones are kept in memory.

        keys: (n,) int64.
        vectors: (n, width), finite.
        """
        stored = as_stored(check_vectors(vectors, len(keys)), self.about.dtype)
        with self._lock:
            if len(self) and len(keys) and stored.shape[1] != self.width:
                raise Errors.E007(got=stored.shape[1], expected=self.width)
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
            self._state.vectors = self._state.vectors.with_rows(new)
            self._state.readable = np.concatenate(
                [self._state.readable, has_vector(new)]
            )

    def missing(self, keys: np.ndarray) -> np.ndarray:
        """The keys of texts that have no vector here."""
        return keys[~self.has(keys)]

    def take_over(self, source: "VectorCache", keys: np.ndarray) -> None:
        """Copy vectors of texts that another cache has."""
        if source is not self:
            missing = self.missing(keys)
            for start in range(0, len(missing), STEP):
                block = missing[start : start + STEP]
                has_row, vectors = source.get(block)
                self.put(block[has_row], vectors)

    def _new(
        self, keys: np.ndarray, vectors: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        first = np.sort(np.unique(keys, return_index=True)[1])
        first = first[self._find(keys[first]) < 0]
        return keys[first], vectors[first]

    def _write(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        if not len(keys):
            return
        if self._state.damage and len(self):
            # Other programs may have the damaged files open: they are not changed.
            keys = np.concatenate([self._state.sorted, keys])
            vectors = np.concatenate(
                [self._state.vectors.rows[self._state.row_of], vectors]
            )
        assert self.folder is not None
        self.folder.make_room(
            self.about.name, vectors.nbytes + 9 * len(keys) + 2 * HEADER
        )
        if self._state.damage or not self._state.header:
            self._create(vectors.shape[1])
        rows = np.ascontiguousarray(vectors).data
        entries = keys.astype("<i8").tobytes() + has_vector(vectors).tobytes()
        block = _BLOCK.pack(len(keys), zlib.crc32(rows, zlib.crc32(entries))) + entries
        _write_at(self._path(".bin"), HEADER + len(self) * vectors[0].nbytes, rows)
        _write_at(self._path(".keys"), self._state.end, block)
        self._read()

    def _create(self, width: int) -> None:
        assert self.folder is not None
        self.folder.remove(self.about.name)
        self._forget()
        details = {**vars(self.about), "width": width, "pair": uuid.uuid4().hex}
        header = json.dumps(details).encode("utf8").ljust(HEADER - 1) + b"\n"
        for suffix in (".bin", ".keys"):
            self._path(suffix).write_bytes(header)
        self._state.header = header
        self._state.width = width

    def _leave_folder(self, error: OSError) -> None:
        """Keep vectors in memory from now on."""
        assert self.folder is not None
        log.info("The vectors are not kept in %s: %s", self.folder.path, error)
        if not len(self):
            self.folder.remove(self.about.name)
        self._state.vectors = AppendOnly.of(np.array(self._state.vectors.rows))
        self.folder = None


def _write_at(path: Path, start: int, data: Any) -> None:
    """Write behind the valid part of a file, and wait for the disk."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def carry_over(path: Path, folder: Path) -> None:
    """Move the vectors in a folder to the one that replaces it.

    Rows that are damaged are left out, and where most are of texts that the replaced list had no
    more, these are, too.
    """
    keys_in_use = _keys_of_texts(path)
    target_folder = VectorFolder(folder)
    for file in path.glob("vectors-*.keys"):
        parsed = read_header(file)
        if (
            parsed is None
            or parsed[0].name != file.stem
            or target_folder.has(parsed[0])
        ):
            continue
        cache = VectorCache(parsed[0], VectorFolder(path), most_checked=sys.maxsize)
        is_small = not len(keys_in_use) or len(cache) <= MOST_ROWS * len(keys_in_use)
        if is_small and not cache.damage:
            for suffix in (".bin", ".keys"):
                link(file.with_suffix(suffix), folder / f"{file.stem}{suffix}")
            continue
        keys = cache.keys if is_small else np.intersect1d(cache.keys, keys_in_use)
        VectorCache(cache.about, target_folder).take_over(cache, keys)


def _keys_of_texts(path: Path) -> np.ndarray:
    """The keys of the texts that pipelines have of the list in a folder, each once."""
    keys = [int_array([])]
    for file in path.glob("texts-*"):
        with suppress(OSError, ValueError):
            texts = TextRows.from_bytes(file.read_bytes())
            keys.append(texts.keys[texts.live])
    return np.unique(np.concatenate(keys))
