"""Clusters of the mentions that no entity reaches."""

from typing import Tuple

import numpy as np

from ..compiling import numba_jit
from .checks import Graph
from .expansion import arborescence_of
from .forest import trace, weights_of
from .incoming import incoming
from .union_find import find

LEFTOVERS = ("weak", "strong", "arborescence")


@numba_jit()
def weak_labels(n_nodes: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Weakly connected components, each labelled by its smallest node: (n_nodes,) int32."""
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
def _by_source(
    n_nodes: int, source: np.ndarray, target: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    first = np.zeros(n_nodes + 2, np.int64)
    for edge in range(len(source)):
        first[source[edge] + 2] += 1
    for node in range(2, n_nodes + 2):
        first[node] += first[node - 1]
    heads = np.empty(len(source), np.int32)
    for edge in range(len(source)):
        heads[first[source[edge] + 1]] = target[edge]
        first[source[edge] + 1] += 1
    return first[: n_nodes + 1], heads


@numba_jit()
def strong_labels(n_nodes: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Strongly connected components (Tarjan's algorithm), each labelled by its smallest node.

    RETURNS: (n_nodes,) int32.
    """
    first, heads = _by_source(n_nodes, source, target)
    label = np.full(n_nodes, -1, np.int32)
    low = np.zeros(n_nodes, np.int32)  # 0: not visited yet
    number = np.zeros(n_nodes, np.int32)
    at = first[:-1].copy()
    open_nodes = np.empty(n_nodes, np.int32)
    call = np.empty(n_nodes, np.int32)
    n_open = 0
    n_visited = 0
    for start in range(n_nodes):
        if number[start] != 0:
            continue
        call[0] = start
        depth = 1
        while depth > 0:
            node = call[depth - 1]
            if number[node] == 0:
                n_visited += 1
                number[node] = n_visited
                low[node] = n_visited
                open_nodes[n_open] = node
                n_open += 1
            if at[node] < first[node + 1]:
                other = heads[at[node]]
                at[node] += 1
                if number[other] == 0:
                    call[depth] = other
                    depth += 1
                elif label[other] == -1:
                    low[node] = min(low[node], number[other])
                continue
            depth -= 1
            if depth > 0:
                low[call[depth - 1]] = min(low[call[depth - 1]], low[node])
            if low[node] == number[node]:
                begin = n_open
                smallest = node
                while True:
                    begin -= 1
                    smallest = min(smallest, open_nodes[begin])
                    if open_nodes[begin] == node:
                        break
                for i in range(begin, n_open):
                    label[open_nodes[i]] = smallest
                n_open = begin
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
    """The indices of the usable edges between two mentions: (edges kept,) int64."""
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
    leftover: "weak", "strong" or "arborescence".
    RETURNS: (M,) int32, one mention of each mention's cluster, the same for all of a cluster.
    """
    source, target = graph.source[edges] - graph.n_entities, graph.target[edges] - graph.n_entities
    if leftover == "weak":
        return weak_labels(graph.n_mentions, source, target)
    if leftover == "strong":
        return strong_labels(graph.n_mentions, source, target)
    among = Graph(0, graph.n_mentions, source, target, graph.weight[edges])
    forest = arborescence_of(among, incoming(among, np.float32(np.inf)), rootless=True)
    return trace(0, forest.parent, weights_of(among, forest))[0]
