"""Why a mention was linked: its path from the entity, and the path's heaviest edge."""

from typing import NamedTuple, Optional

import numba
import numpy as np

from .checks import check_count, check_floats, check_integers


def trace(n_entities: int, parent: np.ndarray, weight: np.ndarray):
    """The root of each mention's tree and the largest weight on the way from it.

    parent, weight: (M,), as in ``Links``.
    Returns roots (M,) int32, a node id (the mention itself where it has no parent), and scores
    (M,) float32 (-inf where it has no parent: there is no edge on the way).
    """
    root = np.full(len(parent), -1, np.int32)
    score = np.full(len(parent), -np.inf, np.float32)
    _trace(n_entities, parent, weight, root, score)
    return root, score


@numba.njit(cache=True, nogil=True)
def _trace(n_entities, parent, weight, root, score):
    way = np.empty(len(parent), np.int32)
    for mention in range(len(parent)):
        length = 0
        node = mention
        while root[node] == -1:
            above = parent[node]
            if above < n_entities:  # an entity, or -1
                root[node] = above if above != -1 else node + n_entities
                score[node] = weight[node] if above != -1 else -np.inf
                break
            way[length] = node
            length += 1
            node = above - n_entities
        while length > 0:
            length -= 1
            below = way[length]
            root[below] = root[node]
            score[below] = max(score[node], weight[below])
            node = below


class Bottleneck(NamedTuple):
    """The heaviest edge of a path: two node ids and its weight."""

    source: int
    target: int
    weight: float


def path(parent: np.ndarray, n_entities: int, mention: int) -> np.ndarray:
    """The nodes from a mention's entity, or the root of its cluster, down to the mention.

    parent: (M,) node ids, -1 where there is none, as in ``Links.parent``.
    n_entities: How many nodes are entities (those below are).
    mention: Which mention, 0..M-1.

    Returns (length,) int32 node ids; the last is ``n_entities + mention``. The first is an entity
    where the mention is linked to one, and otherwise a mention.
    """
    parent = check_integers("parent", parent)
    n_entities = check_count("n_entities", n_entities)
    if not 0 <= mention < len(parent):
        raise ValueError(
            f"There is no mention {mention}: they are numbered 0 to {len(parent) - 1}."
        )
    nodes = _climb(parent, n_entities, mention)
    if len(nodes) == 0:
        raise ValueError(
            f"The parents of mention {mention} run in a circle or leave the {len(parent)} "
            "mentions. Give the parents as link() returns them, with the same n_entities."
        )
    return nodes


@numba.njit(cache=True, nogil=True)
def _climb(parent, n_entities, mention):
    nodes = np.empty(len(parent) + 1, np.int32)
    node = n_entities + mention
    length = 0
    while node != -1:
        if length == len(nodes) or node < 0 or node >= n_entities + len(parent):
            return nodes[:0].copy()
        nodes[length] = node
        length += 1
        node = parent[node - n_entities] if node >= n_entities else -1
    return nodes[:length][::-1].copy()


def bottleneck(
    parent: np.ndarray, weight: np.ndarray, n_entities: int, mention: int
) -> Optional[Bottleneck]:
    """The heaviest edge on a mention's path (the first, where several weigh the same).

    parent, weight: (M,), as in ``Links``. n_entities, mention: as for ``path``.
    Returns None where the path has no edge.
    """
    nodes = path(parent, n_entities, mention)
    if len(nodes) < 2:
        return None
    weight = check_floats("weight", weight)
    on_path = weight[nodes[1:] - n_entities]
    at = int(np.argmax(on_path))
    return Bottleneck(int(nodes[at]), int(nodes[at + 1]), float(on_path[at]))
