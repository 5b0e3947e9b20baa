"""Average linkage over the edges of a graph, by the vectors of its nodes or by weights of edges."""

import heapq
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from ..compiling import numba_jit
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
    weight: Optional[np.ndarray] = None,
) -> Joins:
    """Which nodes join at which dissimilarity, when the two nearest clusters always join first.

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
    weight: (E,) dissimilarities of edges, which count in place of those of vectors, see
        ``average_edge_joins``; None to compare vectors.
    RETURNS: Joins with ascending levels: clusters nest as the threshold rises.
    """
    if weight is not None:
        return average_edge_joins(len(vectors), source, target, weight, limit)
    vectors = np.ascontiguousarray(check_floats("vectors", vectors, ndim=2))
    source, target = check_integers("source", source), check_integers("target", target)
    squares = np.einsum("nw,nw->n", vectors, vectors) if euclidean else np.zeros(len(vectors))
    scale = 2.0 if euclidean else 1.0
    a, b, level = _agglomerate(
        vectors, squares.astype(np.float64), scale, source, target, float(limit)
    )
    # Joining can bring clusters closer to others, so a join can have a lower level than the one
    # before it. What has joined stays joined.
    return Joins(a, b, np.maximum.accumulate(level) if len(level) else level)


def average_edge_joins(
    n_nodes: int, source: np.ndarray, target: np.ndarray, weight: np.ndarray, limit: float
) -> Joins:
    """As ``average_joins``, where only the weights of edges are known.

    The dissimilarity of two clusters is the mean weight of the edges between them. An edge and its
    opposite are one edge, with their mean weight. O(E log² E).

    source, target: (E,) the ends of each edge.
    weight: (E,) its dissimilarity.
    limit: The largest dissimilarity at which clusters join.
    """
    low, high = np.minimum(source, target), np.maximum(source, target)
    kept = np.flatnonzero(low != high)
    keys = low[kept].astype(np.int64) * n_nodes + high[kept]
    edges, edge = np.unique(keys, return_inverse=True)
    weights = np.bincount(edge, weights=weight[kept].astype(np.float64)) / np.bincount(edge)
    ends = (edges // max(n_nodes, 1)).tolist(), (edges % max(n_nodes, 1)).tolist()
    joins = _join_by_edges(n_nodes, *ends, weights.tolist(), limit)
    a, b, level = zip(*joins) if joins else ((), (), ())
    levels = np.array(level, dtype=np.float32)
    levels = np.maximum.accumulate(levels) if len(levels) else levels
    return Joins(np.array(a, dtype=np.int32), np.array(b, dtype=np.int32), levels)


# Weights of edges come from a model that reads each pair, which takes a thousand times as long.
def _join_by_edges(
    n_nodes: int, source: List[int], target: List[int], weight: List[float], limit: float
) -> List[Tuple[int, int, float]]:
    """Joins, in order. Of each cluster the sum and number of its edges to each other one."""
    to: List[Dict[int, Tuple[float, int]]] = [{} for _ in range(n_nodes)]
    for a, b, value in zip(source, target, weight):
        to[a][b] = to[b][a] = (value, 1)
    heap = [(value, a, b, 1) for a, b, value in zip(source, target, weight) if value <= limit]
    heapq.heapify(heap)
    joins = []
    while heap:
        level, a, b, count = heapq.heappop(heap)
        total, present = to[a].get(b, (0.0, 0))
        if present != count or total / count != level:
            continue
        joins.append((a, b, level))
        if len(to[a]) < len(to[b]):
            a, b = b, a
        del to[a][b]
        for other, (value, number) in to[b].items():
            if other == a:
                continue
            before, earlier = to[a].get(other, (0.0, 0))
            value, number = before + value, earlier + number
            to[a][other] = to[other][a] = (value, number)
            del to[other][b]
            if value / number <= limit:
                heapq.heappush(heap, (value / number, min(a, other), max(a, other), number))
        to[b] = {}
    return joins


@numba_jit()
def _mean_dissimilarity(
    total: np.ndarray, square: np.ndarray, size: np.ndarray, a: Any, b: Any, scale: float
) -> float:
    """The mean dissimilarity of the members of two clusters."""
    product = 0.0
    for column in range(total.shape[1]):
        product += total[a, column] * total[b, column]
    return square[a] / size[a] + square[b] / size[b] - scale * product / (size[a] * size[b])


@numba_jit()
def _agglomerate(
    vectors: np.ndarray,
    squares: np.ndarray,
    scale: float,
    source: np.ndarray,
    target: np.ndarray,
    limit: float,
) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:  # pragma: no cover - compiled
    """Joins, in order. An edge is in the heap with the last dissimilarity of its clusters."""
    n = len(vectors)
    total, square, size = vectors.copy(), squares.copy(), np.ones(n)
    label = np.arange(n).astype(np.int32)
    heap: List[Any] = [(0.0, 0, 0)]
    heap.pop()
    for edge in range(len(source)):
        a, b = source[edge], target[edge]
        if a != b:
            value = _mean_dissimilarity(total, square, size, a, b, scale)
            if value <= limit:
                heap.append((value, np.int64(min(a, b)), np.int64(max(a, b))))
    heapq.heapify(heap)
    left, right = np.empty(n, np.int32), np.empty(n, np.int32)
    level = np.empty(n, np.float32)
    joined = 0
    while len(heap):
        before, first, second = heapq.heappop(heap)
        a, b = find(label, np.int32(first)), find(label, np.int32(second))
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
        left[joined], right[joined], level[joined] = a, b, now
        joined += 1
    return left[:joined], right[:joined], level[:joined]
