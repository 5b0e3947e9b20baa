"""Minimax dissimilarity (Equation 1): each mention to the entity it is nearest to.

f(e, m) is the smallest, over the directed paths from e to m, of the path's largest edge. One search
from all entities at once finds the smallest f of every mention: let the lightest edge that leaves
what has been reached decide what is reached next. Had a mention a path with a smaller largest edge
than the one it is reached by, the first edge of that path to leave what was reached would have been
taken before. Among paths with the same largest edge this takes the lighter rest.
"""

import numba
import numpy as np

from .checks import Graph, check_graph, check_threshold
from .contraction import Forest
from .incoming import NO_KEY, edge_key, edge_of


@numba.njit(cache=True, nogil=True)
def _outgoing(n_entities, n_mentions, source, target, weight, threshold):
    """Keys of the edges between mentions, grouped by source, and the best edge from an entity."""
    first = np.zeros(n_mentions + 2, np.int64)
    best = np.full(n_mentions, NO_KEY, np.int64)
    bits = weight.view(np.int32)
    infinite = np.float32(np.inf)
    for edge in range(len(source)):
        w = weight[edge]
        if w > threshold or w == infinite:
            continue
        origin = source[edge] - n_entities
        mention = target[edge] - n_entities
        if origin < 0:
            key = edge_key(bits[edge] if w != 0 else np.int32(0), edge)
            if mention >= 0 and key < best[mention]:
                best[mention] = key
        elif origin != mention:
            first[origin + 2] += 1
    for mention in range(2, n_mentions + 2):
        first[mention] += first[mention - 1]
    keys = np.empty(first[n_mentions + 1], np.int64)
    for edge in range(len(source)):
        w = weight[edge]
        if w > threshold or w == infinite:
            continue
        origin = source[edge] - n_entities
        if origin < 0 or source[edge] == target[edge]:
            continue
        keys[first[origin + 1]] = edge_key(bits[edge] if w != 0 else np.int32(0), edge)
        first[origin + 1] += 1
    return first[: n_mentions + 1], keys, best


@numba.njit(cache=True, nogil=True)
def _rise(heap, place, key, at):
    """Move the mention at ``at`` of a binary heap up to where it belongs."""
    mention = heap[at]
    while at > 0:
        above = (at - 1) >> 1
        if key[heap[above]] <= key[mention]:
            break
        heap[at] = heap[above]
        place[heap[at]] = at
        at = above
    heap[at] = mention
    place[mention] = at


@numba.njit(cache=True, nogil=True)
def _sink(heap, place, key, at, size):
    """Move the mention at ``at`` of a binary heap down to where it belongs."""
    mention = heap[at]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and key[heap[below + 1]] < key[heap[below]]:
            below += 1
        if key[heap[below]] >= key[mention]:
            break
        heap[at] = heap[below]
        place[heap[at]] = at
        at = below
    heap[at] = mention
    place[mention] = at


_REACHED = -2


@numba.njit(cache=True, nogil=True)
def _search(n_entities, source, target, first, keys, best):
    """Reach the mentions in order of the lightest edge out of what is reached; see the module."""
    n_mentions = len(best)
    heap = np.empty(n_mentions, np.int32)
    place = np.full(n_mentions, -1, np.int32)
    parent = np.full(n_mentions, -1, np.int32)
    edge = np.full(n_mentions, -1, np.int64)
    size = 0
    for mention in range(n_mentions):
        if best[mention] != NO_KEY:
            heap[size] = mention
            place[mention] = size
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        _sink(heap, place, best, at, size)
    while size > 0:
        mention = heap[0]
        place[mention] = _REACHED
        size -= 1
        if size > 0:
            heap[0] = heap[size]
            _sink(heap, place, best, 0, size)
        edge[mention] = edge_of(best[mention])
        parent[mention] = source[edge[mention]]
        for i in range(first[mention], first[mention + 1]):
            key = keys[i]
            other = target[edge_of(key)] - n_entities
            if place[other] == _REACHED or key >= best[other]:
                continue
            best[other] = key
            if place[other] == -1:
                heap[size] = other
                place[other] = size
                size += 1
            _rise(heap, place, best, place[other])
    return parent, edge


def minimax(
    n_entities: int, n_mentions: int, source, target, weight, *, threshold: float = np.inf
) -> Forest:
    """Hang each mention in the tree of the entity with the smallest minimax dissimilarity (Eq. 1).

    The arguments are those of ``arborescence``, as are the errors. Where several entities have the
    same, the mention goes to the one whose path is lighter after its heaviest edge, and then to
    the one whose edge stands earlier in the arrays. Mentions that no entity reaches have no parent.

    O(E log M) time.
    """
    graph = check_graph(n_entities, n_mentions, source, target, weight)
    return minimax_of(graph, check_threshold(threshold))


def minimax_of(graph: Graph, threshold: np.float32) -> Forest:
    """As ``minimax``, from checked arrays."""
    first, keys, best = _outgoing(*graph, threshold)
    return Forest(*_search(graph.n_entities, graph.source, graph.target, first, keys, best))
