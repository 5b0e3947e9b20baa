"""Positives for training from the arborescence of each gold cluster (§2.3, §3.2).

The graph of a gold cluster is complete (Equation 5): the entity has an edge to every mention, and
every mention has edges to all others. Similarity between mentions is symmetric, so its arborescence
is the minimum spanning tree of entity and mentions, directed away from the entity. Prim's algorithm
builds it from a matrix of similarities, without a list of edges.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from ..base.compiling import numba_jit

ENTITY = -1
NO_PARENT = -2

# From this many pairs of mentions on, threads save more time than it takes to start them.
WORTH_THREADS = 4_000_000


def gold_parents(
    vectors: np.ndarray,
    similarity: np.ndarray,
    bounds: np.ndarray,
    *,
    queries: np.ndarray | None = None,
    metric: str = "ip",
) -> np.ndarray:
    """Parents in the arborescence of the gold cluster (ARBORESCENCE, §3.2).

    Among equal similarities the entity comes before mentions, an earlier mention before a later.
    Takes O(size² d) time for a cluster, and O(largest size²) memory.

    vectors: (n, d) float32, cluster after cluster.
    similarity: (n,) float32, the similarity of each mention to its entity; -inf where the
        entity has no vector. Then the tree hangs from the cluster's first mention.
    bounds: (c+1,) int64, cluster i is rows bounds[i] to bounds[i+1]-1.
    queries: (q,) rows whose parents are wanted, in any order; None for all. The tree of a cluster
        is built only until it contains its queries.
    metric: "ip" for the inner product, or "l2" for minus the squared Euclidean distance; in the
        unit of ``similarity``.
    RETURNS: (q,) int64, the row of the parent, -1 for the entity, -2 for none.

    Raises ValueError for NaN.
    """
    rows = _checked_rows(vectors, similarity, queries, metric)
    wanted = np.zeros(len(vectors), np.bool_)
    wanted[rows] = True
    parent = np.full(len(vectors), NO_PARENT, np.int64)

    def build_tree(cluster: int) -> None:
        begin = bounds[cluster]
        end = bounds[cluster + 1]
        pairs = pairwise_similarity(vectors[begin:end], metric)
        _check(np.diagonal(pairs), np.arange(begin, end))
        parents = spanning_tree(pairs, similarity[begin:end], wanted[begin:end])
        parent[begin:end] = np.where(parents >= 0, parents + begin, parents)

    clusters = np.unique(_cluster_of(rows, bounds))
    _for_each(build_tree, clusters, work=np.square(np.diff(bounds)[clusters]).sum())
    return parent[rows]


def gold_parents_1nn(
    vectors: np.ndarray,
    similarity: np.ndarray,
    bounds: np.ndarray,
    *,
    queries: np.ndarray | None = None,
    metric: str = "ip",
) -> np.ndarray:
    """``gold_parents`` among entity, query and nearest gold mention (1-NN, §3.2)."""
    rows = _checked_rows(vectors, similarity, queries, metric)
    neighbour = np.full(len(rows), -1, np.int64)
    nearest = np.zeros(len(rows), np.float32)
    cluster_of = _cluster_of(rows, bounds)
    for cluster in np.unique(cluster_of):
        begin = bounds[cluster]
        end = bounds[cluster + 1]
        if end - begin < 2:
            continue
        at = np.flatnonzero(cluster_of == cluster)
        queried = rows[at] - begin
        scores = pairwise_similarity(vectors[begin:end], metric, queried)
        _check(scores.sum(axis=0), np.arange(begin, end))
        scores[np.arange(len(at)), queried] = -np.inf
        neighbour[at] = begin + scores.argmax(axis=1)
        nearest[at] = scores.max(axis=1)
    return _parents_of_three(rows, neighbour, nearest, similarity)


def gold_parents_1rand(
    vectors: np.ndarray,
    similarity: np.ndarray,
    bounds: np.ndarray,
    *,
    rng: np.random.Generator,
    queries: np.ndarray | None = None,
    metric: str = "ip",
) -> np.ndarray:
    """Parents among entity, query, random gold mention (1-RAND, §3.2). It is otherwise as
    ``gold_parents``.

    rng: Draws the mention, uniformly from the others of the query's cluster.
    """
    rows = _checked_rows(vectors, similarity, queries, metric)
    cluster = _cluster_of(rows, bounds)
    begin = bounds[cluster]
    size = np.diff(bounds)[cluster]
    others = rng.integers(0, np.maximum(size - 1, 1))
    # Skip the query itself.
    others += others >= rows - begin
    neighbour = np.where(size > 1, begin + others, -1)
    # A mention alone in its cluster is compared with itself, and has no neighbour.
    compared = np.where(size > 1, neighbour, rows)
    drawn = _paired(vectors[rows], vectors[compared], metric)
    _check(drawn, rows)
    return _parents_of_three(rows, neighbour, drawn, similarity)


def _for_each(
    function: Callable[[int], None], clusters: np.ndarray, work: int
) -> None:
    if len(clusters) < 2 or work < WORTH_THREADS:
        for cluster in clusters:
            function(cluster)
        return
    # One matrix product per core, rather than one on all cores: Prim's algorithm runs on one core.
    one_thread = ThreadpoolController().limit(limits=1, user_api="blas")
    with one_thread, ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(function, clusters))


def _parents_of_three(
    rows: np.ndarray,
    neighbour: np.ndarray,
    similarity: np.ndarray,
    entity_similarity: np.ndarray,
) -> np.ndarray:
    """The parent of the query in an arborescence of entity, query and one other mention.

    Of three edges the heaviest is deleted. The query hangs under the mention where that is its own
    edge from the entity.

    rows: (q,) the queries.
    neighbour: (q,) the other mentions, -1 for none.
    similarity: (q,) of these two; anything where there is no other.
    entity_similarity: (n,) of all mentions.
    """
    own = entity_similarity[rows]
    other = np.where(neighbour >= 0, entity_similarity[neighbour], np.float32(-np.inf))
    by_entity = np.where(own > -np.inf, ENTITY, NO_PARENT)
    unknown = (own == -np.inf) & (other == -np.inf)
    by_mention = (neighbour >= 0) & (((own < similarity) & (own < other)) | unknown)
    return np.where(by_mention, neighbour, by_entity)


def _checked_rows(
    vectors: np.ndarray,
    similarity: np.ndarray,
    queries: np.ndarray | None,
    metric: str,
) -> np.ndarray:
    """The rows whose parents are wanted. The arguments are those of ``gold_parents``."""
    if metric not in ("ip", "l2"):
        raise ValueError(f"metric must be 'ip' or 'l2', not {metric!r}.")
    every = np.arange(len(vectors))
    _check(similarity, every)
    return every if queries is None else queries


def pairwise_similarity(
    vectors: np.ndarray, metric: str, rows: Any = slice(None)
) -> np.ndarray:
    """Similarity of some rows, or of all, to all. That of all is exactly symmetric.

    vectors: (n, d) float32.
    RETURNS: (n, n) float32, or (r, n) for r rows.
    """
    if metric == "ip":
        # NumPy computes one triangle of all pairs and mirrors it.
        return vectors[rows] @ vectors.T
    centred = vectors - vectors.mean(
        axis=0
    )  # small norms, so little is lost in the difference
    similarity = centred[rows] @ centred.T
    norms = np.square(centred).sum(1)
    similarity *= 2
    similarity -= norms[rows, None] + norms
    return np.minimum(similarity, 0, out=similarity)


def _paired(left: np.ndarray, right: np.ndarray, metric: str) -> np.ndarray:
    if metric == "ip":
        return np.einsum("ij,ij->i", left, right)
    return -np.square(left - right).sum(1)


def _check(similarity: np.ndarray, rows: np.ndarray) -> None:
    """Raise an error for NaN, in vectors too: it is seen in their similarities, which are fewer."""
    if np.isnan(similarity).any():
        row = rows[np.argmax(np.isnan(similarity))]
        raise ValueError(
            f"A similarity of mention {row} is NaN. Encode that mention again."
        )


def _cluster_of(rows: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    return np.searchsorted(bounds, rows, side="right") - 1


# LLVM vectorizes maxima only where they may ignore NaN and the sign of zero.
@numba_jit(interpret=False, fastmath={"nnan", "nsz"})
def spanning_tree(
    similarity: np.ndarray, entity_similarity: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
    """Grow a tree from the entity to all wanted mentions. This is Prim's algorithm.

    RETURNS: (n,) int32 parents, correct for mentions in the tree.
    """
    n = len(entity_similarity)
    parent = np.full(n, ENTITY, np.int32)
    best = entity_similarity.copy()
    # -inf for mentions in the tree, 0 for the others.
    excluded = np.zeros(n, np.float32)
    missing = wanted.sum()
    while missing > 0:
        top = np.float32(-np.inf)
        for i in range(n):
            top = max(top, best[i])
        if top > -np.inf:
            node = 0
            while best[node] != top:
                node += 1
        else:  # nothing joins the rest to the tree: start another tree
            node = 0
            while excluded[node] != 0:
                node += 1
            parent[node] = NO_PARENT
        missing -= wanted[node]
        excluded[node] = -np.inf
        best[node] = -np.inf
        row = similarity[node]
        for i in range(n):
            value = row[i] + excluded[i]
            is_better = value > best[i]
            best[i] = value if is_better else best[i]
            parent[i] = node if is_better else parent[i]
    return parent
