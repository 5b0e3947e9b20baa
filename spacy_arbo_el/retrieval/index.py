"""Exact nearest-neighbour search, and what every kind of index can do."""

import importlib
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Protocol, Tuple

import numpy as np
import torch
from spacy.util import registry
from thinc.api import get_torch_default_device

from ..errors import Errors
from ..kb.saving import AttachedIndex
from ..kb.vectors import VectorRows
from . import exact
from .similarity import Similarity

faiss: Any
try:
    faiss = importlib.import_module("faiss")
except ImportError:  # pragma: no cover - depends on what is installed
    faiss = None

# How many of the nearest get a similarity that is the same whatever they are searched with.
DECISIVE = 16
# Queries for which these are computed at a time.
PAIRED = 1024


class Index(Protocol):
    """Searches the rows it was built over.

    attached: The index in a form that can be kept beside the vectors; None where it is nothing
        more than the vectors, and built at once.
    """

    attached: Optional[AttachedIndex]

    def __len__(self) -> int: ...

    def search(
        self, queries: np.ndarray, k: int, allowed: Optional[np.ndarray] = None
    ) -> Tuple[np.ndarray, np.ndarray]:
        """The k nearest rows of each query.

        queries: (m, width) float32, prepared.
        allowed: (n,) bool, the rows that may be found; None for all.
        RETURNS: similarities (m, k') float32, largest first, and rows (m, k') int64, with k' =
            min(k, n); -inf and -1 where there are no more. Equal similarities come in row order.
        """
        ...


# Builds an index over rows of raw vectors. The last argument is an index that was kept beside
# them, to be used if it is of the kind wanted and fits.
BuildIndex = Callable[[VectorRows, Similarity, Optional[AttachedIndex]], Index]


class FlatIndex:
    """Exact search over the vectors as they are, nothing to train or rebuild.

    With FAISS; where thinc has a GPU, on it: with FAISS if it is ``faiss-gpu``, else with torch.

    vectors: (n, width) float32, prepared. On a GPU a copy of them is searched.
    """

    def __init__(self, vectors: np.ndarray, similarity: Similarity):
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self.similarity = similarity
        self.attached: Optional[AttachedIndex] = None
        self._on_gpu: Any = None
        self._on_device: Optional[torch.Tensor] = None

    def __len__(self) -> int:
        return len(self.vectors)

    def search(
        self, queries: np.ndarray, k: int, allowed: Optional[np.ndarray] = None
    ) -> Tuple[np.ndarray, np.ndarray]:
        """The k nearest rows of each query, see ``Index``.

        The first ones, which decide links, are computed pair by pair, so that they don't depend
        on the other queries.
        """
        k = min(k, len(self))
        if k <= 0 or not len(queries):
            shape = (len(queries), max(k, 0))
            return np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.int64)
        check_width(queries, self.vectors.shape[1])
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        # Further than asked for: among near equals, the exact similarities decide which are in.
        wide = min(max(k, DECISIVE), len(self))
        if allowed is None:
            similarities, rows = self._backend()(self, queries, wide)
        else:
            similarities, rows = _nearest_torch(self, queries, wide, exact.forbid_mask(~allowed))
        settle_first(similarities, rows, queries, self.similarity, self.vectors.__getitem__)
        return similarities[:, :k], rows[:, :k]

    def _backend(self) -> Callable:
        if get_torch_default_device().type == "cuda":
            return _nearest_faiss_gpu if faiss_has_gpu() else _nearest_torch
        return _nearest_faiss if faiss else _nearest_torch


def _nearest_faiss(index: FlatIndex, queries: np.ndarray, k: int):
    inner = index.similarity.metric == "ip"
    metric = faiss.METRIC_INNER_PRODUCT if inner else faiss.METRIC_L2
    with _matrix_products():
        distances, rows = faiss.knn(queries, index.vectors, k, metric=metric)
    return (distances if inner else -distances), rows


def check_width(queries: np.ndarray, width: int) -> None:
    """An error where queries are not as wide as what is searched."""
    if queries.shape[1] != width:
        raise ValueError(Errors.E301.format(got=queries.shape[1], expected=width))


def settle_first(
    similarities: np.ndarray,
    rows: np.ndarray,
    queries: np.ndarray,
    similarity: Similarity,
    vectors: Callable[[np.ndarray], np.ndarray],
) -> None:
    """Compute the similarities of the first rows found pair by pair, and put these in order.

    vectors: Function from rows (b, k) to their prepared vectors (b, k, width).
    """
    for start in range(0, len(queries), PAIRED):
        part = slice(start, start + PAIRED)
        first = rows[part, :DECISIVE]
        paired = similarity.paired(queries[part], vectors(first))
        paired[first < 0] = -np.inf
        order = np.lexsort((first, -paired), axis=1)
        similarities[part, :DECISIVE] = np.take_along_axis(paired, order, axis=1)
        rows[part, :DECISIVE] = np.take_along_axis(first, order, axis=1)


@contextmanager
def _matrix_products() -> Iterator[None]:
    """Let FAISS search by matrix product from the first query on.

    Left alone, it goes through the database query by query up to some hundred queries, which
    took five times as long for 300 queries and 42,000 vectors.
    """
    before = faiss.cvar.distance_compute_blas_threshold
    faiss.cvar.distance_compute_blas_threshold = 1
    try:
        yield
    finally:
        faiss.cvar.distance_compute_blas_threshold = before


def _nearest_torch(
    index: FlatIndex, queries: np.ndarray, k: int, forbid: Optional[exact.Forbid] = None
):
    if index._on_device is None:
        index._on_device = torch.from_numpy(index.vectors).to(get_torch_default_device())
    return exact.nearest(queries, index._on_device, k, index.similarity.metric, forbid)


def faiss_has_gpu() -> bool:
    return hasattr(faiss, "GpuIndexFlatIP") and faiss.get_num_gpus() > 0


def _nearest_faiss_gpu(index: FlatIndex, queries: np.ndarray, k: int):  # pragma: no cover
    inner = index.similarity.metric == "ip"
    if index._on_gpu is None:
        build = faiss.GpuIndexFlatIP if inner else faiss.GpuIndexFlatL2
        resources = faiss.StandardGpuResources()
        on_gpu = build(resources, index.vectors.shape[1])
        on_gpu.add(index.vectors)
        # The resources must live as long as the index.
        index._on_gpu = (on_gpu, resources)
    distances, rows = index._on_gpu[0].search(queries, k)
    return (distances if inner else -distances), rows


@registry.misc("spacy-arbo-el.FlatIndex.v1")
def flat_index() -> BuildIndex:
    """Exact search; right up to some hundred thousand vectors."""

    def build(
        rows: VectorRows, similarity: Similarity, attached: Optional[AttachedIndex] = None
    ) -> FlatIndex:
        return FlatIndex(similarity.prepare(rows.array()), similarity)

    return build
