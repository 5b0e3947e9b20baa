"""Average linkage over a graph's edges, by node vectors."""

import heapq
from typing import Any

import numpy as np

from ..base.compiling import numba_jit
from .edges import check_floats, check_integers
from .levels import Joins
from .linkage import find


def average_joins(
    vectors: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    limit: float,
    *,
    euclidean: bool = False,
) -> Joins:
    """Join the two nearest clusters repeatedly. Returns which nodes join at which dissimilarity.

    The dissimilarity of two clusters is the mean over all pairs of their members. It is exact, and
    costs one inner product of the sums of their vectors. Only clusters that an edge connects are
    compared, so the cost depends on the number of edges, not of pairs. (Agglomeration over nearest
    neighbours is close to that over all pairs: Monath et al. 2021, §3.)

    O(E (log E + width)) where clusters stay small beside the number of edges.

    vectors: (n, width) float32.
    source: (E,) one end of each edge.
    target: (E,) the other end.
    limit: The largest dissimilarity at which clusters join.
    euclidean: Whether dissimilarity is the squared Euclidean distance, instead of minus the inner
        product.
    RETURNS: Joins with ascending levels: clusters nest as the threshold rises.
    """
    vectors = np.ascontiguousarray(check_floats("vectors", vectors, ndim=2))
    source = check_integers("source", source)
    target = check_integers("target", target)
    squares = np.einsum("nw,nw->n", vectors, vectors) if euclidean else np.zeros(len(vectors))
    scale = 2.0 if euclidean else 1.0
    a, b, level = _agglomerate(
        vectors, squares.astype(np.float64), scale, source, target, float(limit)
    )
    # Joining can bring clusters closer to others, so a join can have a lower level than the one
    # before it. What has joined stays joined.
    return Joins(a, b, np.maximum.accumulate(level) if len(level) else level)


@numba_jit(interpret=False)
def _mean_dissimilarity(
    total: np.ndarray, square: np.ndarray, size: np.ndarray, a: Any, b: Any, scale: float
) -> float:
    product = 0.0
    for column in range(total.shape[1]):
        product += total[a, column] * total[b, column]
    return square[a] / size[a] + square[b] / size[b] - scale * product / (size[a] * size[b])


@numba_jit(interpret=False)
def _agglomerate(
    vectors: np.ndarray,
    squares: np.ndarray,
    scale: float,
    source: np.ndarray,
    target: np.ndarray,
    limit: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # pragma: no cover - compiled
    """Joins, in order. An edge is in the heap with the last dissimilarity of its clusters."""
    n = len(vectors)
    total = vectors.copy()
    square = squares.copy()
    size = np.ones(n)
    label = np.arange(n).astype(np.int32)
    heap: list[Any] = [(0.0, 0, 0)]
    heap.pop()
    for edge in range(len(source)):
        a = source[edge]
        b = target[edge]
        if a != b:
            value = _mean_dissimilarity(total, square, size, a, b, scale)
            if value <= limit:
                heap.append((value, np.int64(min(a, b)), np.int64(max(a, b))))
    heapq.heapify(heap)
    left = np.empty(n, np.int32)
    right = np.empty(n, np.int32)
    level = np.empty(n, np.float32)
    joined = 0
    while len(heap):
        before, first, second = heapq.heappop(heap)
        a = find(label, np.int32(first))
        b = find(label, np.int32(second))
        if a == b:
            continue
        now = _mean_dissimilarity(total, square, size, a, b, scale)
        if now > before + 1e-9:
            if now <= limit:
                heapq.heappush(heap, (now, first, second))
            continue
        if size[a] < size[b]:
            a, b = b, a
        label[b] = a
        for column in range(total.shape[1]):
            total[a, column] += total[b, column]
        square[a] += square[b]
        size[a] += size[b]
        left[joined] = a
        right[joined] = b
        level[joined] = now
        joined += 1
    return left[:joined], right[:joined], level[:joined]
