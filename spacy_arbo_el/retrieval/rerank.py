"""Exact similarities of candidates, from vectors as they are stored."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numba import njit

from ..kb.vectors import VectorRows
from .similarity import Similarity

# Every float16 as a float32: half of a number's cost is finding out what it is.
_HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
# Candidates read at a time.
READ = 4096


def similarities(
    rows: VectorRows, queries: np.ndarray, candidates: np.ndarray, similarity: Similarity
) -> np.ndarray:
    """(m, c) float32, of queries (m, width), prepared, to candidates' rows (m, c) int64.

    -inf where a candidate is -1. Each depends on its two vectors alone, not on what else is asked.
    """
    scores = np.full(candidates.shape, -np.inf, dtype=np.float32)
    if not scores.size:
        return scores
    step = max(READ // candidates.shape[1], 1)
    halves = rows.dtype == "float16"
    table = _HALVES if halves else None
    settings = (similarity.normalise, similarity.metric == "ip")

    def score(start: int) -> None:
        some = slice(start, start + step)
        there = candidates[some] >= 0
        vectors = rows.stored(candidates[some][there])
        vectors = vectors.view(np.uint16) if halves else vectors
        _score(vectors, table, there, queries[some], *settings, scores[some])

    starts = range(0, len(queries), step)
    threads = min(torch.get_num_threads(), len(starts))
    if threads > 1:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(score, starts))
    else:
        for start in starts:
            score(start)
    return scores


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _score(vectors, table, there, queries, normalise, inner, scores):  # pragma: no cover - compiled
    """vectors: One for each True in ``there``, in order. table: What each number of them stands
    for; None where they stand for themselves."""
    at = 0
    for i in range(len(queries)):
        for j in range(there.shape[1]):
            if not there[i, j]:
                continue
            product, square, own = np.float32(0), np.float32(0), np.float32(0)
            for k in range(vectors.shape[1]):
                if table is None:  # noqa: SIM108  known when this is compiled
                    value = vectors[at, k]
                else:
                    value = table[vectors[at, k]]
                product += value * queries[i, k]
                square += value * value
                own += queries[i, k] * queries[i, k]
            at += 1
            if normalise:
                product /= max(np.sqrt(square), np.float32(1e-12))
                square = np.float32(1)
            scores[i, j] = product if inner else 2 * product - square - own
