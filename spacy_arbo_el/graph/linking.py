"""From arrays to links in one call."""

from typing import NamedTuple

import numpy as np

from .bottleneck import minimax_of
from .checks import Graph, check_choice, check_graph, check_threshold
from .components import edges_between, number_clusters, strong_labels, weak_labels
from .contraction import Forest, arborescence_of
from .evidence import trace
from .incoming import incoming
from .linkage import undirected_of

METHODS = ("arborescence", "minimax", "undirected")
LEFTOVERS = ("weak", "strong", "arborescence")


class Links(NamedTuple):
    """What ``link`` finds for each of M mentions.

    entity: (M,) int32, the entity it is linked to, or -1.
    cluster: (M,) int32, numbered 0, 1, ... in order of their first mention. Mentions of one entity
        share a cluster; so do those of one new entity.
    parent: (M,) int32, the node it hangs under, -1 for none. From parent to parent runs its
        path from the entity, the evidence for the link. In new clusters only
        ``leftover="arborescence"`` gives parents.
    score: (M,) float32, the weight of the heaviest edge on the path from the entity (the
        bottleneck); +inf where no entity reaches it.
    weight: (M,) float32, the weight of the edge from the parent; +inf for none.
    """

    entity: np.ndarray
    cluster: np.ndarray
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
    leftover: str = "weak",
) -> Links:
    """Link mentions to entities, and cluster those that no entity reaches.

    n_entities, n_mentions: Nodes 0..n_entities-1 are entities; the M mentions, exemplars among
        them, are nodes n_entities..n_entities+M-1.
    source, target: (E,) int32 or int64 node ids: ``target``, a mention, may hang under ``source``.
    weight: (E,) float32, dissimilarities (similarities with their sign turned). -inf ties an
        exemplar to its entity, +inf is no edge. Self loops are ignored.
    threshold: λ, the largest weight to keep, in the unit of the weights.
    method: "arborescence": the paper's deletion procedure (§2.3). "minimax": each mention to
        the entity of smallest minimax dissimilarity (Equation 1). "undirected": single linkage
        with at most one entity in a cluster (Angell et al. 2021).
    leftover: How the rest is clustered, by the edges left among it: "weak" or "strong"
        components, or "arborescence", mention-only arborescences (§3.5).

    Where weights are equal, the edge that stands earlier in the arrays counts as the lighter one.

    Raises ValueError where shapes or dtypes do not fit, a node is out of range, a weight or the
    threshold is NaN, an edge enters an entity, or a word is not one of the choices.

    O(E log M) time and O(E + M) memory.
    """
    check_choice("method", method, METHODS)
    check_choice("leftover", leftover, LEFTOVERS)
    graph = check_graph(n_entities, n_mentions, source, target, weight)
    limit = check_threshold(threshold)
    forest = _forest(graph, limit, method)
    root, score = trace(graph.n_entities, forest.parent, weights_of(graph, forest))
    linked = root < graph.n_entities
    if not linked.all():
        edges = edges_between(graph, limit, ~linked)
        label, new = cluster_rest(graph, edges, leftover)
        forest = Forest(
            np.where(linked, forest.parent, new.parent), np.where(linked, forest.edge, new.edge)
        )
        root = np.where(linked, root, label + np.int32(graph.n_entities))
    return Links(
        entity=np.where(linked, root, np.int32(-1)),
        cluster=number_clusters(root, graph.n_entities + graph.n_mentions),
        parent=forest.parent,
        score=np.where(linked, score, np.float32(np.inf)),
        weight=weights_of(graph, forest),
    )


def cluster_rest(graph: Graph, edges: np.ndarray, leftover: str):
    """Cluster mentions by the given edges (indices), all between mentions, as ``leftover`` says.

    Returns labels (M,) int32, the smallest or first mention of each one's cluster, and the
    forest they hang in (all -1 where there is none).
    """
    n_entities, n_mentions, source, target, weight = graph
    source, target = source[edges] - n_entities, target[edges] - n_entities
    parent = np.full(n_mentions, -1, np.int32)
    edge = np.full(n_mentions, -1, np.int64)
    if leftover == "weak":
        label = weak_labels(n_mentions, source, target)
    elif leftover == "strong":
        label = strong_labels(n_mentions, source, target)
    else:
        among = Graph(0, n_mentions, source, target, weight[edges])
        forest = arborescence_of(among, incoming(among, np.float32(np.inf)), rootless=True)
        label, _ = trace(0, forest.parent, weights_of(among, forest))
        has = forest.parent >= 0
        parent[has] = forest.parent[has] + n_entities
        edge[has] = edges[forest.edge[has]]
    return label, Forest(parent, edge)


def _forest(graph: Graph, threshold: np.float32, method: str) -> Forest:
    if method == "minimax":
        return minimax_of(graph, threshold)
    if method == "undirected":
        return undirected_of(graph, threshold)
    return arborescence_of(graph, incoming(graph, threshold))


def weights_of(graph: Graph, forest: Forest) -> np.ndarray:
    """The weight of the edge into each mention (M,) float32, +inf for none."""
    weight = np.full(graph.n_mentions, np.inf, np.float32)
    has = forest.edge >= 0
    weight[has] = graph.weight[forest.edge[has]]
    return weight
