"""The nearest entities of mentions, limited to allowed types, and with those of their name."""

from dataclasses import dataclass
from typing import Callable, Optional, Tuple

import numpy as np

from ..arrays import TopK, first_of_each, has_vector, offsets_of, ragged_ranges, take_or
from ..kb.vectors import VectorRows
from .index.protocol import Index
from .similarity import Similarity

# Function from vectors (m, width), a count and allowed positions in the KB, (positions,) bool or
# None for all, to the nearest of each vector, (m, count).
Search = Callable[[np.ndarray, int, Optional[np.ndarray]], TopK]


@dataclass(frozen=True)
class AllowedEntities:
    """The entities that each of ``m`` mentions may be linked to, by the label of the mention.

    label_numbers: (m,) int64, the number of each mention's label.
    masks: (labels, positions) bool, whether an entity may be linked to mentions of a label.
    """

    label_numbers: np.ndarray
    masks: np.ndarray

    def take(self, mentions: np.ndarray) -> "AllowedEntities":
        """The entities that some of the mentions may be linked to."""
        return AllowedEntities(self.label_numbers[mentions], self.masks)

    def restrict(self, entities: np.ndarray) -> np.ndarray:
        """Positions (m, c) int64 in the KB, with -1 in place of those that are not allowed."""
        # A lookup may find entities that another program has added since the masks were made.
        known = entities < self.masks.shape[1]
        places = np.where(known, entities, -1)
        return np.where(known & self.masks[self.label_numbers[:, None], places], entities, -1)


class EntitySearch:
    """Searches the knowledge base's rows for entities.

    rows: The knowledge base's vectors.
    owners: (rows,) int64, the entity of each row, -1 for rows that are not searched.
    index: Built over the rows.
    oversampling: Rows that are searched per entity, since an entity may have many.
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
        usable = owners >= 0
        self._usable = None if usable.all() else usable
        # Where every entity has one row, one row per entity is enough.
        most_rows = int(np.bincount(owners[usable]).max(initial=1))
        self.oversampling = min(oversampling, most_rows)
        self._by_entity: Optional[Tuple[np.ndarray, np.ndarray]] = None

    def nearest(
        self,
        vectors: np.ndarray,
        count: int,
        allowed: Optional[AllowedEntities] = None,
        named: Optional[np.ndarray] = None,
    ) -> TopK:
        """The nearest entities of each mention, (m, count).

        vectors: (m, width) float32, prepared.
        allowed: Which entities each mention may be linked to; None for all.
        named: (m, c) int64 entities that must be among the result, -1 for none.
        RETURNS: A mention without a vector has its named entities alone, as if its vector were
            theirs.
        """
        nearest = search_by_label(self._search, vectors, count, allowed)
        nearest = nearest.where(has_vector(vectors)[:, None])
        if named is None or not named.shape[1]:
            return nearest
        if allowed is not None:
            named = allowed.restrict(named)
        return self._with_named(vectors, nearest, named)

    def _search(self, vectors: np.ndarray, count: int, allowed: Optional[np.ndarray]) -> TopK:
        usable = self._usable
        if allowed is not None:
            usable = allowed[self.owners] & (self.owners >= 0)
        rows = self.index.search(vectors, count * self.oversampling, usable)
        return entities_of_rows(rows, self.owners, count)

    def _with_named(self, vectors: np.ndarray, nearest: TopK, named: np.ndarray) -> TopK:
        """Replace the last entities by named ones that are not among them."""
        entities, width = nearest.ids, nearest.width
        is_new = (named >= 0) & ~(named[:, :, None] == entities[:, None, :]).any(axis=2)
        is_new &= np.tril(named[:, :, None] == named[:, None, :], -1).sum(axis=2) == 0
        named = np.where(is_new, named, -1)
        scores = self.similarity_of(vectors, named)
        readable = has_vector(vectors)
        if not readable.all():
            equal = self._similarity_of_equals(named[~readable], vectors.shape[1])
            scores[~readable] = np.where(named[~readable] >= 0, equal, -np.inf)
        named = np.where(np.isfinite(scores), named, -1)
        kept = np.arange(width) < width - (named >= 0).sum(axis=1)[:, None]
        both = np.concatenate([np.where(kept, entities, -1), named], axis=1)
        scores = np.concatenate([np.where(kept, nearest.scores, -np.inf), scores], axis=1)
        scores = np.where(both >= 0, scores, -np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :width]
        return TopK(
            np.take_along_axis(both, order, axis=1), np.take_along_axis(scores, order, axis=1)
        )

    def _similarity_of_equals(self, entities: np.ndarray, width: int) -> np.ndarray:
        """The similarity of each entity's first row to itself; of zeros where it has no row.

        entities: (m, c) int64, -1 for none.
        RETURNS: (m, c) float32.
        """
        order, offsets = self._rows_of_entities()
        valid = (entities >= 0) & (entities < len(offsets) - 1)
        has_row = valid & (np.append(np.diff(offsets), 0)[np.where(valid, entities, -1)] > 0)
        vectors = np.zeros((entities.size, width), dtype=np.float32)
        if has_row.any():
            rows = self.rows.take(order[offsets[entities[has_row]]])
            vectors[has_row.ravel()] = self.similarity.prepare(rows)
        return self.similarity.of_equals(vectors).reshape(entities.shape)

    def _rows_of_entities(self) -> Tuple[np.ndarray, np.ndarray]:
        """Rows sorted by entity, and where those of each entity begin and the last one's end."""
        if self._by_entity is None:
            order = np.argsort(self.owners, kind="stable")
            order = order[int((self.owners < 0).sum()) :]
            self._by_entity = order, offsets_of(np.bincount(self.owners[order]))
        return self._by_entity

    def similarity_of(self, vectors: np.ndarray, entities: np.ndarray) -> np.ndarray:
        """The similarity of each mention to the nearest row of each of its entities.

        vectors: (m, width) float32, prepared.
        entities: (m, c) int64, -1 for none.
        RETURNS: (m, c) float32, -inf where an entity has no row.
        """
        if not len(self.rows):
            return np.full(entities.shape, -np.inf, dtype=np.float32)
        order, offsets = self._rows_of_entities()
        valid = (entities >= 0) & (entities < len(offsets) - 1)
        flat = entities[valid]
        counts = np.diff(offsets)[flat]
        rows = order[ragged_ranges(offsets[:-1][flat], counts)]
        mention = np.repeat(np.nonzero(valid)[0], counts)
        right = self.similarity.prepare(self.rows.take(rows))[:, None, :]
        scores = self.similarity.paired(vectors[mention], right)[:, 0]
        best = np.full(entities.shape, -np.inf, dtype=np.float32)
        has_rows = counts > 0
        if has_rows.any():
            places = np.flatnonzero(valid)[has_rows]
            best.ravel()[places] = np.maximum.reduceat(scores, offsets_of(counts[has_rows])[:-1])
        return best


def search_by_label(
    search: Search, vectors: np.ndarray, count: int, allowed: Optional[AllowedEntities]
) -> TopK:
    """Search once for each label, or once for all mentions where everything is allowed."""
    if allowed is None:
        return search(vectors, count, None)
    result = TopK.empty(len(vectors), count)
    for label in np.unique(allowed.label_numbers):
        mentions = np.flatnonzero(allowed.label_numbers == label)
        nearest = search(vectors[mentions], count, allowed.masks[label])
        result.ids[mentions], result.scores[mentions] = nearest.ids, nearest.scores
    return result


def entities_of_rows(rows: TopK, owners: np.ndarray, count: int) -> TopK:
    """The entities that own rows, each once with its best row, (m, count).

    Entities with equal scores come in the order of their rows.

    rows: Rows of the knowledge base.
    owners: (rows,) int64, the entity of each row.
    """
    valid = rows.valid
    entities = owners[rows.ids[valid]]
    places = first_of_each(np.nonzero(valid)[0], entities, len(rows), count)
    return TopK(take_or(entities, places, -1), take_or(rows.scores[valid], places, -np.inf))
