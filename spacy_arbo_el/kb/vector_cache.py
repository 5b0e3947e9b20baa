"""Vectors by the keys of their texts, in memory or in a shared folder.

Rows are on the disk before the block that makes them valid, so that a killed writer leaves the old
state or the new one. A key stands for a text, whatever entity or knowledge base has it: no edit
makes a vector invalid.
"""

import json
import os
import struct
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout

from ..base.arrays import AppendOnly, check_vectors, has_vector
from ..base.errors import Errors, Warnings
from ..base.log import log, warn_once
from ..storage.locks import ForkableLock
from .vector_files import (
    CACHE,
    HEADER,
    VectorFolder,
    VectorKind,
    as_stored,
    parse_header,
    user_cache,
)

if TYPE_CHECKING:
    from .folder import Storage

# Files of at most this many bytes are compared with their checksums when they are opened.
CHECKED = 1 << 27
# Seconds to wait for another program that encodes the same texts.
PATIENCE = 600.0
# So few texts are encoded anew where there is no folder to keep their vectors in.
FEW = 1000
# Vectors in use of each kind.
MOST_KEPT = 4
# How many rows a block has, and its checksum.
_BLOCK = struct.Struct("<qq")


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
        none = np.zeros(0, dtype=np.int64)
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
        if not len(self._state.sorted):
            return np.full(len(keys), -1, dtype=np.int64)
        place = np.minimum(
            np.searchsorted(self._state.sorted, keys), len(self._state.sorted) - 1
        )
        return np.where(
            self._state.sorted[place] == keys, self._state.row_of[place], -1
        )

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
        lock = self._lock_of_process()
        is_locked = False
        if lock is not None:
            with suppress(OSError, Timeout):
                lock.acquire(timeout=PATIENCE)
                is_locked = True
        try:
            yield
        finally:
            if lock is not None and is_locked:
                lock.release()

    def _lock_of_process(self) -> FileLock | None:
        """The lock of the files; None for vectors in memory."""
        if self.folder is None:
            return None
        return self._file_locks.setdefault(
            os.getpid(), FileLock(str(self._path(".lock")))
        )

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
        """The keys of texts that have no vector here, each once."""
        keys = np.unique(keys)
        return keys[~self.has(keys)]

    def take_over(self, source: "VectorCache | None", keys: np.ndarray) -> None:
        """Copy vectors of texts that another cache of the same kind has."""
        if source is not None and source is not self and source.about == self.about:
            missing = self.missing(keys)
            has_row, vectors = source.get(missing)
            self.put(missing[has_row], vectors)

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


class VectorCaches:
    """Vectors in use by kind: in the folder, in the user's cache, or in memory.

    storage: The entities, and their folder.
    count: How many texts they have. Without a folder, vectors of few are kept in memory.
    """

    def __init__(self, storage: "Storage"):
        self.storage = storage
        self.count = 0
        self._caches: dict[tuple[VectorKind, bool], VectorCache] = {}
        self._user_caches: dict[VectorKind, VectorCache] = {}
        self._making = ForkableLock()

    def clear(self) -> None:
        """Forget all vectors."""
        self._caches.clear()
        self._user_caches.clear()

    def keep(self, cache: VectorCache) -> VectorCache:
        """Use vectors from now on for their kind."""
        self._caches[cache.about, True] = cache
        return cache

    def of(self, kind: str, encoder: str, *, persist: bool = True) -> VectorCache:
        """The vectors of some kind of texts, to look them up and to add some.

        kind: What the texts are, such as "descriptions": lowercase letters.
        persist: Whether others may use the vectors. Those of an encoder in training are not.
        """
        vector_kind = VectorKind(encoder, kind, self.storage.dtype)
        with self._making:
            # An encoder in training has the vectors of another where its weights are the same.
            persist = persist or (vector_kind, True) in self._caches
            cache = self._caches.get((vector_kind, persist))
            if cache is None:
                folder = self._place(vector_kind) if persist else None
                same = [
                    k for k in self._caches if k[0].kind == kind and k[1] == persist
                ]
                for old in same[: len(same) + 1 - (MOST_KEPT if persist else 1)]:
                    del self._caches[old]
                cache = self._caches[vector_kind, persist] = VectorCache(
                    vector_kind, folder
                )
                cache.used()
        return cache

    def _place(self, vector_kind: VectorKind) -> VectorFolder | None:
        place = self.storage.folder
        folder = None if place is None else VectorFolder(place)
        if folder is not None and (folder.is_writable or folder.has(vector_kind)):
            return folder
        return user_cache() if self.count > FEW else None

    def to_fill(self, cache: VectorCache, keys: np.ndarray) -> VectorCache:
        """Vectors of the same kind that texts can be added to, with those of the user's cache.

        keys: (n,) int64, those of all texts.
        """
        missing = cache.missing(keys)
        shared = self._shared(cache) if len(missing) else None
        if shared is not None and cache.folder is not None:
            if cache.folder.is_writable:
                cache.take_over(shared, missing)
            elif len(missing) > FEW:
                shared.take_over(cache, keys)
                cache = self.keep(shared)
        cache.used()
        return cache

    def _shared(self, cache: VectorCache) -> VectorCache | None:
        """Vectors of the same kind in the user's cache; None where that is their place."""
        place = user_cache()
        if cache.folder is None or place is None or cache.folder.path == place.path:
            return None
        if cache.about not in self._user_caches:
            self._user_caches[cache.about] = VectorCache(cache.about, place)
        return self._user_caches[cache.about]


@lru_cache(maxsize=8)
def say_where(folder: VectorFolder) -> None:
    """Log once where vectors are stored."""
    message = "Vectors are kept in %s, at most %d MB. The environment variable %s moves it, or "
    message += "switches it off where it is empty"
    log.info(message, folder.path, folder.most_bytes >> 20, CACHE)


def _write_at(path: Path, start: int, data: Any) -> None:
    """Write behind the valid part of a file, and wait for the disk."""
    with path.open("r+b") as file:
        file.seek(start)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
