"""New entities: clusters of the mentions that no entity reaches."""

import numba
import numpy as np

from .checks import Graph
from .union_find import find


@numba.njit(cache=True, nogil=True)
def weak_labels(n_nodes, source, target):
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


@numba.njit(cache=True, nogil=True)
def _by_source(n_nodes, source, target):
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


@numba.njit(cache=True, nogil=True)
def strong_labels(n_nodes, source, target):
    """Strong components (Tarjan), each labelled by its smallest node: (n_nodes,) int32."""
    first, heads = _by_source(n_nodes, source, target)
    label = np.full(n_nodes, -1, np.int32)
    low = np.zeros(n_nodes, np.int32)  # 0: not seen yet
    number = np.zeros(n_nodes, np.int32)
    at = first[:-1].copy()
    open_nodes = np.empty(n_nodes, np.int32)
    call = np.empty(n_nodes, np.int32)
    n_open = 0
    seen = 0
    for start in range(n_nodes):
        if number[start] != 0:
            continue
        call[0] = start
        depth = 1
        while depth > 0:
            node = call[depth - 1]
            if number[node] == 0:
                seen += 1
                number[node] = seen
                low[node] = seen
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


@numba.njit(cache=True, nogil=True)
def number_clusters(labels, n_labels):
    """Number clusters 0, 1, ... in order of their first mention.

    labels: (M,) integers from 0 to n_labels-1, equal within a cluster. Returns (M,) int32.
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


def edges_between(graph: Graph, threshold: np.float32, chosen: np.ndarray) -> np.ndarray:
    """Indices (int64) of the usable edges from mentions into the ``chosen`` ones, (M,) bool."""
    return _edges_between(
        graph.n_entities, graph.source, graph.target, graph.weight, threshold, chosen
    )


@numba.njit(cache=True, nogil=True)
def _edges_between(n_entities, source, target, weight, threshold, chosen):
    infinite = np.float32(np.inf)
    edges = np.empty(len(target), np.int64)
    n_edges = 0
    for edge in range(len(target)):
        w = weight[edge]
        if w > threshold or w == infinite or source[edge] == target[edge]:
            continue
        if source[edge] >= n_entities and chosen[target[edge] - n_entities]:
            edges[n_edges] = edge
            n_edges += 1
    return edges[:n_edges].copy()
