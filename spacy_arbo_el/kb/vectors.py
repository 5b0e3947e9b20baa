"""Rows of vectors, in memory and in a mapped file. New ones are added at the end."""

import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Optional, Tuple

import numpy as np

from ..arrays import AppendOnly
from ..devices import torch
from ..errors import Errors

# The number of rows read at a time where all are read.
STEP = 65536
DTYPES = ("float32", "float16")
# A file's header takes so many bytes, so that the rows after it are aligned to a page.
HEADER = 4096


class VectorRows:
    """Vectors in memory or a file, with their entities.

    vectors: (n, width) of ``dtype``; none by default.
    owners: (n,) int64, the position of the entity that each row was added for; -1 for a row of
        zeros, which stands for a text that the encoder can't read.
    dtype: The type in which they are stored, "float32" or "float16".
    """

    def __init__(
        self,
        vectors: Optional[np.ndarray] = None,
        owners: Optional[np.ndarray] = None,
        dtype: str = "float32",
    ):
        if dtype not in DTYPES:
            raise ValueError(Errors.E020.format(value=dtype, choices=", ".join(DTYPES)))
        self.dtype = dtype
        self.owners = np.zeros(0, dtype=np.int64) if owners is None else owners
        base = np.zeros((0, 0), dtype=dtype) if vectors is None else vectors
        self._base = base.astype(dtype, copy=False)
        # Rows that were added later.
        self._late = AppendOnly.empty(dtype)

    def __len__(self) -> int:
        return len(self.owners)

    @property
    def width(self) -> int:
        """The length of a vector; 0 if there are none."""
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
        """Stored vectors of rows (k,), in their type. (k, width)."""
        base = len(self._base)
        if base == len(self):
            return self._base[rows]
        vectors = np.empty((len(rows), self.width), dtype=self.dtype)
        late = rows >= base
        vectors[~late] = self._base[rows[~late]]
        vectors[late] = self._late.rows[rows[late] - base]
        return vectors

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of rows (k,), (k, width) float32."""
        vectors = self.stored(rows)
        # Torch converts several times as fast.
        if vectors.dtype == np.float32 or torch is None:
            return vectors.astype(np.float32, copy=False)
        return torch.from_numpy(vectors).float().numpy()

    def blocks(self, step: int = STEP) -> Iterator[Tuple[int, np.ndarray]]:
        """Yield all rows in blocks. The first row's number, and (k, width) float32."""
        for start in range(0, len(self), step):
            yield start, self.take(np.arange(start, min(start + step, len(self))))

    def array(self) -> np.ndarray:
        """All rows, (n, width) float32."""
        vectors = np.empty((len(self), self.width), dtype=np.float32)
        for start, block in self.blocks():
            vectors[start : start + len(block)] = block
        return vectors


@dataclass(frozen=True)
class VectorFile:
    """The file of a knowledge base's vectors. A header, then the rows.

    How many rows are valid is stored in the database. New rows are written after the valid ones,
    and become valid when the caller commits their number. Rows that a killed writer left there are
    written over.

    folder: The folder of the file.
    number: The file is ``vectors-{number}.bin``.
    uuid: The knowledge base's.
    width: The length of a vector.
    dtype: The type of the vectors, "float32" or "float16".
    """

    folder: Path
    number: int
    uuid: str
    width: int
    dtype: str

    @property
    def path(self) -> Path:
        return self.folder / f"vectors-{self.number}.bin"

    @property
    def _stride(self) -> int:
        return self.width * np.dtype(self.dtype).itemsize

    @property
    def _header(self) -> bytes:
        about = {"kb": self.uuid, "kind": "vectors", "width": self.width, "dtype": self.dtype}
        return json.dumps(about).encode("utf8").ljust(HEADER - 1) + b"\n"

    def create(self) -> "VectorFile":
        self.path.write_bytes(self._header)
        return self

    def write(self, start: int, vectors: np.ndarray, crc: int) -> int:
        """Write rows from ``start`` on, and wait for the disk.

        vectors: (k, width) of ``dtype``.
        crc: The checksum of the rows before ``start``.
        RETURNS: The checksum of all rows.
        """
        data = np.ascontiguousarray(vectors).data
        with self.path.open("r+b") as file:
            file.seek(HEADER + start * self._stride)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return zlib.crc32(data, crc)

    def map(self, count: int) -> np.ndarray:
        """Map the first rows without reading: (count, width). They are of ``dtype``."""
        shape = (count, self.width)
        if not count:
            return np.zeros(shape, dtype=self.dtype)
        return np.asarray(np.memmap(self.path, self.dtype, "r", offset=HEADER, shape=shape))

    def problems(self, count: int) -> Iterator[str]:
        """Problems of the header and the length. count: The number of valid rows."""
        if not self.path.is_file():
            yield f"{self.path.name} is missing"
            return
        with self.path.open("rb") as file:
            header = file.read(HEADER)
        size = self.path.stat().st_size
        if header != self._header:
            yield f"{self.path.name} is of another knowledge base than entities.sqlite"
        if size < HEADER + count * self._stride:
            rows = max(size - HEADER, 0) // max(self._stride, 1)
            yield f"{self.path.name} is cut off after {rows} of {count} rows"

    def checksum(self, count: int) -> int:
        """The checksum of the first ``count`` rows. Reads them all."""
        crc, rows = 0, self.map(count)
        for start in range(0, count, STEP):
            crc = zlib.crc32(np.ascontiguousarray(rows[start : start + STEP]).data, crc)
        return crc


def check_vectors(vectors: np.ndarray, rows: int) -> np.ndarray:
    """The vectors as (rows, width) float32. ValueError where the shape or a value is wrong."""
    vectors = np.asarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != rows:
        raise ValueError(Errors.E004.format(shape=vectors.shape, rows=rows))
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        raise ValueError(
            Errors.E005.format(count=int(bad.sum()), rows=rows, first=int(bad.argmax()))
        )
    return vectors
