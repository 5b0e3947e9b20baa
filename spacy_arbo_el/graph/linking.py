"""Links from arrays in one call."""

from typing import NamedTuple

import numpy as np

from .bottleneck import minimax_of
from .edges import Graph, check_choice, check_graph, check_threshold, incoming
from .forest import Forest, arborescence_of, trace, weights_of
from .linkage import undirected_of

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
    """Link mentions to entities. ``sweep`` also clusters the mentions that no entity reaches.

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
    check_choice("method", method, METHODS)
    graph = check_graph(n_entities, n_mentions, source, target, weight)
    forest = _forest(graph, check_threshold(threshold), method)
    weights = weights_of(graph, forest)
    root, score = trace(graph.n_entities, forest.parent, weights)
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
