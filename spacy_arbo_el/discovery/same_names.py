"""Edges between mentions of one name, and mentions that are read alike.

A mention has edges from a few nearest mentions. Where sentences recur, these are all in the
same one, so what connects the sentences is added here: a spanning tree of each name, with the
similarities that a search among all pairs of its mentions would connect them by.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph.clusters import number_clusters
from ..graph.positives import pairwise_similarity, spanning_tree
from ..retrieval.index.exact import FlatIndex
from ..retrieval.mention_search import usable
from ..retrieval.similarity import Similarity

# Mentions of a name of which all pairs are compared; others are compared with so many of them.
MAX_PAIRED = 1024
# Pairs of vectors that are in memory at a time.
BLOCK = 1 << 14

# Both ends of edges, and their similarities.
Edges = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Distinct:
    """Mentions of which none is read like another.

    rows: (d,) int64, ascending, the first of those that are read alike.
    node: (m,) int64, the place among ``rows`` of each mention.
    """

    rows: np.ndarray
    node: np.ndarray

    @classmethod
    def of(cls, *keys: np.ndarray | None) -> "Distinct":
        """Find the mentions that differ in a key. keys: As in ``joint_numbers``."""
        node = number_clusters(joint_numbers(*keys))
        return cls(np.unique(node, return_index=True)[1], node)

    def take(self, values: Any) -> Any:
        """The rows of the first ones, without a copy where all are; None for None."""
        if values is None or len(self.rows) == len(self.node):
            return values
        return values[self.rows]


def joint_numbers(*keys: np.ndarray | None) -> np.ndarray:
    """Number mentions, those alike that are equal in each key: (m,) int64.

    keys: Arrays of (m,); None for one that does not count.
    """
    columns = [
        np.unique(key, return_inverse=True)[1] for key in keys if key is not None
    ]
    return np.unique(np.stack(columns), axis=1, return_inverse=True)[1].reshape(-1)


def name_edges(
    vectors: np.ndarray, names: np.ndarray, similarity: Similarity
) -> Edges:
    """Edges that connect the mentions of each name as strongly as all pairs would.

    Mentions that cannot be read are connected by their name alone. Of a name with more than
    ``MAX_PAIRED`` mentions, all are compared with so many of them, so the cost is near-linear.

    vectors: (m, width) float32, distinct.
    names: (m,) int64, the number of each mention's name.
    """
    readable = usable(vectors)
    order = np.lexsort((np.arange(len(names)), ~readable, names))
    kinds = names[order] * 2 + ~readable[order]
    bounds = np.flatnonzero(np.diff(kinds, prepend=-1, append=-1))
    sizes = np.diff(bounds)
    trees = [np.zeros((2, 0), dtype=np.int64)]
    for group in np.flatnonzero((sizes > 1) & readable[order[bounds[:-1]]]).tolist():
        rows = order[bounds[group] : bounds[group + 1]]
        connect = _tree if len(rows) <= MAX_PAIRED else _by_landmarks
        trees.append(connect(vectors, rows, similarity))
    pairs = np.concatenate(trees, axis=1)
    unread = order[~readable[order]]
    same = names[unread[1:]] == names[unread[:-1]]
    alone = np.stack([unread[:-1][same], unread[1:][same]])
    certain = np.full(alone.shape[1], np.finfo(np.float32).max, dtype=np.float32)
    scores = np.concatenate([_paired(vectors, pairs, similarity), certain])
    return (*np.concatenate([pairs, alone], axis=1), scores)


def _by_landmarks(
    vectors: np.ndarray, rows: np.ndarray, similarity: Similarity
) -> np.ndarray:
    """Connect many mentions: some by a tree, each other one with the nearest of them."""
    places = np.linspace(0, len(rows) - 1, MAX_PAIRED).astype(np.int64)
    chosen = rows[places]
    unchosen = np.delete(rows, places)
    tree = _tree(vectors, chosen, similarity)
    nearest = (
        FlatIndex(vectors[chosen], similarity).search(vectors[unchosen], 1).ids[:, 0]
    )
    return np.concatenate([tree, np.stack([chosen[nearest], unchosen])], axis=1)


def _paired(
    vectors: np.ndarray, pairs: np.ndarray, similarity: Similarity
) -> np.ndarray:
    scores = np.empty(pairs.shape[1], dtype=np.float32)
    for start in range(0, len(scores), BLOCK):
        source, target = pairs[:, start : start + BLOCK]
        paired = similarity.paired(vectors[source], vectors[target][:, None])
        scores[start : start + BLOCK] = paired[:, 0]
    return scores


def _tree(vectors: np.ndarray, rows: np.ndarray, similarity: Similarity) -> np.ndarray:
    """The ends of the edges of a maximum spanning tree of rows: (2, k - 1) int64."""
    pairs = pairwise_similarity(vectors[rows], similarity.metric)
    no_root = np.full(len(rows), -np.inf, dtype=np.float32)
    parents = spanning_tree(pairs, no_root, np.ones(len(rows), dtype=bool))
    return np.stack([rows[parents[parents >= 0]], rows[parents >= 0]])
