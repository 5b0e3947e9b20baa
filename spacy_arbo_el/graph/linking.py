"""Forests, in which each mention has at most one parent, and links in them."""

from typing import NamedTuple

import numpy as np

from ..base.compiling import numba_jit
from .bottleneck import minimax_of
from .contraction import DEAD, contract
from .edges import (
    NO_KEY,
    Forest,
    Graph,
    Incoming,
    check_graph,
    check_threshold,
    edge_of,
    incoming,
)
from .linkage import undirected_of


@numba_jit()
def _trace(
    n_entities: int,
    parent: np.ndarray,
    weight: np.ndarray,
    root: np.ndarray,
    score: np.ndarray,
) -> None:
    """Find each mention's root and its path's largest weight.

    parent: (M,) int32 node ids, as in ``Forest``.
    weight: (M,) float32, the weight of the edge from the parent.
    root: (M,) int32 of -1, to which the roots are written as node ids; a mention without a parent
        is its own root.
    score: (M,) float32, to which the largest weights are written, -inf without a parent.
    """
    path = np.empty(len(parent), np.int32)
    for mention in range(len(parent)):
        length = 0
        node = mention
        while root[node] == -1:
            above = parent[node]
            if above < n_entities:  # an entity, or -1
                root[node] = above if above != -1 else node + n_entities
                score[node] = weight[node] if above != -1 else -np.inf
                break
            path[length] = node
            length += 1
            node = above - n_entities
        while length > 0:
            length -= 1
            below = path[length]
            root[below] = root[node]
            score[below] = max(score[node], weight[below])
            node = below


def arborescence_of(graph: Graph, edges: Incoming) -> Forest:
    """Compute exactly what the paper's deletion procedure leaves (§2.3).

    Of edges with equal weights, the procedure deletes the later in the arrays first. Mentions that
    no entity reaches have no parent. O(E log V) time.
    """
    nodes, slot = contract(graph, edges)
    parent = np.full(graph.n_mentions, -1, np.int32)
    edge = np.full(graph.n_mentions, -1, np.int64)
    _expand(graph.n_entities, graph.source, graph.target, nodes, slot, parent, edge)
    return Forest(parent, edge)


@numba_jit()
def _expand(
    n_entities: int,
    source: np.ndarray,
    target: np.ndarray,
    nodes: np.ndarray,
    slot: np.ndarray,
    parent: np.ndarray,
    edge: np.ndarray,
) -> None:
    """Undo the contractions from the last to the first. Write each mention's parent and edge."""
    n_nodes = len(nodes)
    n_mentions = len(slot)
    first = _first_inside(nodes, n_mentions)
    settled = np.zeros(n_nodes, np.bool_)
    for number in range(n_nodes - 1, n_mentions - 1, -1):
        node = nodes[number]
        if node.into != -1 and nodes[node.into].top == DEAD:
            node.top = DEAD
        if settled[number] or node.top == DEAD:
            continue
        mention = first[number - n_mentions]  # if nothing enters, this is a root
        if node.enters != NO_KEY:
            mention = np.int32(target[edge_of(node.enters)] - n_entities)
            edge[mention] = edge_of(node.enters)
        # The edge replaces the cycle edges into all nodes that contain its head.
        head = slot[mention]
        while head != number:
            settled[head] = True
            head = nodes[head].into
    for mention in range(n_mentions):
        node = nodes[slot[mention]]
        dead = node.top == DEAD or (node.into != -1 and nodes[node.into].top == DEAD)
        if not settled[slot[mention]] and not dead and node.enters != NO_KEY:
            edge[mention] = edge_of(node.enters)
        if edge[mention] != -1:
            parent[mention] = source[edge[mention]]


@numba_jit()
def _first_inside(nodes: np.ndarray, n_mentions: int) -> np.ndarray:
    """The first mention in each contracted node."""
    first = np.full(len(nodes) - n_mentions, n_mentions, np.int32)
    for number in range(len(nodes)):
        outer = nodes[number].into - n_mentions
        if outer >= 0:
            inside = (
                nodes[number].mention
                if number < n_mentions
                else first[number - n_mentions]
            )
            first[outer] = min(first[outer], inside)
    return first


METHODS = ("arborescence", "minimax", "undirected")


class Links(NamedTuple):
    """The links of M mentions.

    entity: (M,) int32, the entity that each is linked to, or -1.
    parent: (M,) int32, the node it hangs under, -1 for none. Going from parent to parent gives the
        path to its entity, which is the evidence for the link.
    score: (M,) float32, the weight of the heaviest edge on the path from the entity (the
        bottleneck); +inf where no entity reaches the mention.
    weight: (M,) float32, the weight of the edge from the parent; +inf for none.
    """

    entity: np.ndarray
    parent: np.ndarray
    score: np.ndarray
    weight: np.ndarray


def link(
    n_entities: int,
    n_mentions: int,
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    *,
    threshold: float = np.inf,
    method: str = "arborescence",
) -> Links:
    """Link mentions to entities. ``cluster`` clusters the mentions that no entity reaches.

    Of edges with equal weights, the earlier in the arrays counts as the lighter.
    O(E log M) time and O(E + M) memory.

    n_entities: Entities are nodes 0..n_entities-1.
    n_mentions: The M mentions, exemplars among them, are nodes n_entities..n_entities+M-1.
    source: (E,) int32 or int64 node ids, the start of each edge.
    target: (E,) int32 or int64 node ids, the mention that may hang under ``source``.
    weight: (E,) float32, dissimilarities (similarities with their sign turned). -inf ties an
        exemplar to its entity, +inf is no edge. Self loops are ignored.
    threshold: λ, the largest weight to keep, in the unit of the weights.
    method: "arborescence": the paper's deletion procedure (§2.3). "minimax": each mention goes to
        the entity with the smallest minimax dissimilarity (Equation 1). "undirected": single
        linkage with at most one entity in a cluster (Angell et al. 2021).

    Raises ValueError where shapes or dtypes do not fit, a node is out of range, a weight or the
    threshold is NaN, an edge enters an entity, or there is no such method.
    """
    if method not in METHODS:
        raise ValueError(f"The method must be one of {METHODS}, not {method!r}.")
    graph = check_graph(n_entities, n_mentions, source, target, weight)
    forest = _forest(graph, check_threshold(threshold), method)
    has_parent = forest.edge >= 0
    weights = np.full(graph.n_mentions, np.inf, np.float32)
    weights[has_parent] = graph.weight[forest.edge[has_parent]]
    root = np.full(graph.n_mentions, -1, np.int32)
    score = np.empty(graph.n_mentions, np.float32)
    _trace(graph.n_entities, forest.parent, weights, root, score)
    linked = root < graph.n_entities
    return Links(
        entity=np.where(linked, root, np.int32(-1)),
        parent=forest.parent,
        score=np.where(linked, score, np.float32(np.inf)),
        weight=weights,
    )


def _forest(graph: Graph, threshold: np.float32, method: str) -> Forest:
    if method == "minimax":
        return minimax_of(graph, threshold)
    if method == "undirected":
        return undirected_of(graph, threshold)
    return arborescence_of(graph, incoming(graph, threshold))
