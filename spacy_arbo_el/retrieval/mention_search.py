"""The nearest mentions of mentions. They are in the same document, or among earlier ones.

``corpus_search.py`` has those in a corpus.
"""

import hashlib
from collections.abc import Callable

import numpy as np

from ..base.arrays import TopK
from .similarity import Similarity

# Mentions of a document that are compared by one matrix product.
MAX_COMPARED = 1024
# Similarities, and pairs of vectors, that are in memory at a time.
MAX_SCORES, MAX_PAIRS = 1 << 22, 1 << 14
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
    """The ``count`` nearest others of each of a few mentions."""
    scores = similarity.blocks(vectors, vectors)
    np.fill_diagonal(scores, -np.inf)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return TopK(order, np.take_along_axis(scores, order, axis=1))


def _compare_in_blocks(vectors: np.ndarray, count: int, similarity: Similarity) -> TopK:
    """The ``count`` nearest others of each of many mentions."""
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
        best = _exact_nearest(queries, scores, rounding, compared.__getitem__, count, similarity)
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


def nearest_earlier(
    earlier: np.ndarray,
    new: np.ndarray,
    count: int,
    similarity: Similarity,
    block: int = 256,
    left_out: np.ndarray | None = None,
) -> TopK:
    """Nearest earlier mentions of each new one: (m, count).

    The result for a mention depends on it and on the mentions before it alone, not on how many
    come at once.

    earlier: (n, width) float32, prepared.
    new: (m, width) float32, prepared, in the order in which they came. Those without a vector have
        no neighbours and are none.
    block: How many new mentions are compared at a time.
    left_out: (n,) bool, earlier mentions that are not searched; None to search all.
    RETURNS: Numbers of mentions; those of new ones are counted on from n.
    """
    n, numbers = len(earlier), np.arange(len(new))
    nearest = TopK.empty(len(new), count)
    unusable = ~usable(new)
    if unusable.any():
        new = np.where(unusable[:, None], np.float32(0), new)
    hidden = np.zeros(n, dtype=bool) if left_out is None else left_out
    largest = max(similarity.largest_norm(part) for part in (earlier, new))
    for start in range(0, len(new), block):
        queries = new[start : start + block]
        recent = new[: start + len(queries)]
        scores = np.full((len(queries), n + len(recent)), -np.inf, dtype=np.float32)
        if n:
            scores[:, :n] = similarity.blocks(queries, earlier)
            scores[:, :n][:, hidden] = -np.inf
        scores[:, n:] = similarity.blocks(queries, recent)
        is_later = np.arange(len(recent)) >= numbers[start : start + len(queries), None]
        scores[:, n:][is_later] = -np.inf
        scores[:, n:][:, unusable[: len(recent)]] = -np.inf
        scores[unusable[start : start + len(queries)]] = -np.inf

        def vectors(rows: np.ndarray, recent: np.ndarray = recent) -> np.ndarray:
            return _take_from_two(earlier, recent, rows)

        rounding = similarity.rounding(queries, largest)
        best = _exact_nearest(queries, scores, rounding, vectors, count, similarity)
        nearest.ids[start : start + block, : best.width] = best.ids
        nearest.scores[start : start + block, : best.width] = best.scores
    return nearest


def _exact_nearest(
    queries: np.ndarray,
    scores: np.ndarray,
    rounding: np.ndarray,
    vectors: Callable[[np.ndarray], np.ndarray],
    count: int,
    similarity: Similarity,
) -> TopK:
    """Columns with the largest exact similarities: (b, count). Fewer if there are fewer; of equals
    the first count.

    queries: (b, width) float32.
    scores: (b, n) float32, similarities from matrix products, whose rounding depends on the size of
        the matrix. -inf for columns that must not be taken.
    rounding: (b,), by how much two of them can be in the wrong order.
    vectors: Function from columns (p,) to their vectors.
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
        pairs = vectors(columns[part])[:, None]
        exact[part] = similarity.paired(queries[rows[part]], pairs)[:, 0]
    order = np.lexsort((columns, -exact, rows))
    firsts = np.searchsorted(rows, np.arange(len(scores)))
    place = np.arange(len(rows)) - firsts[rows]
    kept = place < count
    taken = order[kept]
    nearest.ids[rows[kept], place[kept]] = columns[taken]
    nearest.scores[rows[kept], place[kept]] = exact[taken]
    return nearest


def _take_from_two(first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows (m, k) of ``concatenate([first, second])``, without concatenating them."""
    taken = np.empty((*rows.shape, second.shape[1]), dtype=np.float32)
    in_first = rows < len(first)
    if in_first.any():
        taken[in_first] = first[rows[in_first]]
    taken[~in_first] = second[rows[~in_first] - len(first)]
    return taken
