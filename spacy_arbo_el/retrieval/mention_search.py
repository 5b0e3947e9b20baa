"""The nearest mentions of a document's mentions. ``corpus_search.py`` has those in a corpus."""

import hashlib

import numpy as np

from ..base.arrays import TopK
from .similarity import Similarity

# Mentions of a document that are compared by one matrix product.
MAX_COMPARED = 1024
# Similarities, and pairs of vectors, that are in memory at a time.
MAX_SCORES = 1 << 22
MAX_PAIRS = 1 << 14
# Vectors that are hashed at a time.
HASHED = 4096


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
        search = _compare_all if len(rows) <= MAX_COMPARED else _compare_in_blocks
        found = search(vectors[rows], width, similarity)
        nearest.ids[rows, :width] = rows[found.ids]
        nearest.scores[rows, :width] = found.scores
    return nearest


def usable(vectors: np.ndarray) -> np.ndarray:
    """(n,) bool, the vectors that can be compared. Zeros stand for text that cannot be read."""
    return vectors.any(axis=1) & np.isfinite(vectors).all(axis=1)


def _compare_all(vectors: np.ndarray, count: int, similarity: Similarity) -> TopK:
    scores = similarity.blocks(vectors, vectors)
    np.fill_diagonal(scores, -np.inf)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return TopK(order, np.take_along_axis(scores, order, axis=1))


def _compare_in_blocks(vectors: np.ndarray, count: int, similarity: Similarity) -> TopK:
    nearest = TopK.empty(len(vectors), count)
    columns = first_copies(vectors, count + 1)
    compared = vectors[columns]
    largest = similarity.largest_norm(compared)
    step = max(MAX_SCORES // len(columns), 1)
    for start in range(0, len(vectors), step):
        queries = vectors[start : start + step]
        scores = similarity.blocks(queries, compared)
        own = np.searchsorted(columns, np.arange(start, start + len(queries)))
        is_own = columns[np.minimum(own, len(columns) - 1)] == np.arange(start, start + len(own))
        scores[np.flatnonzero(is_own), own[is_own]] = -np.inf
        rounding = similarity.rounding(queries, largest)
        best = _exact_nearest(queries, scores, rounding, compared, count, similarity)
        nearest.ids[start : start + step] = columns[best.ids]
        nearest.scores[start : start + step] = best.scores
    return nearest


def first_copies(vectors: np.ndarray, count: int) -> np.ndarray:
    """Rows without copies beyond ``count``: (c,) int64, ascending. Those that have ``count`` equal
    ones before them are left out.

    Of equal vectors the first ones come first, so the others are never among the ``count`` nearest.
    """
    copies: dict[bytes, int] = {}
    kept = np.zeros(len(vectors), dtype=bool)
    for row, digest in enumerate(digests_of(vectors).tolist()):
        copies[digest] = copies.get(digest, 0) + 1
        kept[row] = copies[digest] <= count
    return np.flatnonzero(kept)


def digests_of(vectors: np.ndarray) -> np.ndarray:
    """Hash each vector to 16 bytes: (m,). Equal ones have equal hashes.

    vectors: (m, width) float32. A zero is one with either sign.
    """
    digests = np.empty(len(vectors), dtype="V16")
    for start in range(0, len(vectors), HASHED):
        block = vectors[start : start + HASHED] + np.float32(0)
        for row, data in enumerate(np.ascontiguousarray(block).view(np.uint8), start):
            digests[row] = hashlib.blake2b(data, digest_size=16).digest()
    return digests


def _exact_nearest(
    queries: np.ndarray,
    scores: np.ndarray,
    rounding: np.ndarray,
    vectors: np.ndarray,
    count: int,
    similarity: Similarity,
) -> TopK:
    """Columns with the largest exact similarities: (b, count). Fewer if there are fewer; of equals
    the first count.

    queries: (b, width) float32.
    scores: (b, n) float32, similarities from matrix products, whose rounding depends on the size of
        the matrix. -inf for columns that must not be taken.
    rounding: (b,), by how much two of them can be in the wrong order.
    vectors: (n, width) float32, those of the columns.
    """
    count = min(count, scores.shape[1])
    nearest = TopK.empty(len(scores), count)
    if not count:
        return nearest
    # Whatever is within the rounding error of the last that would be taken is compared exactly.
    last = np.partition(scores, scores.shape[1] - count, axis=1)[:, -count]
    least = np.maximum(last - rounding, np.finfo(np.float32).min).astype(np.float32)
    rows, columns = np.nonzero(scores >= least[:, None])
    exact = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), MAX_PAIRS):
        part = slice(start, start + MAX_PAIRS)
        pairs = vectors[columns[part]][:, None]
        exact[part] = similarity.paired(queries[rows[part]], pairs)[:, 0]
    order = np.lexsort((columns, -exact, rows))
    firsts = np.searchsorted(rows, np.arange(len(scores)))
    place = np.arange(len(rows)) - firsts[rows]
    kept = place < count
    taken = order[kept]
    nearest.ids[rows[kept], place[kept]] = columns[taken]
    nearest.scores[rows[kept], place[kept]] = exact[taken]
    return nearest
