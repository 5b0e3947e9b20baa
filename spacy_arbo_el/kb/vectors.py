"""The vectors of a knowledge base: rows that are added at the end, each owned by one entity."""

import json
import os
import zlib
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import torch

from ..errors import Errors
from .rowfile import HEADER, RowFile, can_read_rows

# Rows that share a checksum.
BLOCK = 4096
# Rows read at a time where all are read.
STEP = 65536
DTYPES = ("float32", "float16")


class VectorRows:
    """Vectors (n, width), in memory or in a file, and which entity owns each.

    width: 0 where there is none yet.
    dtype: "float32" or "float16"; whatever it is, float32 goes in and comes out.
    owners: (n,) int64, the position of the entity each row was added for.
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
        # Where single rows of a mapped base are read from.
        self._file = file
        # Rows that came later lie in the front part of this.
        self._late = np.zeros((0, 0), dtype=dtype)

    def __len__(self) -> int:
        return len(self.owners)

    @property
    def width(self) -> int:
        return self._base.shape[1]

    def append(self, vectors: np.ndarray, owners: np.ndarray) -> None:
        """Put rows at the end: (k, width) float32 and (k,) int64."""
        if not len(vectors):
            return
        if not len(self._base):
            self._base = np.zeros((0, vectors.shape[1]), dtype=self.dtype)
        start = len(self) - len(self._base)
        self.owners = np.concatenate([self.owners, owners])
        needed = start + len(vectors)
        if needed > len(self._late):
            grown = np.empty((max(needed, 2 * start), vectors.shape[1]), dtype=self.dtype)
            if start:
                grown[:start] = self._late[:start]
            self._late = grown
        self._late[start:needed] = vectors

    def stored(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of rows (k,), as they are stored: (k, width) float32 or float16.

        Those in a file are read, not mapped: the system maps a megabyte for each that is touched.
        """
        base = len(self._base)
        if base == len(self):
            return self._of_base(rows)
        found = np.empty((len(rows), self.width), dtype=self.dtype)
        late = rows >= base
        found[~late] = self._of_base(rows[~late])
        found[late] = self._late[rows[late] - base]
        return found

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of rows (k,), float32 (k, width)."""
        found = self.stored(rows)
        if found.dtype == np.float32:
            return found
        return torch.from_numpy(found).float().numpy()

    def _of_base(self, rows: np.ndarray) -> np.ndarray:
        if self._file is None:
            return self._base[rows]
        found = np.empty((len(rows), self._base.shape[1]), dtype=self.dtype)
        self._file.read(np.ascontiguousarray(rows, dtype=np.int64), found)
        return found

    def blocks(self, step: int = STEP) -> Iterator[Tuple[int, np.ndarray]]:
        """All rows, some at a time: the first row's number, and float32 (k, width)."""
        for start in range(0, len(self), step):
            yield start, self.take(np.arange(start, min(start + step, len(self))))

    def array(self) -> np.ndarray:
        """All rows, float32 (n, width)."""
        found = np.empty((len(self), self.width), dtype=np.float32)
        for start, block in self.blocks():
            found[start : start + len(block)] = block
        return found


class RowFiles:
    """The two files of a knowledge base's rows: vectors, and their owners.

    Rows are written behind those that count; that they count from now on is for the caller to
    commit. What a killed writer left behind the committed rows is written over.

    folder, number: The files are ``vectors-{number}.bin`` and ``owners-{number}.bin`` there.
    uuid: Of the knowledge base they belong to.
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
        """Write rows from ``start`` on, and have the disk hold them."""
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

    def problems(self, count: int) -> Iterator[str]:
        """What is wrong with headers and lengths."""
        for (kind, path), stride in zip(self.paths().items(), (self.stride, 8)):
            if not path.is_file():
                yield f"{path.name} is missing"
                continue
            with path.open("rb") as file:
                header = file.read(HEADER)
            size = path.stat().st_size
            if header != self._header(kind):
                yield f"{path.name} has another header than this knowledge base's"
            if size < HEADER + count * stride:
                rows = max(size - HEADER, 0) // max(stride, 1)
                yield f"{path.name} is cut off after {rows} of {count} rows"

    def damaged(self, count: int, checksums: Sequence[Tuple[int, int, int]]) -> Iterator[str]:
        """Which blocks of rows have another checksum than was stored; reads everything."""
        stored = {number: sums for number, *sums in checksums}
        for column, (path, stride) in enumerate(zip(self.paths().values(), (self.stride, 8))):
            with path.open("rb") as file:
                file.seek(HEADER)
                for number in range(-(-count // BLOCK)):
                    rows = min(BLOCK, count - number * BLOCK)
                    found = zlib.crc32(file.read(rows * stride))
                    if number not in stored or stored[number][column] != found:
                        first = number * BLOCK
                        yield f"{path.name} is damaged in rows {first} to {first + rows - 1}"


def block_checksums(
    start: int, vectors: np.ndarray, owners: np.ndarray, before: Tuple[int, int]
) -> List[Tuple[int, int, int]]:
    """Checksums of the blocks that rows from ``start`` on fall into.

    vectors, owners: As they are written to the files.
    before: The two checksums of the block that ``start`` lies in, as far as it is filled.
    RETURNS: (block, checksum of vectors, checksum of owners) of each.
    """
    found, first, end = [], 0, len(owners)
    while first < end:
        number = (start + first) // BLOCK
        last = min((number + 1) * BLOCK - start, end)
        sums = (0, 0) if (start + first) % BLOCK == 0 else before
        parts = (np.ascontiguousarray(array[first:last]).data for array in (vectors, owners))
        vector_sum, owner_sum = (zlib.crc32(part, crc) for part, crc in zip(parts, sums))
        found.append((number, vector_sum, owner_sum))
        first = last
    return found


def check_vectors(vectors: np.ndarray, rows: int) -> np.ndarray:
    """``vectors`` as float32 (rows, width); an error where the shape is off or one isn't finite."""
    vectors = np.asarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != rows:
        raise ValueError(Errors.E004.format(shape=vectors.shape, rows=rows))
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        raise ValueError(
            Errors.E005.format(count=int(bad.sum()), rows=rows, first=int(bad.argmax()))
        )
    return vectors
