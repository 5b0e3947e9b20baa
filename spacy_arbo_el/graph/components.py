"""Clusters of the mentions that no entity reaches."""

import numpy as np

from ..base.compiling import numba_jit
from .edges import Graph, incoming
from .linkage import find
from .linking import arborescence_of, trace, weights_of

LEFTOVERS = ("weak", "arborescence")


@numba_jit()
def weak_labels(n_nodes: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Label weakly connected components: (n_nodes,) int32. The label is the smallest node."""
    label = np.arange(n_nodes).astype(np.int32)
    for edge in range(len(source)):
        a = find(label, source[edge])
        b = find(label, target[edge])
        if a < b:
            label[b] = a
        else:
            label[a] = b
    for node in range(n_nodes):  # a label never exceeds its node: one pass flattens
        label[node] = label[label[node]]
    return label


@numba_jit()
def number_clusters(labels: np.ndarray, n_labels: int) -> np.ndarray:
    """Number clusters 0, 1, ... in order of their first mention: (M,) int32.

    labels: (M,) integers from 0 to n_labels-1, equal within a cluster.
    """
    number_of = np.full(n_labels, -1, np.int32)
    numbers = np.empty(len(labels), np.int32)
    n_clusters = 0
    for i in range(len(labels)):
        if number_of[labels[i]] == -1:
            number_of[labels[i]] = n_clusters
            n_clusters += 1
        numbers[i] = number_of[labels[i]]
    return numbers


def edges_between(graph: Graph, threshold: np.float32) -> np.ndarray:
    """Indices of usable edges between two mentions: (kept,) int64."""
    return _edges_between(graph.n_entities, graph.source, graph.target, graph.weight, threshold)


@numba_jit()
def _edges_between(
    n_entities: int,
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    threshold: np.float32,
) -> np.ndarray:
    infinite = np.float32(np.inf)
    edges = np.empty(len(target), np.int64)
    n_edges = 0
    for edge in range(len(target)):
        w = weight[edge]
        if w > threshold or w == infinite or source[edge] == target[edge]:
            continue
        if source[edge] >= n_entities:
            edges[n_edges] = edge
            n_edges += 1
    return edges[:n_edges].copy()


def leftover_labels(graph: Graph, edges: np.ndarray, leftover: str) -> np.ndarray:
    """Cluster mentions by some of the edges between them.

    edges: Indices of the edges that count.
    leftover: "weak" or "arborescence".
    RETURNS: (M,) int32, one mention of each mention's cluster, the same for all of a cluster.
    """
    source = graph.source[edges] - graph.n_entities
    target = graph.target[edges] - graph.n_entities
    if leftover == "weak":
        return weak_labels(graph.n_mentions, source, target)
    among = Graph(0, graph.n_mentions, source, target, graph.weight[edges])
    forest = arborescence_of(among, incoming(among, np.float32(np.inf)), rootless=True)
    return trace(0, forest.parent, weights_of(among, forest))[0]
