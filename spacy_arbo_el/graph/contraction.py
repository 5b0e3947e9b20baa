"""Contraction of cycles. How arborescences are found in O(E log V).

The paper's deletion procedure (§2.3) goes through the edges from the heaviest to the lightest, and
deletes each edge whose head an entity still reaches without it. It leaves the arborescence whose
edges, sorted from the heaviest down, come first in lexicographic order. Chu-Liu/Edmonds' algorithm
finds it: take the lightest edge into each node; where these edges close a cycle, contract the cycle
to one node and continue; in the end, expand. Edges into a contracted node are compared by their
*original* weights. Each edge stands for itself minus the cycle edge it would replace. The latter is
lighter, and in lexicographic order the heavier edge alone decides.

The edges into a mention are stored as one sorted list. A skew heap holds the lists of a contracted
node, ordered by their first edges. Edges that have come to lie inside their node are dropped when
they are met.
"""

from typing import Any

import numpy as np

from ..base.compiling import jit_helper, numba_jit
from .edges import NO_KEY, Graph, Incoming, edge_of

# In place of the node that a node was contracted into, for nodes that are not contracted.
DEAD = -4
_UNSEEN = -1
_ON_PATH = -2
_DONE = -3

# All values of a node are stored side by side, and so are nodes whose lightest edges connect them
# (see ``_slots``), since random access to memory is what takes the time.
_NODE = np.dtype(
    [
        # A list of the mention's own edges, lightest first. (Contracted nodes have none.)
        (
            "key",
            np.int64,
        ),  # key of the first edge that is left, NO_KEY if there is none
        (
            "second_key",
            np.int64,
        ),  # key of the original second edge, which often suffices
        ("origin", np.int32),  # source of the first edge; negative for an entity
        ("second_origin", np.int32),  # source of the original second edge
        ("taken", np.int32),  # how many edges are used up
        ("mention", np.int32),  # the mention that the edges enter
        ("left", np.int32),  # the list's children in the skew heap, -1 for none
        ("right", np.int32),
        # The node, a mention or contracted.
        ("heap", np.int32),  # root of the skew heap of all its lists
        (
            "top",
            np.int32,
        ),  # the node it was contracted into or a later one, else its state
        ("into", np.int32),  # the node it was contracted into, -1 for none
        ("enters", np.int64),  # key of the lightest edge into it, NO_KEY for none
    ],
    align=True,
)


@jit_helper
def _find(nodes: np.ndarray, node: Any) -> Any:
    """Find the contracted node that a node is part of, and halve the path to it."""
    above = nodes[node].top
    while above >= 0:
        over = nodes[above].top
        if over < 0:
            return above
        nodes[node].top = over
        node = over
        above = nodes[node].top
    return node


@jit_helper
def _meld(a: Any, b: Any, nodes: np.ndarray) -> Any:
    """Merge two skew heaps, given by their roots; -1 is an empty one."""
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


@numba_jit()
def _slots(
    n_entities: int,
    source: np.ndarray,
    first: np.ndarray,
    keys: np.ndarray,
    nearest: np.ndarray,
    group: np.ndarray,
) -> None:
    """Number mentions so that lightest edges join neighbours.

    nearest: (M,) int32 of -1, for temporary use.
    group: (M,) int32 of -1, which the numbers are written to.
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
        member: Any = np.int32(start)
        while member >= 0 and group[member] == -1:
            group[member] = n_groups
            path[length] = member
            length += 1
            member = nearest[member]
        if member >= 0 and group[member] != n_groups:
            for i in range(length):
                group[path[i]] = group[member]
            size[group[member]] += length
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


@numba_jit()
def _fill(
    nodes: np.ndarray,
    slot: np.ndarray,
    n_entities: int,
    source: np.ndarray,
    first: np.ndarray,
    keys: np.ndarray,
) -> None:
    """Start with one node per mention and its edge list."""
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
        node.key = keys[at] if at < end else NO_KEY
        if node.key != NO_KEY:
            node.origin = _origin(node.key, n_entities, source, slot)
        at += 1
        node.second_key = keys[at] if at < end else NO_KEY
        if node.second_key != NO_KEY:
            node.second_origin = _origin(node.second_key, n_entities, source, slot)


@jit_helper(inline="always")
def _origin(key: Any, n_entities: int, source: np.ndarray, slot: np.ndarray) -> Any:
    mention = source[edge_of(key)] - n_entities
    return slot[mention] if mention >= 0 else np.int32(-1)


@jit_helper
def _advance(
    nodes: np.ndarray,
    number: Any,
    within: Any,
    slot: np.ndarray,
    n_entities: int,
    source: np.ndarray,
    first: np.ndarray,
    keys: np.ndarray,
) -> None:
    """Advance a list to its first edge from outside ``within``."""
    item = nodes[number]
    while item.key != NO_KEY and item.origin >= 0:
        other = _find(nodes, item.origin)
        if other != within and nodes[other].top != DEAD:
            return
        item.taken += 1
        if item.taken == 1:
            item.key = item.second_key
            item.origin = item.second_origin
            continue
        at = first[item.mention] + item.taken
        item.key = keys[at] if at < first[item.mention + 1] else NO_KEY
        if item.key != NO_KEY:
            item.origin = _origin(item.key, n_entities, source, slot)


@jit_helper
def _lightest(
    nodes: np.ndarray,
    node: Any,
    slot: np.ndarray,
    n_entities: int,
    source: np.ndarray,
    first: np.ndarray,
    keys: np.ndarray,
) -> Any:
    """Find the list with the lightest edge into a node. Its key may be NO_KEY."""
    root = nodes[node].heap
    while True:
        before = nodes[root].key
        _advance(nodes, root, node, slot, n_entities, source, first, keys)
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


@numba_jit()
def _merge_cycle(
    nodes: np.ndarray, path: np.ndarray, length: int, first: Any, merged: int
) -> int:
    """Make all nodes on the path from ``first`` on, a cycle, one node.

    Returns the length of the path, which ends with that node.
    """
    root = -1
    while True:
        length -= 1
        member = path[length]
        nodes[member].top = merged
        nodes[member].into = merged
        root = _meld(root, nodes[member].heap, nodes)
        if member == first:
            break
    nodes[merged].heap = root
    nodes[merged].top = _ON_PATH
    nodes[merged].into = -1
    nodes[merged].enters = NO_KEY
    path[length] = merged
    return length + 1


@numba_jit()
def _contract(
    nodes: np.ndarray,
    slot: np.ndarray,
    n_entities: int,
    source: np.ndarray,
    first: np.ndarray,
    keys: np.ndarray,
    rootless: bool,
) -> int:
    """Contract cycles until every node is rooted or dead. A node is dead if nothing reaches it.

    Returns the number of nodes.
    """
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
            lightest = nodes[
                _lightest(nodes, node, slot, n_entities, source, first, keys)
            ]
            if lightest.key == NO_KEY:
                if rootless:
                    break
                nodes[node].top = DEAD
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
            length = _merge_cycle(nodes, path, length, other, n_nodes)
            n_nodes += 1
        for i in range(length):
            nodes[path[i]].top = _DONE
    return n_nodes


def contract(
    graph: Graph, edges: Incoming, *, rootless: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Contract cycles of lightest edges until all are rooted. Nodes that nothing reaches are dead.

    rootless: Whether a node that nothing enters becomes a root. If not, nodes that only such nodes
        reach are left out.
    RETURNS: ``_NODE`` records, first of the mentions, then of the contracted nodes in the order of
        contraction; and the number of each mention's record, (M,) int32.
    """
    slot = np.full(graph.n_mentions, -1, np.int32)
    _slots(graph.n_entities, graph.source, *edges, np.full_like(slot, -1), slot)
    # Every contraction makes one node of at least two, so there are fewer than 2M in all. Pages
    # of memory that are never written to cost nothing.
    nodes = np.recarray(2 * graph.n_mentions, _NODE)
    lists = (slot, graph.n_entities, graph.source, *edges)
    _fill(nodes, *lists)
    n_nodes = _contract(nodes, *lists, rootless)
    return nodes[:n_nodes], slot
