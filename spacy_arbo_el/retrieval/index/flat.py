"""Exact nearest-neighbour search over the vectors themselves."""

from dataclasses import dataclass
from typing import Any, Optional, Tuple

import numpy as np
from spacy.util import registry

from ...arrays import AppendOnly, TopK
from ...devices import default_device, torch
from ...errors import ArboError, Errors
from ...extras import imported_on_first_use
from ...kb.attached_index import AttachedIndex
from ...kb.vectors import VectorRows
from ..similarity import Similarity
from . import exact, rescoring
from .protocol import Index

# Exact search on a CPU needs none of it.
faiss: Any = imported_on_first_use("faiss")

# How many more rows than wanted are compared exactly at first.
MARGIN = 16
# How many at most, where more and more are nearly as similar as the last of the wanted ones.
MAX_WIDE = 8192

# The candidates of each query before they are rescored: rows (m, k) int64 and similarities.
Candidates = Tuple[np.ndarray, np.ndarray]


class FlatIndex:
    """Exact search over raw vectors, without training or rebuilding.

    It multiplies matrices in torch, on the GPU where thinc has one, or in NumPy without torch. On a
    CPU, FAISS would give the same rows, and took 2 to 3 times as long (``benchmarks/search.py``).

    vectors: (n, width) float32, prepared, finite. On a GPU, a copy of them is searched.
    """

    def __init__(self, vectors: np.ndarray, similarity: Similarity):
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self._use(AppendOnly.of(vectors), similarity, similarity.largest_norm(vectors))

    def _use(self, rows: AppendOnly, similarity: Similarity, largest_norm: float) -> None:
        self._rows, self.similarity, self._largest_norm = rows, similarity, largest_norm
        self.attached: Optional[AttachedIndex] = None
        self._on_device: Any = None

    @property
    def vectors(self) -> np.ndarray:
        """(n, width) float32, prepared."""
        return self._rows.rows

    def __len__(self) -> int:
        return self._rows.length

    def with_vectors(self, vectors: np.ndarray) -> "FlatIndex":
        """Extend an index by rows, without copying the present ones.

        vectors: (k, width) float32, prepared.
        """
        if not len(self):
            return FlatIndex(vectors, self.similarity)
        index = FlatIndex.__new__(FlatIndex)
        largest = max(self._largest_norm, self.similarity.largest_norm(vectors))
        index._use(self._rows.with_rows(vectors), self.similarity, largest)
        return index

    def search(self, queries: np.ndarray, k: int, allowed: Optional[np.ndarray] = None) -> TopK:
        """The k nearest rows of each query, see ``Index``.

        Similarities are computed pair by pair, so that the result of a query does not depend on
        the other queries. Of equally near rows the first are taken.
        """
        k = min(k, len(self))
        if k <= 0 or not len(queries):
            return TopK.empty(len(queries), max(k, 0))
        check_width(queries, self.vectors.shape[1])
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        nearest = TopK.empty(len(queries), k)
        rounding = self.similarity.rounding(queries, self._largest_norm)
        open_queries, wide = np.arange(len(queries)), min(k + MARGIN, len(self))
        while len(open_queries):
            part = queries[open_queries]
            best, last = self._search(part, wide, k, allowed)
            nearest.ids[open_queries], nearest.scores[open_queries] = best.ids, best.scores
            # Any other row is less similar than the last candidate, but for rounding.
            unsure = last >= best.scores[:, -1] - rounding[open_queries]
            open_queries = open_queries[unsure & (wide < min(len(self), MAX_WIDE))]
            wide = min(4 * wide, len(self), MAX_WIDE)
        return nearest

    def _search(
        self, queries: np.ndarray, wide: int, k: int, allowed: Optional[np.ndarray]
    ) -> Tuple[TopK, np.ndarray]:
        """The k nearest of ``wide`` candidates. The similarity of the last candidate is returned
        too.

        The similarities of candidates come from matrix products, whose rounding depends on the
        other queries.
        """
        rows, scores = self._candidates(queries, wide, allowed)
        last = np.where(rows[:, -1] >= 0, scores[:, -1], -np.inf)
        inner = self.similarity.metric == "ip"
        paired = rescoring.pairs(self.vectors, queries, rows, inner)
        return rescoring.best(rows, paired, k), last

    def _candidates(self, queries: np.ndarray, k: int, allowed: Optional[np.ndarray]) -> Candidates:
        metric = self.similarity.metric
        if torch is None:
            nearest = exact.nearest_in_numpy(queries, self.vectors, k, metric, allowed)
        else:
            if self._on_device is None:
                self._on_device = torch.from_numpy(self.vectors).to(default_device())
            forbid = None if allowed is None else exact.forbid_mask(~allowed)
            nearest = exact.nearest(queries, self._on_device, k, metric, forbid)
        return nearest.ids, nearest.scores


def faiss_has_gpu() -> bool:
    return hasattr(faiss, "GpuIndexFlatIP") and faiss.get_num_gpus() > 0


def check_width(queries: np.ndarray, width: int) -> None:
    """Raise an error if queries and vectors differ in width."""
    if queries.shape[1] != width:
        raise ArboError(Errors.E301.format(got=queries.shape[1], expected=width))


def rescore(nearest: TopK, queries: np.ndarray, vectors: np.ndarray, inner: bool) -> TopK:
    """Recompute a search's similarities pair by pair.

    nearest: (m, k) rows of ``vectors``.
    queries: (m, width) float32, prepared.
    vectors: (n, width) float32, prepared.
    inner: Whether similarities are inner products, not squared distances.
    """
    rows = np.ascontiguousarray(nearest.ids)
    return rescoring.best(rows, rescoring.pairs(vectors, queries, rows, inner), nearest.width)


@registry.misc("spacy-arbo-el.FlatIndex.v1")
@dataclass(frozen=True)
class Flat:
    """Exact search. The default, and the right choice up to some hundred thousand vectors.

    Above that, use ``FaissIndex.v1``::

        [components.arbo_linker.retriever.index]
        @misc = "spacy-arbo-el.FlatIndex.v1"
    """

    def __call__(
        self,
        rows: VectorRows,
        similarity: Similarity,
        attached: Optional[AttachedIndex] = None,
        previous: Optional[Index] = None,
    ) -> FlatIndex:
        if not isinstance(previous, FlatIndex):
            return FlatIndex(rows.array(similarity.prepare), similarity)
        new = rows.take(np.arange(len(previous), len(rows)))
        return previous.with_vectors(similarity.prepare(new)) if len(new) else previous
