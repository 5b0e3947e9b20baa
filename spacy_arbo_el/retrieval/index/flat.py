"""Exact nearest-neighbour search over the vectors themselves."""

import importlib
from dataclasses import dataclass
from typing import Any, Callable, Optional, Tuple

import numpy as np
import torch
from spacy.util import registry
from thinc.api import get_torch_default_device

from ...arrays import TopK
from ...errors import Errors
from ...kb.saving import AttachedIndex
from ...kb.vectors import VectorRows
from ...locks import ForkableLock
from ..similarity import Similarity
from . import exact

faiss: Any
try:
    faiss = importlib.import_module("faiss")
except ImportError:  # pragma: no cover - depends on what is installed
    faiss = None

# The first results, whose similarities are computed again pair by pair. These do not depend on
# the other queries of the search.
PAIRWISE_RESCORED = 16
# Queries that are rescored at a time.
QUERIES_PER_BLOCK = 1024

# The candidates of each query before they are rescored: rows (m, k) int64 and similarities.
Candidates = Tuple[np.ndarray, np.ndarray]


class FlatIndex:
    """Exact search over the vectors as they are, with nothing to train or to rebuild.

    It uses FAISS. Where thinc has a GPU, the search runs on it: with FAISS if that is
    ``faiss-gpu``, else with torch.

    vectors: (n, width) float32, prepared. On a GPU, a copy of them is searched.
    """

    def __init__(self, vectors: np.ndarray, similarity: Similarity):
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self.similarity = similarity
        self.attached: Optional[AttachedIndex] = None
        self._on_gpu: Any = None
        self._on_device: Optional[torch.Tensor] = None

    def __len__(self) -> int:
        return len(self.vectors)

    def search(self, queries: np.ndarray, k: int, allowed: Optional[np.ndarray] = None) -> TopK:
        """The k nearest rows of each query, see ``Index``.

        The similarities of the first rows, which decide links, are computed pair by pair, so that
        they do not depend on the other queries.
        """
        k = min(k, len(self))
        if k <= 0 or not len(queries):
            return TopK.empty(len(queries), max(k, 0))
        check_width(queries, self.vectors.shape[1])
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        # More than k: among nearly equal rows, the rescored similarities decide which are kept.
        wide = min(max(k, PAIRWISE_RESCORED), len(self))
        if allowed is None:
            rows, scores = self._backend()(self, queries, wide)
        else:
            rows, scores = _nearest_torch(self, queries, wide, exact.forbid_mask(~allowed))
        nearest = TopK(rows, scores)
        return rescore_first(nearest, queries, self.similarity, self.vectors.__getitem__).first(k)

    def _backend(self) -> Callable[["FlatIndex", np.ndarray, int], Candidates]:
        if get_torch_default_device().type == "cuda":
            return _nearest_faiss_gpu if faiss_has_gpu() else _nearest_torch
        return _nearest_faiss if faiss else _nearest_torch


def _nearest_faiss(index: FlatIndex, queries: np.ndarray, k: int) -> Candidates:
    inner = index.similarity.metric == "ip"
    metric = faiss.METRIC_INNER_PRODUCT if inner else faiss.METRIC_L2
    with _matrix_products:
        distances, rows = faiss.knn(queries, index.vectors, k, metric=metric)
    return rows, (distances if inner else -distances)


class _MatrixProducts:
    """Makes FAISS search by matrix product from the first query on, while any thread searches.

    By default it compares query by query up to some hundred queries, which took five times as
    long for 300 queries and 42,000 vectors. The setting is global: the first thread that comes
    changes it, and the last one that leaves restores it.
    """

    def __init__(self) -> None:
        self._lock = ForkableLock()
        self._searching = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._searching:
                self._before = faiss.cvar.distance_compute_blas_threshold
                faiss.cvar.distance_compute_blas_threshold = 1
            self._searching += 1

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._searching -= 1
            if not self._searching:
                faiss.cvar.distance_compute_blas_threshold = self._before


_matrix_products = _MatrixProducts()


def _nearest_torch(
    index: FlatIndex, queries: np.ndarray, k: int, forbid: Optional[exact.Forbid] = None
) -> Candidates:
    if index._on_device is None:
        index._on_device = torch.from_numpy(index.vectors).to(get_torch_default_device())
    nearest = exact.nearest(queries, index._on_device, k, index.similarity.metric, forbid)
    return nearest.ids, nearest.scores


def _nearest_faiss_gpu(  # pragma: no cover - needs a GPU
    index: FlatIndex, queries: np.ndarray, k: int
) -> Candidates:
    inner = index.similarity.metric == "ip"
    if index._on_gpu is None:
        build = faiss.GpuIndexFlatIP if inner else faiss.GpuIndexFlatL2
        resources = faiss.StandardGpuResources()
        on_gpu = build(resources, index.vectors.shape[1])
        on_gpu.add(index.vectors)
        # The resources must live as long as the index.
        index._on_gpu = (on_gpu, resources)
    distances, rows = index._on_gpu[0].search(queries, k)
    return rows, (distances if inner else -distances)


def faiss_has_gpu() -> bool:
    return hasattr(faiss, "GpuIndexFlatIP") and faiss.get_num_gpus() > 0


def check_width(queries: np.ndarray, width: int) -> None:
    """Raise an error where queries are not as wide as the vectors that are searched."""
    if queries.shape[1] != width:
        raise ValueError(Errors.E301.format(got=queries.shape[1], expected=width))


def rescore_first(
    nearest: TopK,
    queries: np.ndarray,
    similarity: Similarity,
    vectors: Callable[[np.ndarray], np.ndarray],
) -> TopK:
    """Compute the similarities of each query's first rows pair by pair, and sort these rows.

    nearest: (m, k), the rows that a search returned.
    queries: (m, width) float32, prepared.
    vectors: Function from rows (b, j) to their prepared vectors (b, j, width).
    """
    rows, scores = nearest.ids.copy(), nearest.scores.copy()
    for start in range(0, len(queries), QUERIES_PER_BLOCK):
        part = slice(start, start + QUERIES_PER_BLOCK)
        first = rows[part, :PAIRWISE_RESCORED]
        paired = similarity.paired(queries[part], vectors(first))
        paired[first < 0] = -np.inf
        order = np.lexsort((first, -paired), axis=1)
        scores[part, :PAIRWISE_RESCORED] = np.take_along_axis(paired, order, axis=1)
        rows[part, :PAIRWISE_RESCORED] = np.take_along_axis(first, order, axis=1)
    return TopK(rows, scores)


@registry.misc("spacy-arbo-el.FlatIndex.v1")
@dataclass(frozen=True)
class Flat:
    """Exact search. The default, and the right choice up to some hundred thousand vectors.

    Above that, use ``IVF.v1``::

        [components.arbo_linker.retriever.index]
        @misc = "spacy-arbo-el.FlatIndex.v1"
    """

    def __call__(
        self, rows: VectorRows, similarity: Similarity, attached: Optional[AttachedIndex] = None
    ) -> FlatIndex:
        return FlatIndex(similarity.prepare(rows.array()), similarity)
