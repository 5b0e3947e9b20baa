"""Vectors of mentions -> the nearest entities, of the right types, beside those of their name."""

from typing import NamedTuple, Optional, Tuple

import numpy as np
from numba import njit

from ..encoders.sequences import offsets_of, ragged_ranges
from ..kb.vectors import VectorRows
from .index import Index
from .similarity import Similarity

Found = Tuple[np.ndarray, np.ndarray]


class Types(NamedTuple):
    """Which entities each mention may be linked to.

    label: (m,) int64, the number of each mention's label.
    allowed: (labels, positions) bool, whether an entity is of the type, or of none in particular.
    """

    label: np.ndarray
    allowed: np.ndarray


class EntitySearch:
    """Searches the knowledge base's rows for entities.

    rows: The knowledge base's vectors. index: Built over them.
    owners: (rows,) int64, the entity of each row, -1 for rows that don't count.
    oversampling: Rows searched for each entity wanted, since an entity may have many.
    """

    def __init__(
        self,
        rows: VectorRows,
        owners: np.ndarray,
        index: Index,
        similarity: Similarity,
        oversampling: int = 3,
    ):
        self.rows, self.owners, self.index, self.similarity = rows, owners, index, similarity
        counted = owners >= 0
        self._counted = None if counted.all() else counted
        # Where no entity has two rows, none is found twice.
        most = int(np.bincount(owners[counted]).max(initial=1))
        self.oversampling = min(oversampling, most)
        self._order: Optional[np.ndarray] = None
        self._offsets = np.zeros(1, dtype=np.int64)

    def nearest(
        self,
        vectors: np.ndarray,
        count: int,
        types: Optional[Types] = None,
        named: Optional[np.ndarray] = None,
    ) -> Found:
        """The nearest entities of each mention.

        vectors: (m, width) float32, prepared.
        named: (m, c) int64 entities that must be among those found, -1 for none.
        RETURNS: entities (m, count) int64 and similarities (m, count) float32, nearest first, -1
            and -inf where there are no more.
        """
        found = search_by_type(self._search, vectors, count, types)
        if named is None or not named.shape[1] or not len(self.rows):
            return found
        if types is not None:
            named = np.where(types.allowed[types.label[:, None], named], named, -1)
        return self._with_named(vectors, found, named)

    def _search(self, vectors: np.ndarray, count: int, allowed: Optional[np.ndarray]) -> Found:
        rows = self._counted
        if allowed is not None:
            rows = allowed[self.owners] & (self.owners >= 0)
        similarities, found = self.index.search(vectors, count * self.oversampling, rows)
        return best_of_each(self.owners, similarities, found, count)

    def _with_named(self, vectors: np.ndarray, found: Found, named: np.ndarray) -> Found:
        """Let named entities that were not found take the places of the last ones that were."""
        entities, similarities = found
        new = (named >= 0) & ~(named[:, :, None] == entities[:, None, :]).any(axis=2)
        new &= np.tril(named[:, :, None] == named[:, None, :], -1).sum(axis=2) == 0
        named = np.where(new, named, -1)
        near = self.similarity_of(vectors, named)
        named = np.where(np.isfinite(near), named, -1)
        width = entities.shape[1]
        kept = np.arange(width) < width - (named >= 0).sum(axis=1)[:, None]
        both = np.concatenate([np.where(kept, entities, -1), named], axis=1)
        near = np.concatenate([np.where(kept, similarities, -np.inf), near], axis=1)
        near = np.where(both >= 0, near, -np.inf)
        order = np.argsort(-near, axis=1, kind="stable")[:, :width]
        return np.take_along_axis(both, order, axis=1), np.take_along_axis(near, order, axis=1)

    def similarity_of(self, vectors: np.ndarray, entities: np.ndarray) -> np.ndarray:
        """(m, c) float32, of vectors (m, width) to the nearest row of entities (m, c).

        -inf where an entity has none.
        """
        if not len(self.rows):
            return np.full(entities.shape, -np.inf, dtype=np.float32)
        if self._order is None:
            order = np.argsort(self.owners, kind="stable")
            dead = int((self.owners < 0).sum())
            self._order = order[dead:]
            self._offsets = offsets_of(np.bincount(self.owners[self._order]))
        known = (entities >= 0) & (entities < len(self._offsets) - 1)
        flat = entities[known]
        counts = np.diff(self._offsets)[flat]
        rows = self._order[ragged_ranges(self._offsets[:-1][flat], counts)]
        mention = np.repeat(np.nonzero(known)[0], counts)
        right = self.similarity.prepare(self.rows.take(rows))[:, None, :]
        values = self.similarity.paired(vectors[mention], right)[:, 0]
        best = np.full(entities.shape, -np.inf, dtype=np.float32)
        some = counts > 0
        if some.any():
            place = np.flatnonzero(known)[some]
            best.ravel()[place] = np.maximum.reduceat(values, offsets_of(counts[some])[:-1])
        return best


def search_by_type(search, vectors: np.ndarray, count: int, types: Optional[Types]) -> Found:
    """One search for each type that occurs.

    search: Function from (vectors, count, allowed (positions,) bool or None) to two (m, count)
        arrays.
    """
    if types is None:
        return search(vectors, count, None)
    entities = np.full((len(vectors), count), -1, dtype=np.int64)
    similarities = np.full((len(vectors), count), -np.inf, dtype=np.float32)
    for label in np.unique(types.label):
        mentions = np.flatnonzero(types.label == label)
        found = search(vectors[mentions], count, types.allowed[label])
        entities[mentions], similarities[mentions] = found
    return entities, similarities


def best_of_each(
    owners: np.ndarray, similarities: np.ndarray, found: np.ndarray, count: int
) -> Found:
    """Rows found -> the entities that own them, each once, the first ``count`` of each mention.

    similarities, found: (m, k), nearest first, -1 for none. Entities that are equally near come
        in the order of their rows.
    RETURNS: entities (m, count) int64 and similarities (m, count) float32.
    """
    there = found >= 0
    entity = owners[found[there]]
    places = first_of_each(np.nonzero(there)[0], entity, len(found), count)
    return fill(entity, places, -1), fill(similarities[there], places, -np.inf)


@njit(cache=True, nogil=True)
def first_of_each(mention, entity, mentions, count):  # pragma: no cover - compiled
    """Where each entity occurs first within each mention, the first ``count`` of them.

    mention: (n,) int64 ascending; entity: (n,) int64, in order of preference within a mention.
    RETURNS: (mentions, count) int64 places in the two arrays, -1 for none.
    """
    places = np.full((mentions, count), -1, dtype=np.int64)
    found = np.zeros(mentions, dtype=np.int64)
    last_seen = np.full(entity.max() + 1 if len(entity) else 0, -1, dtype=np.int64)
    for place in range(len(entity)):
        m, e = mention[place], entity[place]
        if last_seen[e] != m and found[m] < count:
            last_seen[e] = m
            places[m, found[m]] = place
            found[m] += 1
    return places


def fill(values: np.ndarray, places: np.ndarray, missing) -> np.ndarray:
    """``values[places]``, with ``missing`` where a place is -1."""
    if not len(values):
        return np.full(places.shape, missing, dtype=values.dtype)
    return np.where(places >= 0, values[places], values.dtype.type(missing))
