"""Nearest-neighbour search. One kind here, exact; an index is built over prepared vectors."""

from typing import Callable, Tuple

import numpy as np
from spacy.util import registry

from ..errors import Errors
from .similarity import Similarity

try:
    import faiss
except ImportError:  # pragma: no cover - depends on what is installed
    faiss = None  # type: ignore[assignment]


class FlatIndex:
    """Exact search with FAISS over the vectors as they are: no copy, nothing to train or rebuild.

    vectors: (n, width) float32, prepared. Changed in place, they are found as changed.
    """

    def __init__(self, vectors: np.ndarray, similarity: Similarity):
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        self.similarity = similarity

    def __len__(self) -> int:
        return len(self.vectors)

    def search(self, queries: np.ndarray, k: int) -> Tuple[np.ndarray, np.ndarray]:
        """The k nearest rows of each query.

        queries: (m, width) float32, prepared.
        RETURNS: similarities (m, k') float32, largest first, and rows (m, k') int64, with k' =
            min(k, n). Equal similarities come in row order.
        """
        k = min(k, len(self))
        if k <= 0 or not len(queries):
            shape = (len(queries), max(k, 0))
            return np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.int64)
        if queries.shape[1] != self.vectors.shape[1]:
            got, expected = queries.shape[1], self.vectors.shape[1]
            raise ValueError(Errors.E301.format(got=got, expected=expected))
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        rows = _nearest_faiss(self, queries, k) if faiss else _nearest_numpy(self, queries, k)
        similarities = self.similarity.paired(queries, self.vectors[rows])
        order = np.lexsort((rows, -similarities), axis=1)
        take = np.take_along_axis
        return take(similarities, order, axis=1), take(rows, order, axis=1)


def _nearest_faiss(index: FlatIndex, queries: np.ndarray, k: int) -> np.ndarray:
    inner = index.similarity.metric == "ip"
    metric = faiss.METRIC_INNER_PRODUCT if inner else faiss.METRIC_L2
    return faiss.knn(queries, index.vectors, k, metric=metric)[1]


def _nearest_numpy(index: FlatIndex, queries: np.ndarray, k: int, block: int = 256) -> np.ndarray:
    found = []
    for start in range(0, len(queries), block):
        scores = index.similarity.blocks(queries[start : start + block], index.vectors)
        found.append(np.argpartition(-scores, k - 1, axis=1)[:, :k])
    return np.concatenate(found)


BuildIndex = Callable[[np.ndarray, Similarity], FlatIndex]


@registry.misc("spacy-arbo-el.FlatIndex.v1")
def flat_index() -> BuildIndex:
    """Exact search; right up to some hundred thousand vectors."""
    return FlatIndex
