"""The exemplars that represent all exemplars of their entity best."""

import numpy as np

from ..arrays import unit


def representatives(vectors: np.ndarray, entities: np.ndarray, limit: int) -> np.ndarray:
    """Choose at most ``limit`` exemplars of each entity (BioCoM, §4, whose best limit is 20).

    The first one is the nearest to their mean. Each next one is the farthest from all that are
    chosen, so that every way in which the entity is mentioned stays represented (Gonzalez'
    k-center).

    vectors: (n, width) float32.
    entities: (n,) int64, the entity of each exemplar, -1 for none.
    limit: 0 for no limit.
    RETURNS: (n,) bool, the chosen ones. Exemplars without an entity are never chosen.
    """
    chosen = entities >= 0
    if limit <= 0 or not chosen.any():
        return chosen
    over_limit = np.flatnonzero(np.bincount(entities[chosen]) > limit)
    if not len(over_limit):
        return chosen
    rows = np.flatnonzero(np.isin(entities, over_limit))
    rows = rows[np.argsort(entities[rows], kind="stable")]
    borders = np.flatnonzero(np.diff(entities[rows], prepend=-1, append=-1))
    chosen[rows] = False
    for start, end in zip(borders[:-1], borders[1:]):
        group = rows[start:end]
        chosen[group[farthest_first(vectors[group], limit)]] = True
    return chosen


def farthest_first(vectors: np.ndarray, count: int) -> np.ndarray:
    """Rows (count,) of vectors (n, width), the most central first; of equal ones the first."""
    units = unit(vectors)
    centrality = units @ units.sum(axis=0)
    # The two of a pair are equally central up to rounding errors.
    chosen = [int((centrality >= centrality.max() - 1e-4).argmax())]
    nearest = units @ units[chosen[0]]
    while len(chosen) < min(count, len(units)):
        nearest[chosen] = np.inf
        chosen.append(int(nearest.argmin()))
        nearest = np.maximum(nearest, units @ units[chosen[-1]])
    return np.array(chosen, dtype=np.int64)
