"""Arborescences by contraction: what the paper's deletion procedure leaves, in O(E log V).

The procedure (§2.3) walks the edges from heaviest to lightest and deletes each whose head can still
be reached without it. What it leaves is the arborescence whose edges, sorted from the heaviest
down, come first in lexicographic order. Chu-Liu/Edmonds finds it: take the lightest edge into each
node; where these close a cycle, contract it to one node and go on; in the end, expand. Edges into a
contracted node are compared by their *original* weights: each stands for itself less the cycle edge
it would replace, that one is lighter, and in lexicographic order the heavier edge decides alone.

The edges into a mention lie sorted in one list; a skew heap holds the lists of a contracted node,
ordered by their first edge. Edges that have come to lie inside their node are dropped when met.
"""

from typing import NamedTuple

import numba
import numpy as np

from .checks import Graph, check_graph, check_threshold
from .incoming import NO_KEY, Incoming, edge_of, incoming

# A node not contracted into another holds what has become of it instead of a node's number.
_UNSEEN, _ON_PATH, _DONE, _DEAD = -1, -2, -3, -4

# What is known of a mention lies together, as it is read together: random access is what costs.
_LIST = np.dtype(
    [
        ("key", np.int64),  # of the lightest edge left, NO_KEY if there is none
        ("begin", np.int64),  # where its edges begin and end among the keys
        ("end", np.int64),
        ("left", np.int32),  # its children in the skew heap, -1 for none
        ("right", np.int32),
    ]
)


class Forest(NamedTuple):
    """What is left of a graph once each mention has at most one edge into it.

    parent: (M,) int32, the node each mention hangs under, -1 where there is none.
    edge: (M,) int64, which of the input's edges that is, -1 where there is none.
    """

    parent: np.ndarray
    edge: np.ndarray


@numba.njit(cache=True, nogil=True)
def _find(top, node):
    """The contracted node that holds a node now; halves the way there for the next caller."""
    above = top[node]
    while above >= 0:
        over = top[above]
        if over < 0:
            return above
        top[node] = over
        node = over
        above = top[node]
    return node


@numba.njit(cache=True, nogil=True)
def _meld(a, b, lists):
    """Merge two skew heaps, given by their roots (-1 for an empty one)."""
    if a == -1:
        return b
    if b == -1:
        return a
    if lists[b].key < lists[a].key:
        a, b = b, a
    root = a
    while True:
        rest = lists[a].right
        lists[a].right = lists[a].left
        if rest == -1:
            lists[a].left = b
            return root
        if lists[b].key < lists[rest].key:
            rest, b = b, rest
        lists[a].left = rest
        a = rest


@numba.njit(cache=True, nogil=True)
def _advance(item, node, n_entities, source, keys, top):
    """Move a list on to its first edge from outside ``node``; its key, or NO_KEY."""
    at = item.begin
    end = item.end
    while at < end:
        origin = source[edge_of(keys[at])] - n_entities
        if origin < 0:
            break
        other = _find(top, origin)
        if other != node and top[other] != _DEAD:
            break
        at += 1
    item.begin = at
    return keys[at] if at < end else NO_KEY


@numba.njit(cache=True, nogil=True)
def _fill(lists, first, keys, last):
    for mention in range(len(lists)):
        begin, end = first[mention], first[mention + 1]
        while end > begin and keys[end - 1] > last:
            end -= 1
        item = lists[mention]
        item.key = keys[begin] if begin < end else NO_KEY
        item.begin = begin
        item.end = end
        item.left = -1
        item.right = -1


@numba.njit(cache=True, nogil=True)
def _contract(n_entities, source, keys, lists, top, into, enters, heap, path, rootless):
    """Contract cycles until every node hangs under a root or is dead (nothing reaches it)."""
    n_mentions = len(lists)
    n_nodes = n_mentions
    for start in range(n_mentions):
        if top[_find(top, start)] != _UNSEEN:
            continue
        path[0] = start
        length = 1
        top[start] = _ON_PATH
        while length > 0:
            node = path[length - 1]
            # The lightest edge into the node from outside it.
            root = heap[node]
            while True:
                lightest = _advance(lists[root], node, n_entities, source, keys, top)
                if lightest == lists[root].key:
                    break
                lists[root].key = lightest
                rest = _meld(lists[root].left, lists[root].right, lists)
                lists[root].left = -1
                lists[root].right = -1
                if lightest == NO_KEY:
                    if rest == -1:
                        break
                    root = rest
                else:
                    root = _meld(root, rest, lists)
            heap[node] = root
            if lightest == NO_KEY:
                if rootless:
                    break
                top[node] = _DEAD
                length -= 1
                continue
            enters[node] = lightest
            origin = source[edge_of(lightest)] - n_entities
            if origin < 0:
                break
            other = _find(top, origin)
            if top[other] == _DONE:
                break
            if top[other] == _UNSEEN:
                top[other] = _ON_PATH
                path[length] = other
                length += 1
                continue
            # A cycle: everything on the path from there on becomes one node.
            merged = n_nodes
            n_nodes += 1
            root = -1
            while True:
                length -= 1
                member = path[length]
                top[member] = merged
                into[member] = merged
                root = _meld(root, heap[member], lists)
                if member == other:
                    break
            heap[merged] = root
            top[merged] = _ON_PATH
            path[length] = merged
            length += 1
        for i in range(length):
            top[path[i]] = _DONE
    return n_nodes


@numba.njit(cache=True, nogil=True)
def _expand(n_entities, n_mentions, source, target, enters, into, top, n_nodes):
    """Undo the contractions from the last to the first; the edge and parent of each mention."""
    parent = np.full(n_mentions, -1, np.int32)
    edge = np.full(n_mentions, -1, np.int64)
    state = top
    first_inside = np.arange(n_nodes).astype(np.int32)
    for node in range(n_nodes):
        outer = into[node]
        if outer != -1:
            first_inside[outer] = min(first_inside[outer], first_inside[node])
    settled = np.zeros(n_nodes, np.bool_)
    for node in range(n_nodes - 1, -1, -1):
        if into[node] != -1 and state[into[node]] == _DEAD:
            state[node] = _DEAD
        if settled[node] or state[node] == _DEAD:
            continue
        if enters[node] == NO_KEY:
            head = first_inside[node]
        else:
            entering = edge_of(enters[node])
            head = target[entering] - n_entities
            parent[head] = source[entering]
            edge[head] = entering
        # The edge takes the place of the cycle edges into all that holds its head.
        while head != node:
            settled[head] = True
            head = into[head]
    return parent, edge


class Contraction(NamedTuple):
    """A graph contracted until every node hangs under a root, or nothing reaches it.

    Nodes 0..M-1 are the mentions, those from M on were contracted from cycles, in that order.

    n_nodes: How many there are.
    top: (2M,) int32, what has become of a node; see ``_find``.
    into: (2M,) int32, the node that a node was contracted into, -1 for none.
    enters: (2M,) int64, the key of the lightest edge into a node, NO_KEY for none.
    """

    n_nodes: int
    top: np.ndarray
    into: np.ndarray
    enters: np.ndarray


def contract(
    n_entities: int,
    source: np.ndarray,
    edges: Incoming,
    *,
    rootless: bool = False,
    last: int = NO_KEY,
) -> Contraction:
    """Contract the cycles of lightest edges.

    source: (E,) int32, as given by the caller. edges: Its edges, grouped.
    rootless: Let a node that nothing enters be a root, instead of leaving out all that only
        such nodes reach.
    last: Edges with larger keys are left out; see ``last_key``.
    """
    n_mentions = len(edges.first) - 1
    lists = np.empty(n_mentions, _LIST)
    _fill(lists, edges.first, edges.keys, last)
    size = 2 * n_mentions
    top = np.full(size, _UNSEEN, np.int32)
    into = np.full(size, -1, np.int32)
    enters = np.full(size, NO_KEY, np.int64)
    heap = np.arange(size, dtype=np.int32)
    path = np.empty(n_mentions + 1, np.int32)
    n_nodes = _contract(
        n_entities, source, edges.keys, lists, top, into, enters, heap, path, rootless
    )
    return Contraction(n_nodes, top, into, enters)


def arborescence(
    n_entities: int, n_mentions: int, source, target, weight, *, threshold: float = np.inf
) -> Forest:
    """What the paper's deletion procedure leaves of a graph (§2.3), exactly, in O(E log V).

    n_entities, n_mentions: Nodes 0..n_entities-1 are entities, the M mentions come after them.
    source, target: (E,) int32 or int64 node ids: ``target`` may hang under ``source``.
    weight: (E,) float32, dissimilarities (similarities with their sign turned).
    threshold: λ, the largest weight to keep.

    Of edges of equal weight the procedure deletes the one that stands later in the arrays first.
    Mentions that no entity reaches have no parent.

    Raises ValueError where the arrays do not fit, a weight is NaN, or an edge enters an entity.
    """
    graph = check_graph(n_entities, n_mentions, source, target, weight)
    return arborescence_of(graph, incoming(graph, check_threshold(threshold)))


def arborescence_of(
    graph: Graph,
    edges: Incoming,
    *,
    rootless: bool = False,
    last: int = NO_KEY,
) -> Forest:
    """As ``arborescence``, from checked arrays whose edges are grouped; see ``contract``."""
    done = contract(graph.n_entities, graph.source, edges, rootless=rootless, last=last)
    return Forest(
        *_expand(
            graph.n_entities,
            graph.n_mentions,
            graph.source,
            graph.target,
            done.enters,
            done.into,
            done.top,
            done.n_nodes,
        )
    )
