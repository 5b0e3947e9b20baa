"""Rows of vectors of entities, in memory or in a mapped file."""

import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..base.arrays import int_array

# The number of rows prepared at a time where all are.
BLOCK = 4096


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
        self.dtype = dtype
        self.owners = int_array([]) if owners is None else owners
        base = np.zeros((0, 0), dtype=dtype) if vectors is None else vectors
        self._vectors = base.astype(dtype, copy=False)
        self.places = places

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
        if not len(self._vectors):
            return np.zeros((len(rows), self.width), dtype=self.dtype)
        vectors = self._vectors[np.maximum(places, 0)]
        vectors[places < 0] = 0
        return vectors

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of rows (k,), (k, width) float32."""
        vectors = self.stored(rows)
        # Torch converts several times as fast.
        if vectors.dtype == np.float32:
            return vectors.astype(np.float32, copy=False)
        return torch.from_numpy(vectors).float().numpy()

    def array(
        self, prepare: Callable[[np.ndarray], np.ndarray] = np.asarray
    ) -> np.ndarray:
        """All rows, (n, width) float32, some at a time through ``prepare``."""
        vectors = np.empty((len(self), self.width), dtype=np.float32)
        for start in range(0, len(self), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(self)))
            vectors[rows] = prepare(self.take(rows))
        self._release()
        return vectors

    def _release(self) -> None:
        """Release the pages of a mapped file. They are read again when they are needed."""
        base: Any = self._vectors
        while base is not None and not isinstance(base, mmap.mmap):
            base = getattr(base, "base", None)
        if base is not None and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)
