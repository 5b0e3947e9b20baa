"""A few exemplars for many: those that stand for all the mentions of an entity."""

import numpy as np

from .similarity import unit


def representatives(vectors: np.ndarray, entity: np.ndarray, most: int) -> np.ndarray:
    """Choose at most so many exemplars of each entity (BioCoM, §4, found 20 to be best).

    First the one nearest to their mean, then again and again the one farthest from all chosen so
    far, so that every way an entity is mentioned keeps one near it (Gonzalez' k-center).

    vectors: (n, width) float32. entity: (n,) int64, the entity of each; -1 for none.
    RETURNS: (n,) bool; with ``most`` 0, all that have an entity.
    """
    kept = entity >= 0
    if most <= 0 or not kept.any():
        return kept
    counts = np.bincount(entity[kept])
    many = np.flatnonzero(counts > most)
    if not len(many):
        return kept
    rows = np.flatnonzero(np.isin(entity, many))
    rows = rows[np.argsort(entity[rows], kind="stable")]
    borders = np.flatnonzero(np.diff(entity[rows], prepend=-1, append=-1))
    kept[rows] = False
    for start, end in zip(borders[:-1], borders[1:]):
        group = rows[start:end]
        kept[group[farthest_first(vectors[group], most)]] = True
    return kept


def farthest_first(vectors: np.ndarray, count: int) -> np.ndarray:
    """Rows (count,) of vectors (n, width), the most central first; of equal ones the first."""
    units = unit(vectors)
    # Rounded, since two of a pair are equally central.
    chosen = [int((units @ units.sum(axis=0)).round(5).argmax())]
    nearest = units @ units[chosen[0]]
    while len(chosen) < min(count, len(units)):
        nearest[chosen] = np.inf
        chosen.append(int(nearest.argmin()))
        nearest = np.maximum(nearest, units @ units[chosen[-1]])
    return np.array(chosen, dtype=np.int64)
