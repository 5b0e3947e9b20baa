"""Vectors of one kind by the keys of their texts, in files or in memory."""

import json
import os
import sys
import uuid
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

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
    kind_of_file,
    parse_header,
)

# Seconds to wait for another program that encodes the same texts.
PATIENCE = 600.0
# A file with more rows for each text than so many is written anew without those of older lists.
MOST_ROWS = 2
# The number of rows copied or checked at a time.
STEP = 16384
# Bytes of a row in the file of keys: its key and its checksum, both int64. All bits of the checksum
# of zeros, which stand for text that an encoder cannot read, are inverted.
ENTRY = 16


def checksums(keys: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Checksums of vectors with their keys: (n,) int64, from 0 up."""
    starts = ((keys ^ keys >> 32) & 0xFFFFFFFF).tolist()
    return int_array(list(map(zlib.crc32, np.ascontiguousarray(vectors), starts)))


def as_stored(vectors: np.ndarray, dtype: str) -> np.ndarray:
    """Vectors in the type they are stored in. ValueError where a value is too large for it."""
    with np.errstate(over="ignore"):
        stored = vectors.astype(dtype)
    if not np.isfinite(stored).all():
        raise Errors.E022(largest=float(np.abs(vectors).max()))
    return stored


@dataclass(frozen=True)
class _Rows:
    """The rows of a cache as they were last read.

    vectors: All vectors, in the order of the file.
    readable: (rows,) bool, the vectors that are no zeros.
    keys: (n,) int64, the keys of those that can be used, ascending.
    row_of: (n,) int64, the row of each of these keys.
    header: The first bytes of both files; empty for no files.
    damage: The problem of the files; "" for none. Vectors that are damaged count as missing.
    """

    vectors: AppendOnly
    readable: np.ndarray
    keys: np.ndarray
    row_of: np.ndarray
    header: bytes = b""
    damage: str = ""

    @classmethod
    def empty(cls, dtype: str, header: bytes = b"") -> "_Rows":
        none = int_array()
        return cls(AppendOnly.empty(dtype), none.astype(bool), none, none, header)

    def __len__(self) -> int:
        return self.vectors.length

    def find(self, keys: np.ndarray) -> np.ndarray:
        """(n,) int64, the row of each key, -1 for none."""
        return take_or(self.row_of, places_of(self.keys, keys), -1)

    def extended(
        self,
        vectors: AppendOnly,
        keys: np.ndarray,
        readable: np.ndarray,
        usable: np.ndarray | None = None,
    ) -> "_Rows":
        """These rows and further ones.

        vectors: All vectors, those of the present rows first.
        usable: (k,) bool, which of the ``k`` new rows can be used; None for all.
        """
        order = np.argsort(keys, kind="stable")
        if usable is not None:
            order = order[usable[order]]
        places = np.searchsorted(self.keys, keys[order])
        return _Rows(
            vectors,
            np.append(self.readable, readable),
            np.insert(self.keys, places, keys[order]),
            np.insert(self.row_of, places, len(self) + order),
            self.header,
            self.damage,
        )


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
        self._rows = _Rows.empty(vector_kind.dtype)
        if folder is not None:
            self._read()

    def used(self) -> None:
        """Note that the vectors are in use, so that the files are kept."""
        if self.folder is not None:
            with suppress(OSError):
                os.utime(self._path(".keys"))

    def _path(self, suffix: str) -> Path:
        assert self.folder is not None
        return self.folder.path / f"{self.about.name}{suffix}"

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def damage(self) -> str:
        """The problem of the files; "" for none."""
        return self._rows.damage

    @property
    def keys(self) -> np.ndarray:
        """(n,) int64, the keys of the texts that have a vector, ascending."""
        return self._rows.keys

    # Reading

    def get(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Look up texts.

        keys: (n,) int64, see ``texts.keys_of``.
        RETURNS: (n,) bool, which of them have a vector here, and (found, width) float32, these.
        """
        vectors, rows, _ = self.locate(keys)
        has_row = rows >= 0
        return has_row, vectors[rows[has_row]].astype(np.float32)

    def has(self, keys: np.ndarray) -> np.ndarray:
        """(n,) bool, which texts have a vector here."""
        return self.locate(keys)[1] >= 0

    def missing(self, keys: np.ndarray) -> np.ndarray:
        """The keys of texts that have no vector here."""
        return keys[~self.has(keys)]

    def locate(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find the rows of texts.

        keys: (n,) int64.
        RETURNS: All vectors in their stored type, (rows, width), mapped and not read; (n,) int64
            the row of each text, -1 for none; (n,) bool, whether it has a vector and no zeros.
        """
        with self._lock:
            before = self._rows
            rows = before.find(keys)
            if (rows < 0).any() and self.folder is not None:
                self._read()
                again = self._rows.find(keys)
                if ((rows >= 0) & (again < 0)).any():
                    # The files were replaced by others, or are being replaced. What was mapped
                    # stays readable.
                    self._rows = before
                else:
                    rows = again
            readable = take_or(self._rows.readable, rows, False)
            return self._rows.vectors.rows, rows, readable

    def _read(self) -> None:
        try:
            with self._path(".keys").open("rb") as file:
                header = file.read(HEADER)
                # A shorter file is an older copy, such as a backup that was put back.
                end = HEADER + ENTRY * len(self)
                is_older = os.fstat(file.fileno()).st_size < end
                if header != self._rows.header or is_older:
                    self._forget(header)
                    end = HEADER
                parsed = parse_header(header)
                if parsed is None or parsed[0] != self.about:
                    raise ValueError("it has another header")
                file.seek(end)
                data = file.read()
            if data:
                self._read_rows(data, parsed[1])
        except FileNotFoundError as error:
            self._forget()
            if error.filename != str(self._path(".keys")):
                self._note_damage("it is missing")
        except (OSError, ValueError) as error:
            self._forget()
            self._note_damage(str(error))

    def _forget(self, header: bytes = b"") -> None:
        self._rows = _Rows.empty(self.about.dtype, header)

    def _read_rows(self, data: bytes, width: int) -> None:
        """Take in the rows that follow those which are known. data: Their keys and checksums."""
        dtype = np.dtype(self.about.dtype)
        start = len(self)
        keys, sums = (
            np.frombuffer(data, "<i8", len(data) // ENTRY * 2).reshape(-1, 2).T
        )
        with self._path(".bin").open("rb") as file:
            if file.read(HEADER) != self._rows.header:
                raise ValueError("it is of other vectors")
            size = os.fstat(file.fileno()).st_size - HEADER
            keys = keys[: size // (width * dtype.itemsize) - start]
            usable = np.ones(len(keys), dtype=bool)
            file.seek(HEADER + start * width * dtype.itemsize)
            for at in range(0, len(keys) if size <= self.most_checked else 0, STEP):
                block = slice(at, min(at + STEP, len(keys)))
                count = block.stop - at
                vectors = np.fromfile(file, dtype, count * width).reshape(count, width)
                crcs = checksums(keys[block], vectors)
                usable[block] = crcs == np.maximum(sums, ~sums)[block]
            if len(keys):
                # By the open file: the path may be that of another by now.
                shape = start + len(keys), width
                mapped = np.memmap(file, dtype, "r", HEADER, shape)
                rows = AppendOnly.of(np.asarray(mapped))
                readable = sums[: len(keys)] >= 0
                self._rows = self._rows.extended(rows, keys, readable, usable)
        if not usable.all():
            self._note_damage("its checksum is wrong")
        elif ENTRY * len(keys) < len(data):
            self._note_damage("it is cut off")

    def _note_damage(self, problem: str) -> None:
        self._rows = replace(self._rows, damage=problem)
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
            width = self._rows.vectors.buffer.shape[1]
            if len(self) and len(keys) and stored.shape[1] != width:
                raise Errors.E007(got=stored.shape[1], expected=width)
            if self.folder is not None:
                try:
                    with self.filling():
                        self._read()
                        self._write(*self._new(keys, stored))
                    return
                except OSError as error:
                    self._leave_folder(error)
            keys, new = self._new(keys, stored)
            rows = self._rows.vectors.with_rows(new)
            self._rows = self._rows.extended(rows, keys, has_vector(new))

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
        first = first[self._rows.find(keys[first]) < 0]
        return keys[first], vectors[first]

    def _write(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        if not len(keys):
            return
        if self._rows.damage and len(self):
            # Other programs may have the damaged files open: they are not changed.
            intact = self._rows.vectors.rows[self._rows.row_of]
            keys = np.append(self._rows.keys, keys)
            vectors = np.concatenate([intact, vectors])
        assert self.folder is not None
        size = vectors.nbytes + ENTRY * len(keys) + 2 * HEADER
        self.folder.make_room(self.about.name, size)
        if self._rows.damage or not self._rows.header:
            self._create(vectors.shape[1])
        crcs = checksums(keys, vectors)
        sums = np.where(has_vector(vectors), crcs, ~crcs)
        entries = np.stack([keys, sums], axis=1).astype("<i8")
        for suffix, rows in ((".bin", vectors), (".keys", entries)):
            with self._path(suffix).open("r+b") as file:
                # Behind the valid part.
                file.seek(HEADER + len(self) * rows[0].nbytes)
                file.write(np.ascontiguousarray(rows).data)
                file.flush()
                os.fsync(file.fileno())
        self._read()

    def _create(self, width: int) -> None:
        assert self.folder is not None
        self.folder.remove(self.about.name)
        details = {**vars(self.about), "width": width, "pair": uuid.uuid4().hex}
        header = json.dumps(details).encode("utf8").ljust(HEADER - 1) + b"\n"
        for suffix in (".bin", ".keys"):
            self._path(suffix).write_bytes(header)
        self._forget(header)

    def _leave_folder(self, error: OSError) -> None:
        """Keep vectors in memory from now on."""
        assert self.folder is not None
        log.info("The vectors are not kept in %s: %s", self.folder.path, error)
        if not len(self):
            self.folder.remove(self.about.name)
        self.folder = None


def carry_over(path: Path, folder: Path) -> None:
    """Move the vectors in a folder to the one that replaces it.

    Rows that are damaged are left out, and where most are of texts that the replaced list had no
    more, these are, too.
    """
    keys_in_use = _keys_of_texts(path)
    target_folder = VectorFolder(folder)
    for file in path.glob("vectors-*.keys"):
        vector_kind = kind_of_file(file)
        if vector_kind is None or target_folder.has(vector_kind):
            continue
        cache = VectorCache(vector_kind, VectorFolder(path), most_checked=sys.maxsize)
        is_small = not len(keys_in_use) or len(cache) <= MOST_ROWS * len(keys_in_use)
        if is_small and not cache.damage:
            for suffix in (".bin", ".keys"):
                link(file.with_suffix(suffix), folder / f"{file.stem}{suffix}")
            continue
        keys = cache.keys if is_small else np.intersect1d(cache.keys, keys_in_use)
        VectorCache(cache.about, target_folder).take_over(cache, keys)


def _keys_of_texts(path: Path) -> np.ndarray:
    """The keys of the texts that pipelines have of the list in a folder, each once."""
    keys = [int_array()]
    for file in path.glob("texts-*"):
        with suppress(OSError, ValueError):
            texts = TextRows.from_bytes(file.read_bytes())
            keys.append(texts.keys[texts.live])
    return np.unique(np.concatenate(keys))
