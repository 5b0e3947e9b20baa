"""The nearest mentions of a document's mentions. ``corpus_search.py`` has those in a corpus."""

import numpy as np

from ..base.arrays import TopK
from .corpus_search import nearest_in_corpus, usable
from .similarity import Similarity

# Mentions of a document that are compared by one matrix product.
MAX_COMPARED = 1024


def nearest_in_document(
    vectors: np.ndarray, documents: np.ndarray, count: int, similarity: Similarity
) -> TopK:
    """The nearest other mentions of the same document, (m, count).

    Mentions without a vector have no neighbours and are none. The cost grows with the square of a
    document's mentions, the memory in proportion to them.

    vectors: (m, width) float32, prepared.
    documents: (m,) int64, ascending, the number of the document of each mention.
    """
    nearest = TopK.empty(len(vectors), count)
    readable = np.flatnonzero(usable(vectors))
    bounds = np.flatnonzero(np.diff(documents[readable], prepend=-1, append=-1))
    for start, end in zip(bounds[:-1], bounds[1:]):
        width = min(count, end - start - 1)
        if width <= 0:
            continue
        rows = readable[start:end]
        search = _compare_all if len(rows) <= MAX_COMPARED else nearest_in_corpus
        found = search(vectors[rows], width, similarity)
        nearest.ids[rows, :width] = rows[found.ids]
        nearest.scores[rows, :width] = found.scores
    return nearest


def _compare_all(vectors: np.ndarray, count: int, similarity: Similarity) -> TopK:
    scores = similarity.blocks(vectors, vectors)
    np.fill_diagonal(scores, -np.inf)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return TopK(order, np.take_along_axis(scores, order, axis=1))
