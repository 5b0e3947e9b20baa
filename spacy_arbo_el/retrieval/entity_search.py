"""The nearest entities of mentions, limited to allowed types."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

import numpy as np

from ..base.arrays import TopK, first_of_each, has_vector, take_or
from ..kb.vectors import VectorRows
from .index.protocol import Index
from .similarity import Similarity

# Function from vectors (m, width), a count and allowed positions in the KB, (positions,) bool or
# None for all, to the nearest of each vector, (m, count).
Search = Callable[[np.ndarray, int, np.ndarray | None], TopK]


@dataclass(frozen=True)
class AllowedEntities:
    """Entities that each mention may be linked to. They depend on the labels of the ``m`` mentions.

    label_numbers: (m,) int64, the number of each mention's label.
    masks: (labels, positions) bool, whether an entity may be linked to mentions of a label.
    """

    label_numbers: np.ndarray
    masks: np.ndarray

    def take(self, mentions: np.ndarray) -> "AllowedEntities":
        """Allowed entities of some of the mentions."""
        return AllowedEntities(self.label_numbers[mentions], self.masks)

    @classmethod
    def all_but(
        cls, left_out: np.ndarray, count: int, allowed: Optional["AllowedEntities"]
    ) -> "AllowedEntities":
        """The allowed entities of ``count`` mentions without some of them.

        left_out: (positions,) bool.
        allowed: None for all.
        """
        if allowed is None:
            return cls(np.zeros(count, dtype=np.int64), ~left_out[None])
        return cls(allowed.label_numbers, allowed.masks & ~left_out)

    def allows(self, mention: int, entity: int) -> bool:
        """Return whether a mention may be linked to an entity."""
        masks = self.masks[self.label_numbers[mention]]
        return entity < len(masks) and bool(masks[entity])

    def restrict(self, entities: np.ndarray) -> np.ndarray:
        """Replace entities (m, c) that are not allowed by -1.

        Entities are int64 positions in the knowledge base.
        """
        # A name may be of an entity that another program has added since the masks were made.
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

    def nearest(
        self,
        vectors: np.ndarray,
        count: int,
        allowed: AllowedEntities | None = None,
        named: np.ndarray | None = None,
    ) -> TopK:
        """The nearest entities of each mention, (m, count).

        vectors: (m, width) float32, prepared.
        allowed: Which entities each mention may be linked to; None for all.
        named: (m, c) int64 entities with the names of mentions without a vector, -1 for none. They
            are the result for these, as if the vector were theirs.
        """
        nearest = search_by_label(self._search, vectors, count, allowed)
        nearest = nearest.where(has_vector(vectors)[:, None])
        if named is None:
            return nearest
        if allowed is not None:
            named = allowed.restrict(named)
        by_name = self._of_names(named, vectors.shape[1]).first(count)
        unreadable = np.flatnonzero(~has_vector(vectors))
        nearest.ids[unreadable, : by_name.width] = by_name.ids[unreadable]
        nearest.scores[unreadable, : by_name.width] = by_name.scores[unreadable]
        return nearest

    def _search(self, vectors: np.ndarray, count: int, allowed: np.ndarray | None) -> TopK:
        usable = self._usable
        if allowed is not None:
            usable = allowed[self.owners] & (self.owners >= 0)
        rows = self.index.search(vectors, count * self.oversampling, usable)
        return entities_of_rows(rows, self.owners, count)

    def _of_names(self, named: np.ndarray, width: int) -> TopK:
        """Entities (m, c), scored by their first rows' self-similarity; -1 for none."""
        wanted = np.unique(named)
        rows = np.flatnonzero(np.isin(self.owners, wanted[wanted >= 0]))
        owners, first = np.unique(self.owners[rows], return_index=True)
        vectors = np.zeros((len(wanted), width), dtype=np.float32)
        if len(rows):
            prepared = self.similarity.prepare(self.rows.take(rows[first]))
            vectors[np.searchsorted(wanted, owners)] = prepared
        scores = self.similarity.of_equals(vectors)[np.searchsorted(wanted, named)]
        scores = np.where(named >= 0, scores, np.float32(-np.inf))
        order = np.argsort(-scores, axis=1, kind="stable")
        return TopK(
            np.take_along_axis(named, order, axis=1), np.take_along_axis(scores, order, axis=1)
        )

    def similarity_of(self, vector: np.ndarray, entity: int) -> float:
        """Similarity of a vector to an entity's nearest row. The vector is prepared; -inf
        without a row.
        """
        rows = np.flatnonzero(self.owners == entity)
        if not len(rows):
            return -np.inf
        right = self.similarity.prepare(self.rows.take(rows))
        return float(self.similarity.paired(vector[None], right[None]).max())


def search_by_label(
    search: Search, vectors: np.ndarray, count: int, allowed: AllowedEntities | None
) -> TopK:
    """Search per label, or once if everything is allowed."""
    if allowed is None:
        return search(vectors, count, None)
    result = TopK.empty(len(vectors), count)
    for label in np.unique(allowed.label_numbers):
        mentions = np.flatnonzero(allowed.label_numbers == label)
        nearest = search(vectors[mentions], count, allowed.masks[label])
        result.ids[mentions], result.scores[mentions] = nearest.ids, nearest.scores
    return result


def entities_of_rows(rows: TopK, owners: np.ndarray, count: int) -> TopK:
    """The entities that own rows, with their best rows: (m, count), each once.

    Entities with equal scores come in the order of their rows.

    rows: Rows of the knowledge base.
    owners: (rows,) int64, the entity of each row.
    """
    valid = rows.valid
    entities = owners[rows.ids[valid]]
    places = first_of_each(np.nonzero(valid)[0], entities, len(rows), count)
    return TopK(take_or(entities, places, -1), take_or(rows.scores[valid], places, -np.inf))
