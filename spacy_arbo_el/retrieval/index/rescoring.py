"""Exact similarities of candidate rows, from the stored vectors."""

from concurrent.futures import ThreadPoolExecutor
from typing import Optional

import numpy as np

from ...arrays import TopK
from ...compiling import numba_jit
from ...devices import n_threads
from ...kb.vectors import VectorRows
from ..similarity import Similarity

# The float32 of every float16: converting by table is faster than by arithmetic.
_FLOAT16_VALUES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
# Candidates that are read at a time.
READ = 4096


def similarities(
    rows: VectorRows, queries: np.ndarray, candidates: np.ndarray, similarity: Similarity
) -> np.ndarray:
    """Similarities of queries to candidate rows, pair by pair. Each from its two vectors alone.

    queries: (m, width) float32, prepared.
    candidates: (m, c) int64 rows, -1 for none.
    RETURNS: (m, c) float32, -inf where a candidate is -1.
    """
    scores = np.full(candidates.shape, -np.inf, dtype=np.float32)
    if not scores.size:
        return scores
    step = max(READ // candidates.shape[1], 1)
    is_float16 = rows.dtype == "float16"
    table = _FLOAT16_VALUES if is_float16 else None
    settings = (similarity.normalize, similarity.metric == "ip")

    def score(start: int) -> None:
        block = slice(start, start + step)
        valid = candidates[block] >= 0
        vectors = rows.stored(candidates[block][valid])
        vectors = vectors.view(np.uint16) if is_float16 else vectors
        _score(vectors, table, valid, queries[block], *settings, scores[block])

    starts = range(0, len(queries), step)
    threads = min(n_threads(), len(starts))
    if threads > 1:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(score, starts))
    else:
        for start in starts:
            score(start)
    return scores


def pairs(vectors: np.ndarray, queries: np.ndarray, rows: np.ndarray, inner: bool) -> np.ndarray:
    """Similarities of queries to rows in memory. Each from its two vectors alone.

    vectors: (n, width) float32, prepared, contiguous.
    queries: (m, width) float32, prepared.
    rows: (m, c) int64, -1 for none.
    inner: Whether similarities are inner products, not negative squared distances.
    RETURNS: (m, c) float32, -inf where a row is -1.
    """
    scores = np.full(rows.shape, -np.inf, dtype=np.float32)
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    _score_pairs(vectors, queries, rows.astype(np.int64, copy=False), inner, scores)
    return scores


def best(rows: np.ndarray, scores: np.ndarray, k: int) -> TopK:
    """The k best rows of each query: (m, k). All if there are fewer; of equals the first.

    rows: (m, c) int64, each at most once, -1 for none.
    scores: (m, c) float32, -inf for none.
    """
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    rows, scores = (np.take_along_axis(array, order, axis=1) for array in (rows, scores))
    return TopK(np.where(np.isfinite(scores), rows, -1), scores)


@numba_jit(interpret=False, fastmath={"reassoc", "contract", "nsz"})
def _score(  # pragma: no cover - compiled
    vectors: np.ndarray,
    table: Optional[np.ndarray],
    valid: np.ndarray,
    queries: np.ndarray,
    normalize: bool,
    inner: bool,
    scores: np.ndarray,
) -> None:
    """Write the similarities of a block of queries into ``scores``.

    vectors: One for each True in ``valid``, in order.
    table: The float32 that each number in ``vectors`` encodes; None where they are float32.
    """
    at = 0
    for i in range(len(queries)):
        for j in range(valid.shape[1]):
            if not valid[i, j]:
                continue
            product, square, own = np.float32(0), np.float32(0), np.float32(0)
            for k in range(vectors.shape[1]):
                if table is None:  # noqa: SIM108  decided when this is compiled
                    value = vectors[at, k]
                else:
                    value = table[vectors[at, k]]
                product += value * queries[i, k]
                square += value * value
                own += queries[i, k] * queries[i, k]
            at += 1
            if normalize:
                product /= max(np.sqrt(square), np.float32(1e-12))
                square = np.float32(1)
            scores[i, j] = product if inner else 2 * product - square - own


@numba_jit(interpret=False, fastmath={"reassoc", "contract", "nsz"})
def _score_pairs(  # pragma: no cover - compiled
    vectors: np.ndarray, queries: np.ndarray, rows: np.ndarray, inner: bool, scores: np.ndarray
) -> None:
    """Write the similarities of queries to their rows into ``scores``."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            row = rows[i, j]
            if row < 0:
                continue
            total = np.float32(0)
            if inner:
                for k in range(vectors.shape[1]):
                    total += vectors[row, k] * queries[i, k]
            else:
                for k in range(vectors.shape[1]):
                    difference = vectors[row, k] - queries[i, k]
                    total -= difference * difference
            scores[i, j] = total
