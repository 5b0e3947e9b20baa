"""Clusters at many thresholds at once."""

from typing import NamedTuple

import numpy as np

from .bottleneck import minimax_of
from .checks import Graph, check_choice, check_floats, check_graph, check_threshold
from .components import edges_between, number_clusters
from .contraction import arborescence_of
from .evidence import trace
from .incoming import incoming, last_key
from .levels import Joins, arborescence_joins, labels_at, linkage_joins, strong_joins
from .linking import LEFTOVERS, METHODS, cluster_rest, weights_of


class Sweep(NamedTuple):
    """Links at T thresholds: row t is what ``link`` gives at ``thresholds[t]``.

    entity: (T, M) int32, -1 where no entity reaches the mention.
    cluster: (T, M) int32, numbered as in ``Links``.
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
    """Link and cluster at many thresholds λ, to tune λ: as ``link`` at each, sharing the work.

    thresholds: (T,) in the unit of the weights, in any order.
    Everything else is as in ``link``.

    Without entities, and with ``method="undirected"``, clusters nest as λ rises, and all thresholds
    cost about one sort of the edges and T * M labels. With "minimax" each mention's entity does
    not depend on λ either, and only the clustering of the rest is done for each λ, over the
    edges between mentions that no lighter path from an entity has reached. With "arborescence" the
    entities are not nested (an edge kept at a high λ can take the place of a lighter one), so
    each λ costs a contraction, but no sort.
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
    cluster, entity = np.empty_like(roots), np.empty_like(roots)
    for row, at in enumerate(order):
        cluster[at] = number_clusters(roots[row], n_nodes)
        entity[at] = np.where(roots[row] < graph.n_entities, roots[row], -1)
    return Sweep(entity, cluster)


def _nested(graph: Graph, thresholds: np.ndarray, leftover: str) -> np.ndarray:
    """(T, M) int32: the entity of each mention's cluster, or one of its mentions (as a node)."""
    n_nodes = graph.n_entities + graph.n_mentions
    joins = linkage_joins(graph, thresholds[-1])
    roots = labels_at(n_nodes, joins, thresholds)[:, graph.n_entities :]
    if leftover == "weak":
        return roots
    # No edge joins a cluster without an entity to anything else: what the other mentions do among
    # themselves makes no difference to it.
    joins = _joins_of_mentions(graph, thresholds, leftover)
    rest = labels_at(graph.n_mentions, joins, thresholds)
    return np.where(roots < graph.n_entities, roots, rest + np.int32(graph.n_entities))


def _joins_of_mentions(graph: Graph, thresholds: np.ndarray, leftover: str) -> Joins:
    n_entities, n_mentions, source, target, weight = graph
    everyone = np.ones(n_mentions, bool)
    edges = edges_between(graph, thresholds[-1], everyone)
    source, target = source[edges] - n_entities, target[edges] - n_entities
    among = Graph(0, n_mentions, source, target, weight[edges])
    if leftover == "strong":
        return strong_joins(among, thresholds)
    return arborescence_joins(among, incoming(among, thresholds[-1]))


def _directed(graph: Graph, thresholds: np.ndarray, method: str, leftover: str) -> np.ndarray:
    """As ``_nested``, where the directed methods find the entities."""
    n_entities, n_mentions, source, target, weight = graph
    forest = minimax_of(graph, thresholds[-1])
    nearest, reached = trace(n_entities, forest.parent, weights_of(graph, forest))
    reached = np.where(nearest < n_entities, reached, np.float32(np.inf))
    edges = incoming(graph, thresholds[-1]) if method == "arborescence" else None
    # An edge joins a new cluster from its weight on until an entity reaches one of its ends.
    between = edges_between(graph, thresholds[-1], np.ones(n_mentions, bool))
    ends = np.minimum(reached[source[between] - n_entities], reached[target[between] - n_entities])
    lives = weight[between] < ends
    between, ends = between[lives], ends[lives]
    begins = weight[between]
    roots = np.empty((len(thresholds), n_mentions), np.int32)
    for row, threshold in enumerate(thresholds):
        linked = (reached <= threshold) & (nearest < n_entities)
        alive = between[(begins <= threshold) & ((threshold < ends) | (ends == np.inf))]
        label, _ = cluster_rest(graph, alive, leftover)
        root = nearest
        if edges is not None:
            kept = arborescence_of(graph, edges, last=last_key(threshold))
            root, _ = trace(n_entities, kept.parent, weights_of(graph, kept))
        roots[row] = np.where(linked, root, label + np.int32(n_entities))
    return roots
