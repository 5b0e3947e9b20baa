"""Positives for training: the arborescence of each gold cluster (§2.3, §3.2).

The graph of a gold cluster is complete (Equation 5): the entity has an edge to every mention and
every mention to every other. Similarity between mentions is symmetric, so its arborescence is the
minimum spanning tree of entity and mentions, turned away from the entity, and Prim's algorithm
grows it from a matrix of similarities without writing down a single edge.
"""

import numba
import numpy as np

from .checks import check_choice, check_floats, check_integers

METRICS = ("ip", "l2")
ENTITY = -1
NO_PARENT = -2

# Rows of similarities are computed one at a time for larger clusters than this: their square
# would need more than 256 MiB.
LARGEST_MATRIX = 8192


def gold_parents(
    mention_vectors: np.ndarray,
    entity_similarity: np.ndarray,
    offsets: np.ndarray,
    *,
    metric: str = "ip",
) -> np.ndarray:
    """The parent of each mention in the arborescence of its gold cluster."""
    vectors, entity_similarity, offsets = _check(mention_vectors, entity_similarity, offsets)
    check_choice("metric", metric, METRICS)
    parent = np.empty(len(vectors), np.int64)
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        similarity = pairwise_similarity(vectors[begin:end], metric)
        found = _prim(similarity, entity_similarity[begin:end], 0)
        parent[begin:end] = np.where(found >= 0, found + begin, found)
    return parent


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


def _check(vectors, entity_similarity, offsets):
    vectors = check_floats("mention_vectors", vectors, ndim=2)
    entity_similarity = check_floats("entity_similarity", entity_similarity)
    offsets = check_integers("offsets", offsets).astype(np.int64, copy=False)
    return vectors, entity_similarity, offsets


@numba.njit(cache=True, nogil=True)
def _prim(similarity, entity_similarity, root):
    n = len(entity_similarity)
    parent = np.full(n, -1, np.int64)
    best = entity_similarity.copy()
    done = np.zeros(n, np.bool_)
    for _ in range(n):
        at = -1
        for j in range(n):
            if not done[j] and (at == -1 or best[j] > best[at]):
                at = j
        if best[at] == -np.inf:
            parent[at] = -2
        done[at] = True
        for j in range(n):
            if not done[j] and similarity[at, j] > best[j]:
                best[j] = similarity[at, j]
                parent[j] = at
    return parent
