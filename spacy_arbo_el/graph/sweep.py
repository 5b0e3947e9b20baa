"""Links and clusters at many thresholds at once."""

from typing import NamedTuple

import numpy as np

from .bottleneck import minimax_of
from .components import LEFTOVERS, edges_between, leftover_labels, number_clusters
from .edges import (
    Graph,
    check_choice,
    check_floats,
    check_graph,
    check_threshold,
    incoming,
    last_key,
)
from .levels import Joins, arborescence_joins, labels_at, linkage_joins
from .linking import METHODS, arborescence_of, trace, weights_of


class Sweep(NamedTuple):
    """Links and clusters of M mentions at T thresholds.

    entity: (T, M) int32, row t is what ``link`` gives at ``thresholds[t]``: -1 where no entity
        reaches the mention.
    cluster: (T, M) int32, numbered 0, 1, ... in order of their first mention. The mentions of an
        entity share a cluster, and so do those of a new entity.
    """

    entity: np.ndarray
    cluster: np.ndarray


def sweep(
    n_entities: int,
    n_mentions: int,
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    thresholds: np.ndarray,
    *,
    method: str = "arborescence",
    leftover: str = "weak",
) -> Sweep:
    """Link and cluster at many thresholds λ, for tuning. The thresholds share the work.

    Without entities, and with ``method="undirected"``, clusters nest as λ rises, and all
    thresholds cost about one sort of the edges and T * M labels. With "minimax" the entity of a
    mention does not depend on λ either. Only the other mentions are clustered at each λ, by the
    edges between mentions that no lighter path from an entity has reached. With "arborescence" the
    entities do not nest (an edge kept at a high λ can take the place of a lighter one), so each λ
    costs a contraction, but no sort.

    thresholds: (T,) in the unit of the weights, in any order.
    leftover: How mentions that no entity reaches are clustered by the edges between them: as
        "weak" components, or as mention-only arborescences ("arborescence", §3.5).

    The other arguments are those of ``link``, as are the errors.
    """
    check_choice("method", method, METHODS)
    check_choice("leftover", leftover, LEFTOVERS)
    graph = check_graph(n_entities, n_mentions, source, target, weight)
    thresholds = check_floats("thresholds", thresholds, ndim=1)
    for threshold in thresholds:
        check_threshold(threshold)
    order = np.argsort(thresholds, kind="stable")
    ascending = thresholds[order]
    if not len(thresholds):
        roots = np.empty((0, graph.n_mentions), np.int32)
    elif graph.n_entities == 0 or method == "undirected":
        roots = _nested(graph, ascending, leftover)
    else:
        roots = _directed(graph, ascending, method, leftover)
    n_nodes = graph.n_entities + graph.n_mentions
    cluster = np.empty_like(roots)
    entity = np.empty_like(roots)
    for row, at in enumerate(order):
        cluster[at] = number_clusters(roots[row], n_nodes)
        entity[at] = np.where(roots[row] < graph.n_entities, roots[row], -1)
    return Sweep(entity, cluster)


def _nested(graph: Graph, thresholds: np.ndarray, leftover: str) -> np.ndarray:
    """The cluster of each mention at each threshold: (T, M) int32.

    A cluster is named by its entity, or by one of its mentions, as a node.
    """
    n_nodes = graph.n_entities + graph.n_mentions
    joins = linkage_joins(graph, thresholds[-1])
    roots = labels_at(n_nodes, joins, thresholds)[:, graph.n_entities :]
    if leftover == "weak":
        return roots
    # No edge joins a cluster without an entity to anything else, so the edges among the other
    # mentions make no difference to it.
    joins = _joins_of_mentions(graph, thresholds[-1])
    rest = labels_at(graph.n_mentions, joins, thresholds)
    return np.where(roots < graph.n_entities, roots, rest + np.int32(graph.n_entities))


def _joins_of_mentions(graph: Graph, threshold: np.float32) -> Joins:
    """Those of mention-only arborescences, up to a threshold."""
    n_entities, n_mentions, source, target, weight = graph
    edges = edges_between(graph, threshold)
    source = source[edges] - n_entities
    target = target[edges] - n_entities
    among = Graph(0, n_mentions, source, target, weight[edges])
    return arborescence_joins(among, incoming(among, threshold))


def _directed(graph: Graph, thresholds: np.ndarray, method: str, leftover: str) -> np.ndarray:
    """Nested clusters with entities assigned by a directed method. See ``_nested``."""
    n_entities, n_mentions, source, target, weight = graph
    forest = minimax_of(graph, thresholds[-1])
    nearest, reached = trace(n_entities, forest.parent, weights_of(graph, forest))
    reached = np.where(nearest < n_entities, reached, np.float32(np.inf))
    edges = incoming(graph, thresholds[-1]) if method == "arborescence" else None
    # An edge joins a new cluster from its weight on until an entity reaches one of its ends.
    between = edges_between(graph, thresholds[-1])
    ends = np.minimum(reached[source[between] - n_entities], reached[target[between] - n_entities])
    lives = weight[between] < ends
    between = between[lives]
    ends = ends[lives]
    begins = weight[between]
    roots = np.empty((len(thresholds), n_mentions), np.int32)
    for row, threshold in enumerate(thresholds):
        linked = (reached <= threshold) & (nearest < n_entities)
        alive = between[(begins <= threshold) & ((threshold < ends) | (ends == np.inf))]
        label = leftover_labels(graph, alive, leftover)
        root = nearest
        if edges is not None:
            kept = arborescence_of(graph, edges, last=last_key(threshold))
            root, _ = trace(n_entities, kept.parent, weights_of(graph, kept))
        roots[row] = np.where(linked, root, label + np.int32(n_entities))
    return roots
