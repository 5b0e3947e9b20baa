"""Minimax dissimilarity (Equation 1). Each mention goes to its nearest entity.

Of each directed path from e to m, take the largest edge; f(e, m) is the smallest of these. One
search from all entities at once finds the smallest f of every mention. In each step, the lightest
edge that leaves the nodes reached so far adds its head to them.

Proof: suppose that a mention had a path whose largest edge is smaller than that of the path it is
reached by. Then the first edge of that path to leave the nodes reached so far would have been taken
before. Of paths with the same largest edge, the search takes the one that is lighter after it.
"""

from typing import Any

import numpy as np

from ..base.compiling import jit_helper, numba_jit
from .edges import NO_KEY, Forest, Graph, edge_of, incoming


@jit_helper
def _rise(heap: np.ndarray, at: Any, key: Any) -> None:
    """Put a key at an empty place of a binary heap or above it."""
    while at > 0 and heap[(at - 1) >> 1] > key:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = key


@jit_helper
def _sink(heap: np.ndarray, size: int, key: Any) -> None:
    """Put a key at the top of a binary heap, which is empty, or below it."""
    at = 0
    below = 1
    while below < size:
        if below + 1 < size and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= key:
            break
        heap[at] = heap[below]
        at = below
        below = 2 * at + 1
    heap[at] = key


@numba_jit()
def _search(
    n_entities: int,
    source: np.ndarray,
    target: np.ndarray,
    first: np.ndarray,
    keys: np.ndarray,
    heap: np.ndarray,
    parent: np.ndarray,
    edge: np.ndarray,
) -> None:
    """Reach mentions by the lightest edges from those reached. See the module.

    first, keys: The edges out of each node, as ``Incoming``.
    heap: (edges,) int64, for temporary use.
    """
    # The lightest edge into each mention from nodes reached so far.
    best = np.full(len(parent), NO_KEY, np.int64)
    size = 0
    for i in range(first[n_entities]):
        mention = target[edge_of(keys[i])] - n_entities
        if keys[i] < best[mention]:
            best[mention] = keys[i]
            _rise(heap, size, keys[i])
            size += 1
    while size > 0:
        lightest = edge_of(heap[0])
        head = target[lightest]
        size -= 1
        _sink(heap, size, heap[size])
        if edge[head - n_entities] != -1:
            continue
        edge[head - n_entities] = lightest
        parent[head - n_entities] = source[lightest]
        for i in range(first[head], first[head + 1]):
            mention = target[edge_of(keys[i])] - n_entities
            if keys[i] < best[mention] and edge[mention] == -1:
                best[mention] = keys[i]
                _rise(heap, size, keys[i])
                size += 1


def minimax_of(graph: Graph, threshold: np.float32) -> Forest:
    """Hang each mention under the entity with the least minimax dissimilarity (Equation 1).

    Where several entities have the same, the mention goes to the one whose path is lighter after
    its heaviest edge, and then to the one whose edge is earlier in the arrays. Mentions that no
    entity reaches have no parent. O(E log M) time.
    """
    n_entities, n_mentions, source, target, weight = graph
    turned = Graph(0, n_entities + n_mentions, target, source, weight)
    outgoing = incoming(turned, threshold, is_sorted=False)
    heap = np.empty(len(outgoing.keys), np.int64)
    parent = np.full(n_mentions, -1, np.int32)
    edge = np.full(n_mentions, -1, np.int64)
    _search(n_entities, source, target, *outgoing, heap, parent, edge)
    return Forest(parent, edge)
