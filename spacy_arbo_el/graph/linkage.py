"""Single linkage with at most one entity in a cluster.

Edges are undirected (Angell et al. 2021).
"""

from typing import Any

import numpy as np

from ..base.compiling import jit_helper, numba_jit
from .edges import Forest, Graph, edge_keys, edge_of


@jit_helper
def find(label: np.ndarray, node: Any) -> Any:
    """Find the node that represents a node's set, and halve the path to it.

    label: (n,) integers; a node whose label is itself represents its set.
    """
    while label[node] != node:
        label[node] = label[label[node]]
        node = label[node]
    return node


@numba_jit()
def find_all(label: np.ndarray) -> np.ndarray:
    """Find the node that represents each node's set: (n,) int64."""
    found = np.empty_like(label)
    for node in range(len(label)):
        found[node] = find(label, node)
    return found


@numba_jit()
def _kruskal(
    n_entities: int,
    n_mentions: int,
    source: np.ndarray,
    target: np.ndarray,
    keys: np.ndarray,
) -> np.ndarray:
    """Select the lightest edges that join two clusters. At most one of the two has an entity."""
    label = np.arange(n_entities + n_mentions).astype(np.int32)
    size = np.ones(n_entities + n_mentions, np.int32)
    has_entity = np.zeros(n_entities + n_mentions, np.bool_)
    has_entity[:n_entities] = True
    kept = np.empty(min(len(keys), n_mentions), np.int64)
    n_kept = 0
    for i in range(len(keys)):
        edge = edge_of(keys[i])
        a = find(label, source[edge])
        b = find(label, target[edge])
        if a == b or (has_entity[a] and has_entity[b]):
            continue
        if size[a] < size[b]:
            a, b = b, a
        label[b] = a
        size[a] += size[b]
        has_entity[a] |= has_entity[b]
        kept[n_kept] = edge
        n_kept += 1
    return kept[:n_kept]


def linkage_edges(graph: Graph, threshold: np.float32) -> np.ndarray:
    """The edges by which single linkage joins, lightest first: int64 indices."""
    # No two keys are equal, so the sort need not be stable.
    keys = np.sort(edge_keys(graph, threshold))
    return _kruskal(
        graph.n_entities, graph.n_mentions, graph.source, graph.target, keys
    )


def undirected_of(graph: Graph, threshold: np.float32) -> Forest:
    """Single linkage, at most one entity a cluster (UNDIRECTED, §A.3).

    Edges count in both directions here. From the lightest to the heaviest (of equal edges, the
    earlier in the arrays first), each edge joins the clusters of its two ends, unless both have an
    entity. The edges that join clusters form trees, which are directed away from their entities.
    Mentions of clusters without an entity have no parent. O(E log E) time.
    """
    # Few pipelines need this method.
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import breadth_first_order

    kept = linkage_edges(graph, threshold)
    source = graph.source[kept]
    target = graph.target[kept]
    # One more node, from which all entities are reached.
    root = graph.n_entities + graph.n_mentions
    entities = np.arange(graph.n_entities)
    ends = (
        np.concatenate([source, np.full_like(entities, root)]),
        np.concatenate([target, entities]),
    )
    trees = csr_matrix((np.ones(len(ends[0])), ends), shape=(root + 1, root + 1))
    _, above = breadth_first_order(trees, root, directed=False)
    head = np.where(above[target] == source, target, source)
    is_reached = above[head] >= 0
    head = head[is_reached]
    parent = np.full(graph.n_mentions, -1, np.int32)
    edge = np.full(graph.n_mentions, -1, np.int64)
    parent[head - graph.n_entities] = above[head]
    edge[head - graph.n_entities] = kept[is_reached]
    return Forest(parent, edge)
