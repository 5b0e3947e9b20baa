"""Levels at which clusters join. The clusters of every threshold from one pass over a graph.

As the threshold λ rises, edges are added, and clusters of mentions can only grow: they nest. So one
list of joins, each with the λ from which it holds, describes the clusters of all thresholds. Weak
components and single linkage join by the edges that Kruskal's algorithm keeps.
Mention-only arborescences need the contraction of this module.
"""

from typing import NamedTuple

import numpy as np

from ..base.compiling import numba_jit
from .contraction import contract
from .edges import NO_KEY, Graph, Incoming, edge_of
from .linkage import find, linkage_edges


class Joins(NamedTuple):
    """Node pairs that join at all thresholds from a level. The lowest level comes first.

    Two nodes share a cluster at λ if and only if the joins with ``level <= λ`` connect them.

    a: (J,) int32, one node of each pair.
    b: (J,) int32, the other node.
    level: (J,) float32.
    """

    a: np.ndarray
    b: np.ndarray
    level: np.ndarray


def linkage_joins(graph: Graph, threshold: np.float32) -> Joins:
    """Joins of single linkage with at most one entity each.

    Without entities, these are the joins of weak components.
    """
    kept = linkage_edges(graph, threshold)
    return Joins(graph.source[kept], graph.target[kept], graph.weight[kept])


@numba_jit()
def _edge_levels(nodes: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each node's chosen edge and the threshold from which it holds; -1 for none.

    A contracted node exists from the threshold on at which its whole cycle exists.
    """
    level = np.full(len(nodes), np.inf, np.float32)
    edge = np.full(len(nodes), -1, np.int64)
    exists = np.full(len(nodes), -np.inf, np.float32)
    for number in range(len(nodes)):  # members are numbered before what they are contracted into
        node = nodes[number]
        if node.enters != NO_KEY:
            edge[number] = edge_of(node.enters)
            level[number] = max(exists[number], weight[edge[number]])
        if node.into != -1:
            exists[node.into] = max(exists[node.into], level[number])
    return level, edge


def arborescence_joins(graph: Graph, edges: Incoming) -> Joins:
    """Joins of mention-only arborescences at all thresholds (§3.5). One contraction gives them all.

    At λ, each node that the contraction has made by then takes its lightest edge, if λ allows it.
    These choices do not depend on λ: a higher λ only adds to them.

    graph: A graph without entities.
    """
    nodes, _ = contract(graph, edges, rootless=True)
    level, edge = _edge_levels(nodes, graph.weight)
    order = np.argsort(level, kind="stable")
    order = order[edge[order] >= 0]
    return Joins(graph.source[edge[order]], graph.target[edge[order]], level[order])


@numba_jit()
def labels_at(
    n_nodes: int, a: np.ndarray, b: np.ndarray, level: np.ndarray, thresholds: np.ndarray
) -> np.ndarray:
    """Cluster of each node by smallest node: (T, n_nodes) int32.

    a, b, level: The fields of ``Joins``.
    thresholds: (T,) float32, ascending.
    """
    label = np.arange(n_nodes).astype(np.int32)
    labels = np.empty((len(thresholds), n_nodes), np.int32)
    at = 0
    for row in range(len(thresholds)):
        while at < len(level) and level[at] <= thresholds[row]:
            x = find(label, a[at])
            y = find(label, b[at])
            label[max(x, y)] = min(x, y)
            at += 1
        for node in range(n_nodes):  # a label never exceeds its node: one pass flattens
            label[node] = label[label[node]]
            labels[row, node] = label[node]
    return labels
