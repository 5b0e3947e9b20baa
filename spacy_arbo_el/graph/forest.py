"""Forests, in which each mention has at most one parent."""

from typing import NamedTuple, Tuple

import numpy as np

from ..compiling import numba_jit
from .arguments import Graph


class Forest(NamedTuple):
    """A forest with at most one edge into each mention.

    parent: (M,) int32, the node each mention hangs under, -1 if there is none.
    edge: (M,) int64, which of the input's edges that is, -1 if there is none.
    """

    parent: np.ndarray
    edge: np.ndarray


def weights_of(graph: Graph, forest: Forest) -> np.ndarray:
    """Weight of the edge into each mention: (M,) float32. +inf for none."""
    weight = np.full(graph.n_mentions, np.inf, np.float32)
    valid = forest.edge >= 0
    weight[valid] = graph.weight[forest.edge[valid]]
    return weight


def trace(n_entities: int, parent: np.ndarray, weight: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Find each mention's root and its path's largest weight.

    n_entities: How many nodes are entities.
    parent: (M,) int32 node ids, as in ``Forest``.
    weight: (M,) float32, the weight of the edge from the parent.
    RETURNS: Roots (M,) int32 as node ids, where a mention without a parent is its own root, and
        scores (M,) float32, -inf for a mention without a parent.
    """
    root = np.full(len(parent), -1, np.int32)
    score = np.full(len(parent), -np.inf, np.float32)
    _trace(n_entities, parent, weight, root, score)
    return root, score


@numba_jit()
def _trace(
    n_entities: int, parent: np.ndarray, weight: np.ndarray, root: np.ndarray, score: np.ndarray
) -> None:
    path = np.empty(len(parent), np.int32)
    for mention in range(len(parent)):
        length = 0
        node = mention
        while root[node] == -1:
            above = parent[node]
            if above < n_entities:  # an entity, or -1
                root[node] = above if above != -1 else node + n_entities
                score[node] = weight[node] if above != -1 else -np.inf
                break
            path[length] = node
            length += 1
            node = above - n_entities
        while length > 0:
            length -= 1
            below = path[length]
            root[below] = root[node]
            score[below] = max(score[node], weight[below])
            node = below
