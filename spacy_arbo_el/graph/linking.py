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
    entity: np.ndarray
    cluster: np.ndarray
    parent: np.ndarray
    score: np.ndarray
    weight: np.ndarray


def link(
    n_entities,
    n_mentions,
    source,
    target,
    weight,
    *,
    threshold=np.inf,
    method="arborescence",
    leftover="weak",
) -> Links:
    """Link mentions to entities and cluster what no entity reaches."""
    check_choice("method", method, METHODS)
    check_choice("leftover", leftover, LEFTOVERS)
    graph = check_graph(n_entities, n_mentions, source, target, weight)
    threshold = check_threshold(threshold)
    forest = _forest(graph, threshold, method)
    root, score = trace(graph.n_entities, forest.parent, _weights(graph, forest))
    linked = root < graph.n_entities
    if not linked.all():
        new = _cluster_rest(graph, threshold, ~linked, leftover)
        forest = Forest(
            np.where(linked, forest.parent, new.parent), np.where(linked, forest.edge, new.edge)
        )
        root = np.where(linked, root, new.root)
    return Links(
        entity=np.where(linked, root, np.int32(-1)),
        cluster=number_clusters(root, graph.n_entities + graph.n_mentions),
        parent=forest.parent,
        score=np.where(linked, score, np.float32(np.inf)),
        weight=_weights(graph, forest),
    )


class _Rest(NamedTuple):
    root: np.ndarray
    parent: np.ndarray
    edge: np.ndarray


def _cluster_rest(graph: Graph, threshold, rest: np.ndarray, leftover: str) -> _Rest:
    """Cluster the mentions that no entity reaches, as ``leftover`` says."""
    n_entities, n_mentions, source, target, weight = graph
    edges = edges_between(n_entities, source, target, weight, threshold, rest)
    source, target = source[edges] - n_entities, target[edges] - n_entities
    parent = np.full(n_mentions, -1, np.int32)
    edge = np.full(n_mentions, -1, np.int64)
    if leftover == "weak":
        label = weak_labels(n_mentions, source, target)
    elif leftover == "strong":
        label = strong_labels(n_mentions, source, target)
    else:
        among = Graph(0, n_mentions, source, target, weight[edges])
        forest = arborescence_of(0, source, target, incoming(among, threshold), rootless=True)
        label, _ = trace(0, forest.parent, _weights(among, forest))
        has = forest.parent >= 0
        parent[has] = forest.parent[has] + n_entities
        edge[has] = edges[forest.edge[has]]
    return _Rest(label + np.int32(n_entities), parent, edge)


def _forest(graph: Graph, threshold, method) -> Forest:
    if method == "minimax":
        return minimax_of(graph, threshold)
    if method == "undirected":
        return undirected_of(graph, threshold)
    return arborescence_of(graph.n_entities, graph.source, graph.target, incoming(graph, threshold))


def _weights(graph, forest):
    weight = np.full(graph.n_mentions, np.inf, np.float32)
    has = forest.edge >= 0
    weight[has] = graph.weight[forest.edge[has]]
    return weight
