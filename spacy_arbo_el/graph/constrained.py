"""Clusters that respect decisions on some of their nodes."""

import numpy as np

from .clusters import components, number_clusters
from .edges import check_graph
from .linkage import linkage_edges


def constrained(
    clusters: np.ndarray,
    decided: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
) -> np.ndarray:
    """Cluster so that equal decisions join and different ones separate.

    Clusters that share a decision are joined. Then a cluster with several decisions is divided by
    single linkage: from the lightest edge to the heaviest, each joins the parts of its two ends
    unless they have different decisions. Clusters without a decision stay unchanged.

    clusters: (n,) integers from 0 to n - 1, equal within a cluster.
    decided: (n,) int64, equal for nodes that must share a cluster, -1 for no decision.
    source: (E,) one end of each edge that joins nodes.
    target: (E,) the other end.
    weight: (E,) float32; smaller is more similar.
    RETURNS: (n,) int64, numbered 0, 1, ... in order of their first node.
    """
    n = len(clusters)
    has = np.flatnonzero(decided >= 0)
    if not len(has):
        return number_clusters(clusters.astype(np.int64)).astype(np.int64)
    _, number = np.unique(decided[has], return_inverse=True)
    # Clusters and decisions as the nodes of one graph.
    total = n + int(number.max()) + 1
    joined = np.stack([clusters[has], n + number]).astype(np.int32)
    label = components(total, *joined)[clusters]
    pairs = np.unique(np.stack([label[has], number], axis=1), axis=0)
    labels, counts = np.unique(pairs[:, 0], return_counts=True)
    divided = np.flatnonzero(np.isin(label, labels[counts > 1]))
    if len(divided):
        place = np.full(n, -1, dtype=np.int64)
        place[divided] = np.arange(len(divided))
        is_inside = (place[source] >= 0) & (place[target] >= 0)
        inside = np.flatnonzero(is_inside & (label[source] == label[target]))
        own = np.flatnonzero(place[has] >= 0)
        n_decided = total - n
        # Decisions as entities, of which a cluster has at most one.
        graph = check_graph(
            n_decided,
            len(divided),
            np.concatenate([number[own], n_decided + place[source[inside]]]),
            n_decided + np.concatenate([place[has[own]], place[target[inside]]]),
            np.concatenate([np.full(len(own), -np.inf, np.float32), weight[inside]]),
        )
        edges = linkage_edges(graph, np.finfo(np.float32).max)
        ends = graph.source[edges], graph.target[edges]
        parts = components(n_decided + len(divided), *ends)
        label = label.astype(np.int64)
        label[divided] = label.max() + 1 + parts[n_decided:]
        _, label = np.unique(label, return_inverse=True)
    return number_clusters(label.astype(np.int64)).astype(np.int64)
