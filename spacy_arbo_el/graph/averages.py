"""Average linkage over the edges of a graph, by the vectors of its nodes."""

import heapq

import numba
import numpy as np

from .checks import check_floats, check_integers
from .levels import Joins
from .union_find import find


def average_joins(
    vectors: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    limit: float,
    *,
    euclidean: bool = False,
) -> Joins:
    """Which nodes join at which dissimilarity, when the nearest two clusters join first.

    Clusters are as near as their members are on average, over all pairs: the mean is exact, from
    the sum of each cluster's vectors, and costs one inner product. But only clusters that an edge
    joins are compared, so that the cost is that of the edges, not of all pairs. (Agglomeration over
    nearest neighbours comes close to that over all pairs: Monath et al. 2021, §3.)

    vectors: (n, width) float32. source, target: (E,) ends of the edges, in either direction.
    limit: Clusters farther apart than this (in the unit of the weights) don't join.
    euclidean: Dissimilarity is the squared Euclidean distance, rather than minus the inner product.
    RETURNS: Joins with ascending levels: clusters nest as the threshold rises.

    O(E (log E + width)) where clusters stay small beside the number of edges.
    """
    vectors = np.ascontiguousarray(check_floats("vectors", vectors, ndim=2))
    source, target = check_integers("source", source), check_integers("target", target)
    squares = np.einsum("nw,nw->n", vectors, vectors) if euclidean else np.zeros(len(vectors))
    scale = 2.0 if euclidean else 1.0
    a, b, level = _agglomerate(
        vectors, squares.astype(np.float64), scale, source, target, float(limit)
    )
    # Two clusters can come nearer by what they join: what has joined before stays joined.
    return Joins(a, b, np.maximum.accumulate(level) if len(level) else level)


@numba.njit(cache=True, nogil=True)
def _apart(total, square, size, a, b, scale):
    """The mean dissimilarity of two clusters."""
    product = 0.0
    for column in range(total.shape[1]):
        product += total[a, column] * total[b, column]
    return square[a] / size[a] + square[b] / size[b] - scale * product / (size[a] * size[b])


@numba.njit(cache=True, nogil=True)
def _agglomerate(vectors, squares, scale, source, target, limit):  # pragma: no cover - compiled
    """Joins, in order. An edge waits in the heap with how far apart its clusters last were."""
    n = len(vectors)
    total, square, size = vectors.copy(), squares.copy(), np.ones(n)
    label = np.arange(n).astype(np.int32)
    heap = [(0.0, 0, 0)]
    heap.pop()
    for edge in range(len(source)):
        a, b = source[edge], target[edge]
        if a != b:
            apart = _apart(total, square, size, a, b, scale)
            if apart <= limit:
                heap.append((apart, np.int64(min(a, b)), np.int64(max(a, b))))
    heapq.heapify(heap)
    left, right = np.empty(n, np.int32), np.empty(n, np.int32)
    level = np.empty(n, np.float32)
    joined = 0
    while len(heap):
        known, first, second = heapq.heappop(heap)
        a, b = find(label, np.int32(first)), find(label, np.int32(second))
        if a == b:
            continue
        now = _apart(total, square, size, a, b, scale)
        if now > known + 1e-9:
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
        left[joined], right[joined], level[joined] = a, b, now
        joined += 1
    return left[:joined], right[:joined], level[:joined]
