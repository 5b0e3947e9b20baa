"""Clusters of mentions at many thresholds at once."""

from typing import Any

import numpy as np

from ..base.compiling import numba_jit
from .edges import check_graph, check_threshold, incoming
from .levels import arborescence_joins, labels_at, linkage_joins

METHODS = ("weak", "arborescence")


def cluster(
    n_mentions: int,
    source: Any,
    target: Any,
    weight: Any,
    thresholds: Any,
    *,
    method: str = "weak",
) -> np.ndarray:
    """Cluster mentions by the edges between them, at many thresholds λ.

    Clusters nest as λ rises, so all thresholds cost about one sort of the edges and T * M labels.

    thresholds: (T,) in the unit of the weights, in any order.
    method: "weak": components of the edges, whatever their direction. "arborescence": mention-only
        arborescences (§3.5).
    RETURNS: (T, M) int32, in each row numbered 0, 1, ... in order of their first mention.

    The other arguments are those of ``link`` without entities, as are the errors.
    """
    if method not in METHODS:
        raise ValueError(f"The method must be one of {METHODS}, not {method!r}.")
    graph = check_graph(0, n_mentions, source, target, weight)
    thresholds = np.array([check_threshold(one) for one in thresholds], dtype=np.float32)
    clusters = np.empty((len(thresholds), graph.n_mentions), np.int32)
    if not len(thresholds):
        return clusters
    order = np.argsort(thresholds, kind="stable")
    ascending = thresholds[order]
    if method == "weak":
        joins = linkage_joins(graph, ascending[-1])
    else:
        joins = arborescence_joins(graph, incoming(graph, ascending[-1]))
    labels = labels_at(graph.n_mentions, *joins, ascending)
    for row, place in enumerate(order):
        clusters[place] = number_clusters(labels[row], graph.n_mentions)
    return clusters


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
