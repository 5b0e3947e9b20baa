"""Exact similarities of candidates, straight from where the vectors lie."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numba import njit

from ..kb.vectors import VectorRows
from .similarity import Similarity

# Every float16 as a float32: half of a number's cost is finding out what it is.
_HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
# Fewer queries than these are not worth another thread.
ALONE = 8


def similarities(
    rows: VectorRows, queries: np.ndarray, candidates: np.ndarray, similarity: Similarity
) -> np.ndarray:
    """(m, c) float32, of queries (m, width), prepared, to candidates' rows (m, c) int64.

    -inf where a candidate is -1. Each depends on its two vectors alone, not on what else is asked.
    """
    scores = np.full(candidates.shape, -np.inf, dtype=np.float32)
    settings = (similarity.normalise, similarity.metric == "ip")
    first = 0
    for part in rows.parts:
        if len(part):
            halves = part.dtype == np.float16
            values = np.asarray(part).view(np.uint16) if halves else np.asarray(part)
            table = _HALVES if halves else None

            def score(some: slice, values=values, table=table, first=first) -> None:
                _score(
                    values, table, first, candidates[some], queries[some], *settings, scores[some]
                )

            _in_threads(score, len(queries))
            rows.touch(int((candidates >= first).sum()))
        first += len(part)
    return scores


def _in_threads(work, count: int) -> None:
    threads = min(torch.get_num_threads(), count // ALONE)
    if threads <= 1:
        work(slice(0, count))
        return
    bounds = np.linspace(0, count, threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, map(slice, bounds[:-1], bounds[1:])))


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _score(
    values, table, first, candidates, queries, normalise, inner, scores
):  # pragma: no cover - compiled
    """table: What each of ``values`` stands for; None where they stand for themselves."""
    for i in range(len(candidates)):
        for j in range(candidates.shape[1]):
            row = candidates[i, j] - first
            if candidates[i, j] < first or row >= len(values):
                continue
            product, square, own = np.float32(0), np.float32(0), np.float32(0)
            for k in range(values.shape[1]):
                if table is None:  # noqa: SIM108  known when this is compiled
                    value = values[row, k]
                else:
                    value = table[values[row, k]]
                product += value * queries[i, k]
                square += value * value
                own += queries[i, k] * queries[i, k]
            if normalise:
                product /= max(np.sqrt(square), np.float32(1e-12))
                square = np.float32(1)
            scores[i, j] = product if inner else 2 * product - square - own
