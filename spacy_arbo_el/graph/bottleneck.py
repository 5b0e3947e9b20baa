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
from .edges import NO_KEY, Forest, Graph, edge_key, edge_of

# In place of a place in the heap, for mentions that are not in it.
_UNSEEN = -1
_REACHED = -2

# Values that are read at the same time are stored side by side, since random access to memory is
# what takes the time.
_EDGE = np.dtype([("key", np.int64), ("head", np.int32)], align=True)
_ITEM = np.dtype([("key", np.int64), ("mention", np.int32)], align=True)
_NODE = np.dtype(
    [
        ("best", np.int64),  # key of the lightest edge into the mention from nodes reached so far
        ("parent", np.int32),  # source of that edge
        ("place", np.int32),  # place in the heap
    ],
    align=True,
)


@numba_jit()
def _count(
    n_entities: int,
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    threshold: np.float32,
    first: np.ndarray,
) -> None:
    """Count edges from each mention into ``first``, shifted by one.

    ``_outgoing`` then moves every start to its own place.
    """
    for edge in range(len(source)):
        w = weight[edge]
        if w <= threshold and w < np.inf and source[edge] != target[edge]:
            first[max(source[edge] - n_entities, -1) + 2] += 1
    first[1] = 0  # the edges of entities
    for at in range(2, len(first)):
        first[at] += first[at - 1]


@numba_jit()
def _outgoing(
    n_entities: int,
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    threshold: np.float32,
    first: np.ndarray,
    edges: np.ndarray,
    nodes: np.ndarray,
) -> None:
    """Group edges by source, and find each best entity edge."""
    bits = weight.view(np.int32)
    for mention in range(len(nodes)):
        nodes[mention].best = NO_KEY
        nodes[mention].place = _UNSEEN
    for edge in range(len(source)):
        w = weight[edge]
        if not (w <= threshold and w < np.inf and source[edge] != target[edge]):
            continue
        origin = source[edge] - n_entities
        head = target[edge] - n_entities
        key = edge_key(bits[edge] if w != 0 else np.int32(0), edge)
        if origin < 0:
            if key < nodes[head].best:
                nodes[head].best = key
                nodes[head].parent = source[edge]
        else:
            edges[first[origin + 1]].key = key
            edges[first[origin + 1]].head = head
            first[origin + 1] += 1


@jit_helper
def _rise(heap: np.ndarray, nodes: np.ndarray, at: Any) -> None:
    item = heap[at]
    key = item.key
    mention = item.mention
    while at > 0:
        above = (at - 1) >> 1
        if heap[above].key <= key:
            break
        heap[at].key = heap[above].key
        heap[at].mention = heap[above].mention
        nodes[heap[at].mention].place = at
        at = above
    heap[at].key = key
    heap[at].mention = mention
    nodes[mention].place = at


@jit_helper
def _sink(heap: np.ndarray, nodes: np.ndarray, at: Any, size: int) -> None:
    item = heap[at]
    key = item.key
    mention = item.mention
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and heap[below + 1].key < heap[below].key:
            below += 1
        if heap[below].key >= key:
            break
        heap[at].key = heap[below].key
        heap[at].mention = heap[below].mention
        nodes[heap[at].mention].place = at
        at = below
    heap[at].key = key
    heap[at].mention = mention
    nodes[mention].place = at


@numba_jit()
def _search(
    n_entities: int,
    first: np.ndarray,
    edges: np.ndarray,
    heap: np.ndarray,
    nodes: np.ndarray,
    parent: np.ndarray,
    edge: np.ndarray,
) -> None:
    """Reach mentions by the lightest edges from those reached. See the module."""
    size = 0
    for mention in range(len(nodes)):
        if nodes[mention].best != NO_KEY:
            heap[size].key = nodes[mention].best
            heap[size].mention = mention
            nodes[mention].place = size
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        _sink(heap, nodes, at, size)
    while size > 0:
        mention = heap[0].mention
        node = nodes[mention]
        node.place = _REACHED
        size -= 1
        if size > 0:
            heap[0].key = heap[size].key
            heap[0].mention = heap[size].mention
            _sink(heap, nodes, 0, size)
        edge[mention] = edge_of(node.best)
        parent[mention] = node.parent
        for i in range(first[mention], first[mention + 1]):
            key = edges[i].key
            other = nodes[edges[i].head]
            if other.place == _REACHED or key >= other.best:
                continue
            other.best = key
            other.parent = n_entities + mention
            if other.place == _UNSEEN:
                other.place = size
                heap[size].mention = edges[i].head
                size += 1
            heap[other.place].key = key
            _rise(heap, nodes, other.place)


def minimax_of(graph: Graph, threshold: np.float32) -> Forest:
    """Hang each mention under the entity with the least minimax dissimilarity (Equation 1).

    Where several entities have the same, the mention goes to the one whose path is lighter after
    its heaviest edge, and then to the one whose edge is earlier in the arrays. Mentions that no
    entity reaches have no parent. O(E log M) time.
    """
    n_entities, n_mentions, source, target, weight = graph
    # Large arrays are allocated by NumPy, see ``incoming``.
    first = np.zeros(n_mentions + 2, np.int64)
    _count(n_entities, source, target, weight, threshold, first)
    edges = np.recarray(first[-1], _EDGE)
    nodes = np.recarray(n_mentions, _NODE)
    _outgoing(n_entities, source, target, weight, threshold, first, edges, nodes)
    heap = np.recarray(n_mentions, _ITEM)
    parent = np.full(n_mentions, -1, np.int32)
    edge = np.full(n_mentions, -1, np.int64)
    _search(n_entities, first, edges, heap, nodes, parent, edge)
    return Forest(parent, edge)
