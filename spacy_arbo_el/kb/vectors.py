"""Rows of vectors, in memory and in files. New ones are added at the end."""

import json
import os
import zlib
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from ..arrays import AppendOnly
from ..devices import torch
from ..errors import Errors
from .rowfile import HEADER, RowFile, can_read_rows

# The number of rows that share a checksum.
BLOCK = 4096
# The number of rows read at a time where all are read.
STEP = 65536
DTYPES = ("float32", "float16")


class VectorRows:
    """Vectors in memory or in a file, and the entities they belong to.

    vectors: (n, width) of ``dtype``; none by default.
    owners: (n,) int64, the position of the entity that each row was added for; -1 for a row of
        zeros, which stands for a text that the encoder can't read.
    dtype: The type in which they are stored, "float32" or "float16".
    file: Where single rows of mapped vectors are read from; None for vectors in memory.
    """

    def __init__(
        self,
        vectors: Optional[np.ndarray] = None,
        owners: Optional[np.ndarray] = None,
        dtype: str = "float32",
        file: Optional[RowFile] = None,
    ):
        if dtype not in DTYPES:
            raise ValueError(Errors.E020.format(value=dtype, choices=", ".join(DTYPES)))
        self.dtype = dtype
        self.owners = np.zeros(0, dtype=np.int64) if owners is None else owners
        base = np.zeros((0, 0), dtype=dtype) if vectors is None else vectors
        self._base = base.astype(dtype, copy=False)
        self._file = file
        # Rows that were added later.
        self._late = AppendOnly.empty(dtype)

    def __len__(self) -> int:
        return len(self.owners)

    @property
    def width(self) -> int:
        """The length of a vector; 0 where there are none."""
        return self._base.shape[1]

    def append(self, vectors: np.ndarray, owners: np.ndarray) -> None:
        """Add rows at the end.

        vectors: (k, width) float32.
        owners: (k,) int64.
        """
        if not len(vectors):
            return
        if not len(self._base):
            self._base = np.zeros((0, vectors.shape[1]), dtype=self.dtype)
        self.owners = np.concatenate([self.owners, owners])
        self._late = self._late.with_rows(vectors)

    def stored(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of rows (k,) in the type they are stored in, (k, width).

        Those in a file are read, since the system would map a megabyte for each row.
        """
        base = len(self._base)
        if base == len(self):
            return self._of_base(rows)
        vectors = np.empty((len(rows), self.width), dtype=self.dtype)
        late = rows >= base
        vectors[~late] = self._of_base(rows[~late])
        vectors[late] = self._late.rows[rows[late] - base]
        return vectors

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of rows (k,), (k, width) float32."""
        vectors = self.stored(rows)
        if vectors.dtype == np.float32:
            return vectors
        # Torch converts several times as fast.
        if torch is None:
            return vectors.astype(np.float32)
        return torch.from_numpy(vectors).float().numpy()

    def _of_base(self, rows: np.ndarray) -> np.ndarray:
        if self._file is None:
            return self._base[rows]
        vectors = np.empty((len(rows), self._base.shape[1]), dtype=self.dtype)
        self._file.read(np.ascontiguousarray(rows, dtype=np.int64), vectors)
        return vectors

    def blocks(self, step: int = STEP) -> Iterator[Tuple[int, np.ndarray]]:
        """All rows, some at a time: the first row's number, and (k, width) float32."""
        for start in range(0, len(self), step):
            yield start, self.take(np.arange(start, min(start + step, len(self))))

    def array(self) -> np.ndarray:
        """All rows, (n, width) float32."""
        vectors = np.empty((len(self), self.width), dtype=np.float32)
        for start, block in self.blocks():
            vectors[start : start + len(block)] = block
        return vectors


class RowFiles:
    """The two files of a knowledge base's rows: vectors, and their owners.

    How many rows are valid is stored in the database. New rows are written after the valid ones,
    and become valid when the caller commits their number. Rows that a killed writer left there are
    written over.

    folder: The folder of the files.
    number: The files are ``vectors-{number}.bin`` and ``owners-{number}.bin``.
    uuid: The knowledge base's.
    width: The length of a vector.
    dtype: The type of the vectors, "float32" or "float16".
    """

    def __init__(self, folder: Path, number: int, uuid: str, width: int, dtype: str):
        self.folder, self.number = folder, number
        self.uuid, self.width, self.dtype = uuid, width, dtype
        self.stride = width * np.dtype(dtype).itemsize

    def paths(self) -> Dict[str, Path]:
        return {kind: self.folder / f"{kind}-{self.number}.bin" for kind in ("vectors", "owners")}

    def create(self) -> "RowFiles":
        for kind, path in self.paths().items():
            path.write_bytes(self._header(kind))
        return self

    def remove(self) -> None:
        for path in self.paths().values():
            path.unlink(missing_ok=True)

    def _header(self, kind: str) -> bytes:
        about = {"kb": self.uuid, "kind": kind, "width": self.width, "dtype": self.dtype}
        return json.dumps(about).encode("utf8").ljust(HEADER - 1) + b"\n"

    def write(self, start: int, vectors: np.ndarray, owners: np.ndarray) -> None:
        """Write rows from ``start`` on, and wait until they are on the disk."""
        parts = ((self.stride, vectors.astype(self.dtype)), (8, owners.astype(np.int64)))
        for path, (stride, part) in zip(self.paths().values(), parts):
            with path.open("r+b") as file:
                file.seek(HEADER + start * stride)
                file.write(np.ascontiguousarray(part).data)
                file.flush()
                os.fsync(file.fileno())

    def map(self, count: int) -> VectorRows:
        """The first ``count`` rows, mapped and not read."""
        paths = self.paths()
        if not count:
            return VectorRows(dtype=self.dtype)
        shape = (count, self.width)
        vectors = np.memmap(paths["vectors"], self.dtype, "r", offset=HEADER, shape=shape)
        owners = np.fromfile(paths["owners"], dtype=np.int64, count=count, offset=HEADER)
        file = RowFile(paths["vectors"], self.stride) if can_read_rows() else None
        return VectorRows(vectors, owners, self.dtype, file)

    def problems(self, count: int, n_entities: int) -> Iterator[str]:
        """Problems of the headers, lengths and owners.

        count: The number of valid rows.
        n_entities: Owners are positions below this number.
        """
        complete = True
        for (kind, path), stride in zip(self.paths().items(), (self.stride, 8)):
            if not path.is_file():
                yield f"{path.name} is missing"
                complete = False
                continue
            with path.open("rb") as file:
                header = file.read(HEADER)
            size = path.stat().st_size
            if header != self._header(kind):
                yield f"{path.name} has another header than this knowledge base's"
            if size < HEADER + count * stride:
                rows = max(size - HEADER, 0) // max(stride, 1)
                yield f"{path.name} is cut off after {rows} of {count} rows"
                complete = False
        if complete and count:
            owners = np.memmap(self.paths()["owners"], np.int64, "r", offset=HEADER, shape=count)
            if not are_owners(owners, n_entities):
                yield f"owners-{self.number}.bin has owners that are no entities"

    def damaged(self, count: int, checksums: Sequence[Tuple[int, int, int]]) -> Iterator[str]:
        """Blocks of rows whose checksums are wrong. Reads everything.

        count: The number of valid rows.
        checksums: See ``block_checksums``.
        """
        stored = {number: sums for number, *sums in checksums}
        for column, (path, stride) in enumerate(zip(self.paths().values(), (self.stride, 8))):
            with path.open("rb") as file:
                file.seek(HEADER)
                for number in range(-(-count // BLOCK)):
                    rows = min(BLOCK, count - number * BLOCK)
                    crc = zlib.crc32(file.read(rows * stride))
                    if number not in stored or stored[number][column] != crc:
                        first = number * BLOCK
                        yield f"{path.name} is damaged in rows {first} to {first + rows - 1}"


def are_owners(owners: np.ndarray, n_entities: int) -> bool:
    """Whether all owners are positions of entities, or -1 for a text that can't be read."""
    return not len(owners) or bool(-1 <= owners.min() <= owners.max() < n_entities)


def block_checksums(
    start: int, vectors: np.ndarray, owners: np.ndarray, last_sums: Tuple[int, int]
) -> List[Tuple[int, int, int]]:
    """Checksums of the blocks that new rows are in.

    start: The number of the first new row.
    vectors: The rows of the file of vectors.
    owners: The rows of the file of owners.
    last_sums: The two checksums of the block that ``start`` is in, over its earlier rows.
    RETURNS: (block, checksum of vectors, checksum of owners) of each.
    """
    checksums, first, end = [], 0, len(owners)
    while first < end:
        number = (start + first) // BLOCK
        last = min((number + 1) * BLOCK - start, end)
        sums = (0, 0) if (start + first) % BLOCK == 0 else last_sums
        parts = (np.ascontiguousarray(array[first:last]).data for array in (vectors, owners))
        vector_sum, owner_sum = (zlib.crc32(part, crc) for part, crc in zip(parts, sums))
        checksums.append((number, vector_sum, owner_sum))
        first = last
    return checksums


def check_vectors(vectors: np.ndarray, rows: int) -> np.ndarray:
    """The vectors as (rows, width) float32; ValueError where the shape or a value is wrong."""
    vectors = np.asarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != rows:
        raise ValueError(Errors.E004.format(shape=vectors.shape, rows=rows))
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        raise ValueError(
            Errors.E005.format(count=int(bad.sum()), rows=rows, first=int(bad.argmax()))
        )
    return vectors
