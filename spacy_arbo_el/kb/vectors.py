"""Rows of vectors, each with the entity that it is of."""

import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..base.devices import torch
from ..base.errors import ArboError, Errors

# The number of rows read at a time where all are read.
STEP = 65536
DTYPES = ("float32", "float16")


class VectorRows:
    """Vectors of entities' texts. They may lie in a mapped file, in another order.

    vectors: (v, width) of ``dtype``; none by default.
    owners: (n,) int64, the position of the entity that each row is of; -1 for a row that is not
        searched.
    dtype: The type in which they are stored, "float32" or "float16".
    places: (n,) int64, where the vector of each row is, -1 for none; None for the same order.
    """

    def __init__(
        self,
        vectors: np.ndarray | None = None,
        owners: np.ndarray | None = None,
        dtype: str = "float32",
        places: np.ndarray | None = None,
    ):
        self.dtype = check_dtype(dtype)
        self.owners = np.zeros(0, dtype=np.int64) if owners is None else owners
        base = np.zeros((0, 0), dtype=dtype) if vectors is None else vectors
        self._vectors, self.places = base.astype(dtype, copy=False), places

    def __len__(self) -> int:
        return len(self.owners)

    @property
    def width(self) -> int:
        """The length of a vector; 0 if there are none."""
        return self._vectors.shape[1]

    def stored(self, rows: np.ndarray) -> np.ndarray:
        """Stored vectors of rows (k,), in their type. (k, width)."""
        if self.places is None:
            return self._vectors[rows]
        places = self.places[rows]
        vectors = self._vectors[np.maximum(places, 0)] if len(self._vectors) else self._none(rows)
        vectors[places < 0] = 0
        return vectors

    def _none(self, rows: np.ndarray) -> np.ndarray:
        return np.zeros((len(rows), self.width), dtype=self.dtype)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of rows (k,), (k, width) float32."""
        vectors = self.stored(rows)
        # Torch converts several times as fast.
        if vectors.dtype == np.float32 or torch is None:
            return vectors.astype(np.float32, copy=False)
        return torch.from_numpy(vectors).float().numpy()

    def blocks(self, step: int = STEP) -> Iterator[tuple[int, np.ndarray]]:
        """Yield all rows in blocks: the number of the first row, and (k, width) float32."""
        for start in range(0, len(self), step):
            yield start, self.take(np.arange(start, min(start + step, len(self))))

    def array(self, prepare: Callable[[np.ndarray], np.ndarray] = np.asarray) -> np.ndarray:
        """All rows, (n, width) float32.

        prepare: Applied to some rows at a time.
        """
        vectors = np.empty((len(self), self.width), dtype=np.float32)
        for start, block in self.blocks(STEP // 16):
            vectors[start : start + len(block)] = prepare(block)
        self._release()
        return vectors

    def _release(self) -> None:
        """Release the pages of a mapped file. They are read again when they are needed."""
        base: Any = self._vectors
        while base is not None and not isinstance(base, mmap.mmap):
            base = getattr(base, "base", None)
        if base is not None and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)


def check_dtype(dtype: str) -> str:
    """The type, where vectors can be stored in it; else ValueError."""
    if dtype not in DTYPES:
        raise ArboError(Errors.E020.format(value=dtype, choices=", ".join(DTYPES)))
    return dtype


def check_vectors(vectors: np.ndarray, rows: int) -> np.ndarray:
    """The vectors as (rows, width) float32. ValueError where the shape or a value is wrong."""
    vectors = np.asarray(vectors, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != rows:
        raise ArboError(Errors.E004.format(shape=vectors.shape, rows=rows))
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        raise ArboError(
            Errors.E005.format(count=int(bad.sum()), rows=rows, first=int(bad.argmax()))
        )
    return vectors


def as_stored(vectors: np.ndarray, dtype: str) -> np.ndarray:
    """Vectors in the type they are stored in. ValueError where a value is too large for it."""
    with np.errstate(over="ignore"):
        stored = vectors.astype(dtype)
    if not np.isfinite(stored).all():
        raise ArboError(Errors.E022.format(largest=float(np.abs(vectors).max())))
    return stored
