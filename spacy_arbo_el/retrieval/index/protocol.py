"""Protocols of indexes over vectors and their builders."""

from typing import Protocol, runtime_checkable

import numpy as np

from ...base.arrays import TopK
from ...kb.attached_index import AttachedIndex
from ...kb.vectors import VectorRows
from ..similarity import Similarity


class Index(Protocol):
    """Searches the rows it was built over.

    attached: The index as it is saved beside the vectors; None where it is built from them at
        once and not saved.
    """

    attached: AttachedIndex | None

    def __len__(self) -> int: ...

    def search(
        self, queries: np.ndarray, k: int, allowed: np.ndarray | None = None
    ) -> TopK:
        """The k nearest rows of each query.

        queries: (m, width) float32, prepared.
        allowed: (n,) bool, the rows that may be returned; None for all.
        RETURNS: (m, k') with k' = min(k, n).
        """
        ...


@runtime_checkable
class BuildIndex(Protocol):
    """Builds an index over rows of raw vectors. Such a builder is a frozen dataclass.

    attached: An index that is saved beside the rows. It is used if it is of the right kind and
        was built over these rows, or over the first of them.
    previous: The index in memory that this builder made for the first of these rows. It may be
        extended; searches that use it continue.
    """

    def __call__(
        self,
        rows: VectorRows,
        similarity: Similarity,
        attached: AttachedIndex | None = None,
        previous: Index | None = None,
    ) -> Index: ...
