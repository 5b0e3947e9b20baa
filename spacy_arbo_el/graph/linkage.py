"""Single linkage with at most one entity in a cluster.

Edges are undirected (Angell et al. 2021).
"""

from typing import Any

import numpy as np

from ..base.compiling import jit_helper, numba_jit
from .edges import Forest, Graph, edge_key, edge_of


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
def _keys(
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    threshold: np.float32,
    keys: np.ndarray,
) -> int:
    """Write the keys of the usable edges into ``keys``. Returns their number."""
    bits = weight.view(np.int32)
    n_keys = 0
    for edge in range(len(weight)):
        w = weight[edge]
        if w <= threshold and w < np.inf and source[edge] != target[edge]:
            keys[n_keys] = edge_key(bits[edge] if w != 0 else np.int32(0), edge)
            n_keys += 1
    return n_keys


@numba_jit()
def _kruskal(
    n_entities: int, n_mentions: int, source: np.ndarray, target: np.ndarray, keys: np.ndarray
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


@numba_jit()
def _orient(
    n_entities: int, n_mentions: int, source: np.ndarray, target: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Direct an undirected forest's edges away from its entities."""
    first = np.zeros(n_mentions + 2, np.int64)
    for i in range(len(kept)):
        a = source[kept[i]] - n_entities
        b = target[kept[i]] - n_entities
        if a >= 0:
            first[a + 2] += 1
        if b >= 0:
            first[b + 2] += 1
    for mention in range(2, n_mentions + 2):
        first[mention] += first[mention - 1]
    edges = np.empty(first[n_mentions + 1], np.int64)
    parent = np.full(n_mentions, -1, np.int32)
    edge = np.full(n_mentions, -1, np.int64)
    queue = np.empty(n_mentions, np.int32)
    length = 0
    for i in range(len(kept)):
        a = source[kept[i]] - n_entities
        b = target[kept[i]] - n_entities
        if a >= 0:
            edges[first[a + 1]] = kept[i]
            first[a + 1] += 1
        if b >= 0:
            edges[first[b + 1]] = kept[i]
            first[b + 1] += 1
        if a < 0 or b < 0:
            mention = max(a, b)
            parent[mention] = min(a, b) + n_entities
            edge[mention] = kept[i]
            queue[length] = mention
            length += 1
    at = 0
    while at < length:
        mention = queue[at]
        at += 1
        for i in range(first[mention], first[mention + 1]):
            a = source[edges[i]] - n_entities
            b = target[edges[i]] - n_entities
            other = a + b - mention
            if other < 0 or a < 0 or b < 0 or edge[other] != -1:
                continue
            parent[other] = mention + n_entities
            edge[other] = edges[i]
            queue[length] = other
            length += 1
    return parent, edge


def linkage_edges(graph: Graph, threshold: np.float32) -> np.ndarray:
    """The edges by which single linkage joins, lightest first: int64 indices."""
    keys = np.empty(len(graph.weight), np.int64)
    n_keys = _keys(graph.source, graph.target, graph.weight, threshold, keys)
    # No two keys are equal, so the sort need not be stable.
    order = np.sort(keys[:n_keys])
    return _kruskal(graph.n_entities, graph.n_mentions, graph.source, graph.target, order)


def undirected_of(graph: Graph, threshold: np.float32) -> Forest:
    """Single linkage, at most one entity a cluster (UNDIRECTED, §A.3).

    Edges count in both directions here. From the lightest to the heaviest (of equal edges, the
    earlier in the arrays first), each edge joins the clusters of its two ends, unless both have an
    entity. The edges that join clusters form trees, which are directed away from their entities.
    Mentions of clusters without an entity have no parent. O(E log E) time.
    """
    kept = linkage_edges(graph, threshold)
    return Forest(*_orient(graph.n_entities, graph.n_mentions, graph.source, graph.target, kept))
