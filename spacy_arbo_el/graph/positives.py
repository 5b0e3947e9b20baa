"""Positives for training: the arborescence of each gold cluster (§2.3, §3.2).

The graph of a gold cluster is complete (Equation 5): the entity has an edge to every mention and
every mention to every other. Similarity between mentions is symmetric, so its arborescence is the
minimum spanning tree of entity and mentions, turned away from the entity, and Prim's algorithm
grows it from a matrix of similarities without writing down a single edge.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Optional

import numba
import numpy as np
from threadpoolctl import ThreadpoolController

from .checks import check_choice, check_floats, check_integers

METRICS = ("ip", "l2")
ENTITY = -1
NO_PARENT = -2

# From this many pairs of mentions on, starting threads (some milliseconds) pays.
WORTH_THREADS = 4_000_000


def gold_parents(
    mention_vectors: np.ndarray,
    entity_similarity: np.ndarray,
    offsets: np.ndarray,
    *,
    queries: Optional[np.ndarray] = None,
    metric: str = "ip",
) -> np.ndarray:
    """The parent of mentions in the arborescence of their whole gold cluster (ARBORESCENCE, §3.2).

    mention_vectors: (n, d) float32, cluster after cluster.
    entity_similarity: (n,) float32, of each mention with its entity; -inf where the cluster's
        entity is not known: then the tree hangs from its first mention.
    offsets: (c+1,) integers, cluster i is rows offsets[i] to offsets[i+1]-1.
    queries: (q,) rows whose parents are wanted, in any order; None for all. A cluster's
        tree is grown only until it holds its queries.
    metric: "ip", inner product, or "l2", minus the squared Euclidean distance; in the unit of
        ``entity_similarity``.

    Returns (q,) int64: the row of the parent, -1 for the entity, -2 for none.

    Among equal similarities the entity comes before mentions, an earlier mention before a later.
    Raises ValueError for arrays that do not fit together, NaN, and unknown metrics.

    O(size² d) time for a cluster and O(largest size²) memory.
    """
    vectors, similarity, bounds = _check(mention_vectors, entity_similarity, offsets, metric)
    rows = np.arange(len(vectors)) if queries is None else _check_queries(queries, bounds)
    wanted = np.zeros(len(vectors), np.bool_)
    wanted[rows] = True
    parent = np.full(len(vectors), NO_PARENT, np.int64)

    def grow(cluster: int) -> None:
        begin, end = bounds[cluster], bounds[cluster + 1]
        pairs = pairwise_similarity(vectors[begin:end], metric)
        _check_vectors(np.diagonal(pairs), np.arange(begin, end))
        found = _grow(pairs, similarity[begin:end], wanted[begin:end])
        parent[begin:end] = np.where(found >= 0, found + begin, found)

    clusters = np.unique(_cluster_of(rows, bounds))
    _for_each(grow, clusters, work=np.square(np.diff(bounds)[clusters]).sum())
    return parent[rows]


def gold_parents_1nn(
    mention_vectors: np.ndarray,
    entity_similarity: np.ndarray,
    offsets: np.ndarray,
    *,
    queries: Optional[np.ndarray] = None,
    metric: str = "ip",
) -> np.ndarray:
    """As ``gold_parents``, over the entity, the query and its nearest gold mention (1-NN, §3.2)."""
    vectors, similarity, bounds = _check(mention_vectors, entity_similarity, offsets, metric)
    rows = np.arange(len(vectors)) if queries is None else _check_queries(queries, bounds)
    neighbour = np.full(len(rows), -1, np.int64)
    closeness = np.full(len(rows), -np.inf, np.float32)
    cluster_of = _cluster_of(rows, bounds)
    for cluster in np.unique(cluster_of):
        begin, end = bounds[cluster], bounds[cluster + 1]
        if end - begin < 2:
            continue
        at = np.flatnonzero(cluster_of == cluster)
        scores = similarity_between(vectors[rows[at]], vectors[begin:end], metric)
        _check_vectors(scores.sum(axis=0), np.arange(begin, end))
        scores[np.arange(len(at)), rows[at] - begin] = -np.inf
        best = scores.argmax(axis=1)
        neighbour[at] = begin + best
        closeness[at] = scores[np.arange(len(at)), best]
    return _parents_of_three(rows, neighbour, closeness, similarity)


def gold_parents_1rand(
    mention_vectors: np.ndarray,
    entity_similarity: np.ndarray,
    offsets: np.ndarray,
    *,
    rng: np.random.Generator,
    queries: Optional[np.ndarray] = None,
    metric: str = "ip",
) -> np.ndarray:
    """As ``gold_parents``, over the entity, the query and a random gold mention (1-RAND, §3.2).

    rng: Draws the mention, uniformly from the others of the query's cluster.
    """
    vectors, similarity, bounds = _check(mention_vectors, entity_similarity, offsets, metric)
    rows = np.arange(len(vectors)) if queries is None else _check_queries(queries, bounds)
    cluster = _cluster_of(rows, bounds)
    begin, size = bounds[cluster], np.diff(bounds)[cluster]
    others = rng.integers(0, np.maximum(size - 1, 1))
    # The query itself is stepped over.
    others += others >= rows - begin
    neighbour = np.where(size > 1, begin + others, -1)
    closeness = _paired(vectors[rows], vectors[neighbour], metric)
    _check_vectors(closeness, rows)
    closeness = np.where(neighbour >= 0, closeness, np.float32(-np.inf))
    return _parents_of_three(rows, neighbour, closeness, similarity)


def _for_each(function: Callable[[int], None], clusters: np.ndarray, work: int) -> None:
    """Call the function for each cluster, on all cores where there is much to do."""
    if len(clusters) < 2 or work < WORTH_THREADS:
        for cluster in clusters:
            function(cluster)
        return
    # A matrix product a core, rather than one on all cores: Prim's algorithm runs on one.
    one_each = ThreadpoolController().limit(limits=1, user_api="blas")
    with one_each, ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(function, clusters))


def _parents_of_three(rows, neighbour, closeness, entity_similarity) -> np.ndarray:
    """The arborescence of entity, query and one other mention: which of the two is the parent.

    Of three edges the heaviest goes; the query hangs under the mention where that is its own edge
    from the entity.
    """
    own = entity_similarity[rows]
    other = np.where(neighbour >= 0, entity_similarity[neighbour], np.float32(-np.inf))
    by_entity = np.where(own > -np.inf, ENTITY, NO_PARENT)
    unknown = (own == -np.inf) & (other == -np.inf)
    by_mention = (neighbour >= 0) & (((own < closeness) & (own < other)) | unknown)
    return np.where(by_mention, neighbour, by_entity)


def pairwise_similarity(vectors: np.ndarray, metric: str) -> np.ndarray:
    """Similarity of all pairs: (n, d) float32 to (n, n) float32, exactly symmetric."""
    if metric == "ip":
        return vectors @ vectors.T  # NumPy computes one triangle and mirrors it
    centred = vectors - vectors.mean(axis=0)  # small norms, so little is lost in the difference
    similarity = centred @ centred.T
    norms = np.diagonal(similarity).copy()
    similarity *= 2
    similarity -= norms[:, None] + norms[None, :]
    return np.minimum(similarity, 0, out=similarity)


def similarity_between(left: np.ndarray, right: np.ndarray, metric: str) -> np.ndarray:
    """Similarity of each of (m, d) with each of (n, d) vectors: (m, n) float32."""
    if metric == "ip":
        return left @ right.T
    middle = right.mean(axis=0)
    left, right = left - middle, right - middle
    similarity = 2 * (left @ right.T)
    similarity -= np.square(left).sum(1)[:, None] + np.square(right).sum(1)[None, :]
    return np.minimum(similarity, 0, out=similarity)


def _paired(left: np.ndarray, right: np.ndarray, metric: str) -> np.ndarray:
    if metric == "ip":
        return np.einsum("ij,ij->i", left, right)
    return -np.square(left - right).sum(1)


def _check(vectors, entity_similarity, offsets, metric):
    check_choice("metric", metric, METRICS)
    vectors = check_floats("mention_vectors", vectors, ndim=2)
    entity_similarity = check_floats("entity_similarity", entity_similarity)
    offsets = check_integers("offsets", offsets).astype(np.int64, copy=False)
    if len(entity_similarity) != len(vectors):
        raise ValueError(
            f"There are {len(vectors)} mention_vectors, but {len(entity_similarity)} "
            "entity_similarity: give one a mention, -inf where the entity is not known."
        )
    steps = np.diff(offsets)
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(vectors) or (steps < 0).any():
        raise ValueError(
            f"offsets must rise from 0 to the number of mentions, {len(vectors)}, but is "
            f"{offsets.tolist() if len(offsets) < 9 else offsets}."
        )
    if np.isnan(entity_similarity).any():
        row = int(np.argmax(np.isnan(entity_similarity)))
        raise ValueError(f"entity_similarity of mention {row} is NaN.")
    return vectors, entity_similarity, offsets


def _check_vectors(similarity: np.ndarray, rows: np.ndarray) -> None:
    """Similarities that a NaN in a vector would show in: cheaper to look at than the vectors."""
    if np.isnan(similarity).any():
        row = rows[np.argmax(np.isnan(similarity))]
        raise ValueError(f"The mention_vectors of row {row} hold NaN. Encode that mention again.")


def _check_queries(queries, offsets) -> np.ndarray:
    queries = check_integers("queries", queries).astype(np.int64, copy=False)
    wrong = (queries < 0) | (queries >= offsets[-1])
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(f"queries[{at}] is {queries[at]}, but must be 0 to {offsets[-1] - 1}.")
    return queries


def _cluster_of(rows: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    return np.searchsorted(bounds, rows, side="right") - 1


# Vectorised only if maxima need not mind NaN and the sign of zero.
@numba.njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _grow(similarity, entity_similarity, wanted):
    """Prim's algorithm from the entity, until all that are wanted are in the tree."""
    n = len(entity_similarity)
    parent = np.full(n, ENTITY, np.int32)
    best = entity_similarity.copy()
    # What is in the tree is out of reach.
    out_of_reach = np.zeros(n, np.float32)
    missing = wanted.sum()
    while missing > 0:
        top = np.float32(-np.inf)
        for i in range(n):
            top = max(top, best[i])
        if top > -np.inf:
            node = 0
            while best[node] != top:
                node += 1
        else:  # nothing joins the rest to the tree: another tree
            node = 0
            while out_of_reach[node] != 0:
                node += 1
            parent[node] = NO_PARENT
        missing -= wanted[node]
        out_of_reach[node] = -np.inf
        best[node] = -np.inf
        row = similarity[node]
        for i in range(n):
            near = row[i] + out_of_reach[i]
            nearer = near > best[i]
            best[i] = near if nearer else best[i]
            parent[i] = node if nearer else parent[i]
    return parent
