"""Clusters of mentions by the edges between them."""

from typing import Any

import numpy as np

from ..base.compiling import numba_jit
from .contraction import contract
from .edges import EDGE_MASK, NO_KEY, check_graph, check_threshold, edge_keys, incoming
from .linkage import find

METHODS = ("weak", "arborescence")


def cluster(
    n_mentions: int,
    source: Any,
    target: Any,
    weight: Any,
    threshold: float,
    *,
    method: str = "weak",
) -> np.ndarray:
    """Cluster mentions by the edges between them that are not heavier than a threshold λ.

    method: "weak": components of the edges, whatever their direction. "arborescence": mention-only
        arborescences (§3.5).
    RETURNS: (M,) int32, numbered 0, 1, ... in order of their first mention.

    The other arguments are those of ``link`` without entities, as are the errors.
    """
    if method not in METHODS:
        raise ValueError(f"The method must be one of {METHODS}, not {method!r}.")
    graph = check_graph(0, n_mentions, source, target, weight)
    largest = check_threshold(threshold)
    if method == "weak":
        keys = edge_keys(graph, largest)
    else:
        # Each node takes its lightest edge, and so does each cycle that these close.
        keys = contract(graph, incoming(graph, largest), rootless=True)[0]["enters"]
        keys = keys[keys != NO_KEY]
    edges = keys & EDGE_MASK
    return number_clusters(
        components(n_mentions, graph.source[edges], graph.target[edges])
    )


@numba_jit()
def components(n_nodes: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smallest node of each node's component, where ``a[i]`` and ``b[i]`` are connected."""
    label = np.arange(n_nodes).astype(np.int32)
    for i in range(len(a)):
        x = find(label, a[i])
        y = find(label, b[i])
        label[max(x, y)] = min(x, y)
    for node in range(n_nodes):  # a label never exceeds its node: one pass flattens
        label[node] = label[label[node]]
    return label


@numba_jit()
def number_clusters(labels: np.ndarray) -> np.ndarray:
    """Number clusters 0, 1, ... in order of their first mention: (M,) int32.

    labels: (M,) integers from 0, equal within a cluster.
    """
    number_of = np.full(labels.max() + 1 if len(labels) else 0, -1, np.int32)
    numbers = np.empty(len(labels), np.int32)
    n_clusters = 0
    for i in range(len(labels)):
        if number_of[labels[i]] == -1:
            number_of[labels[i]] = n_clusters
            n_clusters += 1
        numbers[i] = number_of[labels[i]]
    return numbers
