"""Edges between mentions of one name, and mentions that are read alike.

A mention has edges from a few nearest mentions. Where sentences recur, these are all in the
same one, so what connects the sentences is added here: a spanning tree of each name, with the
similarities that a search among all pairs of its mentions would connect them by.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.compiling import numba_jit
from ..retrieval.index.exact import FlatIndex
from ..retrieval.mention_search import digests_of, usable
from ..retrieval.similarity import Similarity
from .mention_names import MentionNames

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
    def of(
        cls,
        vectors: np.ndarray,
        names: np.ndarray | None,
        keys: Sequence[np.ndarray | None] = (),
    ) -> "Distinct":
        """Find the mentions that differ in vectors, names or keys.

        vectors: (m, width) float32. Where there are no names, unreadable ones are never alike.
        names: (m,) int64, or None.
        keys: Arrays of (m,); None for one that does not count.
        """
        if names is None:
            names = np.where(usable(vectors), -1, np.arange(len(vectors)))
        columns_given = [key for key in (digests_of(vectors), names, *keys) if key is not None]
        columns = [np.unique(key, return_inverse=True)[1].reshape(-1) for key in columns_given]
        table = np.stack(columns, axis=1)
        _, first, node = np.unique(table, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return cls(first[order], place[node.reshape(-1)])

    @classmethod
    def all_of(cls, count: int) -> "Distinct":
        """Each mention by itself."""
        return cls(np.arange(count), np.arange(count))

    def names(self, names: MentionNames | None) -> MentionNames | None:
        """The names of the first ones."""
        return None if names is None else names.take(self.rows)

    def take(self, values: np.ndarray) -> np.ndarray:
        """The rows of the first ones, without a copy where all are."""
        return values if len(self.rows) == len(self.node) else values[self.rows]

    def take_any(self, values: np.ndarray | None) -> np.ndarray | None:
        """Take rows of an array that may be missing."""
        return None if values is None else self.take(values)


def name_edges(vectors: np.ndarray, names: np.ndarray, similarity: Similarity) -> Edges:
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
    small = (sizes > 1) & (sizes <= MAX_PAIRED) & readable[order[bounds[:-1]]]
    source, target = _trees(vectors, order, bounds[:-1][small], sizes[small], similarity)
    landmark_pairs: list[np.ndarray] = []
    for start, size in zip(bounds[:-1][sizes > MAX_PAIRED], sizes[sizes > MAX_PAIRED]):
        rows = order[start : start + size]
        if readable[rows[0]]:
            landmark_pairs.append(_by_landmarks(vectors, rows, similarity))
    pairs = np.concatenate([np.stack([source, target]), *landmark_pairs], axis=1)
    unread = order[~readable[order]]
    same = names[unread[1:]] == names[unread[:-1]]
    alone = np.stack([unread[:-1][same], unread[1:][same]])
    certain = np.full(alone.shape[1], np.finfo(np.float32).max, dtype=np.float32)
    scores = np.concatenate([_paired(vectors, pairs, similarity), certain])
    return (*np.concatenate([pairs, alone], axis=1), scores)


def _by_landmarks(vectors: np.ndarray, rows: np.ndarray, similarity: Similarity) -> np.ndarray:
    """Connect many mentions: some by a tree, each other one with the nearest of them."""
    places = np.linspace(0, len(rows) - 1, MAX_PAIRED).astype(np.int64)
    chosen = rows[places]
    unchosen = np.delete(rows, places)
    zero = np.zeros(1, dtype=np.int64)
    tree = np.stack(_trees(vectors, chosen, zero, zero + len(chosen), similarity))
    nearest = FlatIndex(vectors[chosen], similarity).search(vectors[unchosen], 1).ids[:, 0]
    return np.concatenate([tree, np.stack([chosen[nearest], unchosen])], axis=1)


def _paired(vectors: np.ndarray, pairs: np.ndarray, similarity: Similarity) -> np.ndarray:
    scores = np.empty(pairs.shape[1], dtype=np.float32)
    for start in range(0, len(scores), BLOCK):
        source, target = pairs[:, start : start + BLOCK]
        paired = similarity.paired(vectors[source], vectors[target][:, None])
        scores[start : start + BLOCK] = paired[:, 0]
    return scores


def _trees(
    vectors: np.ndarray,
    order: np.ndarray,
    starts: np.ndarray,
    sizes: np.ndarray,
    similarity: Similarity,
) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the edges of a maximum spanning tree of each stretch of ``order``."""
    squares = np.zeros(len(vectors), dtype=np.float32)
    if similarity.metric == "l2":
        squares = np.einsum("nw,nw->n", vectors, vectors)
    scale = 2.0 if similarity.metric == "l2" else 1.0
    contiguous = np.ascontiguousarray(vectors)
    return _spanning_trees(contiguous, squares, np.float32(scale), order, starts, sizes)


@numba_jit(interpret=False)
def _spanning_trees(
    vectors: np.ndarray,
    squares: np.ndarray,
    scale: np.float32,
    order: np.ndarray,
    starts: np.ndarray,
    sizes: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # pragma: no cover - compiled
    """Prim's algorithm over all pairs, without storing them."""
    total = int((sizes - 1).sum()) if len(sizes) else 0
    source = np.empty(total, np.int64)
    target = np.empty(total, np.int64)
    edge = 0
    for group in range(len(starts)):
        rows = order[starts[group] : starts[group] + sizes[group]]
        count = len(rows)
        best = np.full(count, -np.inf, np.float32)
        parent = np.zeros(count, np.int64)
        is_in = np.zeros(count, np.bool_)
        last = 0
        for _ in range(count - 1):
            is_in[last] = True
            following = -1
            for candidate in range(count):
                if is_in[candidate]:
                    continue
                score = np.float32(0.0)
                for column in range(vectors.shape[1]):
                    score += vectors[rows[last], column] * vectors[rows[candidate], column]
                score = scale * score - squares[rows[last]] - squares[rows[candidate]]
                if score > best[candidate]:
                    best[candidate] = score
                    parent[candidate] = last
                if following < 0 or best[candidate] > best[following]:
                    following = candidate
            source[edge] = rows[parent[following]]
            target[edge] = rows[following]
            edge += 1
            last = following
    return source, target
