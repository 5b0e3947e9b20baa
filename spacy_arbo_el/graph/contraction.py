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

from typing import NamedTuple, Tuple

import numba
import numpy as np

from .checks import Graph, check_graph, check_threshold
from .incoming import NO_KEY, Incoming, edge_of, incoming

# A node not contracted into another holds what has become of it instead of a node's number.
_UNSEEN, _ON_PATH, _DONE, _DEAD = -1, -2, -3, -4

# All that is known of a node lies together, and nodes that are likely to meet lie side by side (see
# ``_slots``): random access to memory is what costs.
_NODE = np.dtype(
    [
        # The mention's own edges, lightest first: a list. (Not of contracted nodes.)
        ("key", np.int64),  # the key of the first that is left, NO_KEY if there is none
        ("second_key", np.int64),  # of the second in the beginning: often all that is asked for
        ("origin", np.int32),  # the node that the first comes from; negative for an entity
        ("second_origin", np.int32),
        ("taken", np.int32),  # how many are not left any more
        ("mention", np.int32),  # whose edges they are
        ("left", np.int32),  # the list's children in the skew heap, -1 for none
        ("right", np.int32),
        # The node, a mention or contracted.
        ("heap", np.int32),  # the root of the skew heap of all its lists
        ("top", np.int32),  # the node it was contracted into or a later one, else its state
        ("into", np.int32),  # the node it was contracted into, -1 for none
        ("enters", np.int64),  # the key of the lightest edge into it, NO_KEY for none
    ],
    align=True,
)


class Forest(NamedTuple):
    """What is left of a graph once each mention has at most one edge into it.

    parent: (M,) int32, the node each mention hangs under, -1 where there is none.
    edge: (M,) int64, which of the input's edges that is, -1 where there is none.
    """

    parent: np.ndarray
    edge: np.ndarray


@numba.njit(cache=True, nogil=True)
def _find(nodes, node):
    """The contracted node that holds a node now; halves the way there for the next caller."""
    above = nodes[node].top
    while above >= 0:
        over = nodes[above].top
        if over < 0:
            return above
        nodes[node].top = over
        node = over
        above = nodes[node].top
    return node


@numba.njit(cache=True, nogil=True)
def _meld(a, b, nodes):
    """Merge two skew heaps, given by their roots (-1 for an empty one)."""
    if a == -1:
        return b
    if b == -1:
        return a
    if nodes[b].key < nodes[a].key:
        a, b = b, a
    root = a
    while True:
        rest = nodes[a].right
        nodes[a].right = nodes[a].left
        if rest == -1:
            nodes[a].left = b
            return root
        if nodes[b].key < nodes[rest].key:
            rest, b = b, rest
        nodes[a].left = rest
        a = rest


@numba.njit(cache=True, nogil=True)
def _slots(n_entities, source, first, keys, nearest, group):
    """Where each mention's node lies: those whose lightest edges connect, together.

    nearest, group: (M,) int32 of -1; the latter gets the answer.
    """
    n_mentions = len(first) - 1
    for mention in range(n_mentions):
        if first[mention] < first[mention + 1]:
            nearest[mention] = source[edge_of(keys[first[mention]])] - n_entities
    size = np.zeros(n_mentions + 1, np.int32)
    path = np.empty(n_mentions, np.int32)
    n_groups = 0
    for start in range(n_mentions):
        length = 0
        mention = np.int32(start)
        while mention >= 0 and group[mention] == -1:
            group[mention] = n_groups
            path[length] = mention
            length += 1
            mention = nearest[mention]
        if mention >= 0 and group[mention] != n_groups:
            for i in range(length):
                group[path[i]] = group[mention]
            size[group[mention]] += length
        elif length > 0:
            size[n_groups] = length
            n_groups += 1
    begin = np.int32(0)
    for i in range(n_groups):
        begin, size[i] = begin + size[i], begin
    for mention in range(n_mentions):
        at = group[mention]
        group[mention] = size[at]
        size[at] += 1


@numba.njit(cache=True, nogil=True)
def _fill(nodes, slot, n_entities, source, first, keys, last):
    """Begin with nodes that nothing has been contracted into, each with the list of its edges."""
    for mention in range(len(slot)):
        node = nodes[slot[mention]]
        node.mention = mention
        node.left = -1
        node.right = -1
        node.heap = slot[mention]
        node.top = _UNSEEN
        node.into = -1
        node.enters = NO_KEY
        node.taken = 0
        at = first[mention]
        end = first[mention + 1]
        node.key = keys[at] if at < end and keys[at] <= last else NO_KEY
        if node.key != NO_KEY:
            node.origin = _origin(node.key, n_entities, source, slot)
        at += 1
        node.second_key = keys[at] if at < end and keys[at] <= last else NO_KEY
        if node.second_key != NO_KEY:
            node.second_origin = _origin(node.second_key, n_entities, source, slot)


@numba.njit(cache=True, nogil=True, inline="always")
def _origin(key, n_entities, source, slot):
    mention = source[edge_of(key)] - n_entities
    return slot[mention] if mention >= 0 else np.int32(-1)


@numba.njit(cache=True, nogil=True)
def _advance(nodes, number, within, slot, n_entities, source, first, keys, last):
    """Move a list on to its first edge from outside the node ``within``."""
    item = nodes[number]
    while item.key != NO_KEY and item.origin >= 0:
        other = _find(nodes, item.origin)
        if other != within and nodes[other].top != _DEAD:
            return
        item.taken += 1
        if item.taken == 1:
            item.key = item.second_key
            item.origin = item.second_origin
            continue
        at = first[item.mention] + item.taken
        item.key = keys[at] if at < first[item.mention + 1] and keys[at] <= last else NO_KEY
        if item.key != NO_KEY:
            item.origin = _origin(item.key, n_entities, source, slot)


@numba.njit(cache=True, nogil=True)
def _lightest(nodes, node, slot, n_entities, source, first, keys, last):
    """The list that begins with the lightest edge into a node; its key may be NO_KEY."""
    root = nodes[node].heap
    while True:
        before = nodes[root].key
        _advance(nodes, root, node, slot, n_entities, source, first, keys, last)
        if nodes[root].key == before:
            break
        rest = _meld(nodes[root].left, nodes[root].right, nodes)
        nodes[root].left = -1
        nodes[root].right = -1
        if nodes[root].key != NO_KEY:
            root = _meld(root, rest, nodes)
        elif rest == -1:
            break
        else:
            root = rest
    nodes[node].heap = root
    return root


@numba.njit(cache=True, nogil=True)
def _contract(nodes, slot, n_entities, source, first, keys, last, rootless):
    """Contract cycles until every node hangs under a root or is dead (nothing reaches it)."""
    n_mentions = len(slot)
    n_nodes = n_mentions
    path = np.empty(n_mentions + 1, np.int32)
    for start in range(n_mentions):
        if nodes[start].top != _UNSEEN:
            continue
        path[0] = start
        length = 1
        nodes[start].top = _ON_PATH
        while length > 0:
            node = path[length - 1]
            lightest = nodes[_lightest(nodes, node, slot, n_entities, source, first, keys, last)]
            if lightest.key == NO_KEY:
                if rootless:
                    break
                nodes[node].top = _DEAD
                length -= 1
                continue
            nodes[node].enters = lightest.key
            if lightest.origin < 0:
                break
            other = _find(nodes, lightest.origin)
            if nodes[other].top == _DONE:
                break
            if nodes[other].top == _UNSEEN:
                nodes[other].top = _ON_PATH
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
                nodes[member].top = merged
                nodes[member].into = merged
                root = _meld(root, nodes[member].heap, nodes)
                if member == other:
                    break
            nodes[merged].heap = root
            nodes[merged].top = _ON_PATH
            nodes[merged].into = -1
            nodes[merged].enters = NO_KEY
            path[length] = merged
            length += 1
        for i in range(length):
            nodes[path[i]].top = _DONE
    return n_nodes


@numba.njit(cache=True, nogil=True)
def _expand(n_entities, source, target, nodes, slot, parent, edge):
    """Undo the contractions from the last to the first; the edge and parent of each mention."""
    n_nodes, n_mentions = len(nodes), len(slot)
    first = _first_inside(nodes, n_mentions)
    settled = np.zeros(n_nodes, np.bool_)
    for number in range(n_nodes - 1, n_mentions - 1, -1):
        node = nodes[number]
        if node.into != -1 and nodes[node.into].top == _DEAD:
            node.top = _DEAD
        if settled[number] or node.top == _DEAD:
            continue
        mention = first[number - n_mentions]  # if nothing enters: then it is a root
        if node.enters != NO_KEY:
            mention = np.int32(target[edge_of(node.enters)] - n_entities)
            edge[mention] = edge_of(node.enters)
        # The edge takes the place of the cycle edges into all that holds its head.
        head = slot[mention]
        while head != number:
            settled[head] = True
            head = nodes[head].into
    for mention in range(n_mentions):
        node = nodes[slot[mention]]
        dead = node.top == _DEAD or (node.into != -1 and nodes[node.into].top == _DEAD)
        if not settled[slot[mention]] and not dead and node.enters != NO_KEY:
            edge[mention] = edge_of(node.enters)
        if edge[mention] != -1:
            parent[mention] = source[edge[mention]]


@numba.njit(cache=True, nogil=True)
def _first_inside(nodes, n_mentions):
    """The first mention in each contracted node."""
    first = np.full(len(nodes) - n_mentions, n_mentions, np.int32)
    for number in range(len(nodes)):
        outer = nodes[number].into - n_mentions
        if outer >= 0:
            inside = nodes[number].mention if number < n_mentions else first[number - n_mentions]
            first[outer] = min(first[outer], inside)
    return first


def contract(
    graph: Graph, edges: Incoming, *, rootless: bool = False, last: int = NO_KEY
) -> Tuple[np.ndarray, np.ndarray]:
    """Contract the cycles of lightest edges until every node hangs under a root, or is dead.

    edges: The graph's edges, grouped.
    rootless: Let a node that nothing enters be a root, instead of leaving out all that only
        such nodes reach.
    last: Edges with larger keys are left out; see ``last_key``.

    Returns ``_NODE`` records, of the mentions and then of what was contracted, in that order; and
    which of the records is each mention's, (M,) int32.
    """
    slot = np.full(graph.n_mentions, -1, np.int32)
    _slots(graph.n_entities, graph.source, *edges, np.full_like(slot, -1), slot)
    # Every contraction makes one node of at least two: fewer than 2M in all. Pages of memory
    # that are never written to cost nothing.
    nodes = np.empty(2 * graph.n_mentions, _NODE)
    lists = (slot, graph.n_entities, graph.source, *edges, last)
    _fill(nodes, *lists)
    n_nodes = _contract(nodes, *lists, rootless)
    return nodes[:n_nodes], slot


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
    graph: Graph, edges: Incoming, *, rootless: bool = False, last: int = NO_KEY
) -> Forest:
    """As ``arborescence``, from checked arrays whose edges are grouped; see ``contract``."""
    nodes, slot = contract(graph, edges, rootless=rootless, last=last)
    parent = np.full(graph.n_mentions, -1, np.int32)
    edge = np.full(graph.n_mentions, -1, np.int64)
    _expand(graph.n_entities, graph.source, graph.target, nodes, slot, parent, edge)
    return Forest(parent, edge)
