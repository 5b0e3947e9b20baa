"""The search for the neighbours of mentions: entities, exemplars, mentions of the same document."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..base.arrays import TopK, at_columns, first_columns, has_vector, take_or
from ..kb.vectors import VectorRows
from ..mentions.record import MentionBatch
from .index.protocol import Index
from .mention_search import nearest_in_document
from .neighbours import AllowedEntities, Neighbours
from .similarity import Similarity

# Exemplars that are searched at first, for each entity wanted; an entity may have many.
EXEMPLARS_PER_ENTITY = 4
# Exemplars of a mention that are searched at most, where few entities have nearly all of them.
MAX_SEARCHED = 4096

# Function from vectors (m, width), a count and allowed positions in the KB, (positions,) bool or
# None for all, to the nearest of each vector, (m, count).
Search = Callable[[np.ndarray, int, np.ndarray | None], TopK]


class EntitySearch:
    """Searches the knowledge base's rows for entities.

    rows: The knowledge base's vectors, with the entity of each.
    index: Built over the rows.
    oversampling: Rows that are searched per entity, since an entity may have many.
    """

    def __init__(
        self,
        rows: VectorRows,
        index: Index,
        similarity: Similarity,
        oversampling: int = 3,
    ):
        self.rows = rows
        self.owners = rows.owners
        self.index = index
        self.similarity = similarity
        usable = rows.owners >= 0
        self._usable = None if usable.all() else usable
        # Where every entity has one row, one row per entity is enough.
        most_rows = int(np.bincount(rows.owners[usable]).max(initial=1))
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
        nearest.put(unreadable, by_name.take(unreadable))
        return nearest

    def _search(
        self, vectors: np.ndarray, count: int, allowed: np.ndarray | None
    ) -> TopK:
        usable = self._usable
        if allowed is not None:
            usable = allowed[self.owners] & (self.owners >= 0)
        rows = self.index.search(vectors, count * self.oversampling, usable)
        return entities_of_rows(rows, self.owners, count)

    def _of_names(self, named: np.ndarray, width: int) -> TopK:
        """Entities (m, c), scored by their first rows' self-similarity; -1 for none."""
        distinct = np.unique(named)
        rows = np.flatnonzero(np.isin(self.owners, distinct[distinct >= 0]))
        owners, first = np.unique(self.owners[rows], return_index=True)
        vectors = np.zeros((len(distinct), width), dtype=np.float32)
        if len(rows):
            prepared = self.similarity.prepare(self.rows.take(rows[first]))
            vectors[np.searchsorted(distinct, owners)] = prepared
        scores = self.similarity.of_equals(vectors)[np.searchsorted(distinct, named)]
        scores = np.where(named >= 0, scores, np.float32(-np.inf))
        order = np.argsort(-scores, axis=1, kind="stable")
        return TopK(
            np.take_along_axis(named, order, axis=1),
            np.take_along_axis(scores, order, axis=1),
        )

    def similarity_of(self, vector: np.ndarray, entity: int) -> float:
        """Similarity of a prepared vector to an entity's nearest row; -inf without a row."""
        rows = np.flatnonzero(self.owners == entity)
        if not len(rows):
            return -np.inf
        right = self.similarity.prepare(self.rows.take(rows))
        return float(self.similarity.paired(vector[None], right[None]).max())


@dataclass(frozen=True)
class Retriever:
    """Searches knowledge base, exemplars and the document's mentions.

    entities: The search over the knowledge base.
    exemplar_index: An index over the vectors of ``n`` exemplars.
    exemplar_rows: (n,) int64, the row of each of them in the exemplar store.
    exemplar_entities: (n,) int64, the entity that each of them is labelled with.
    n_exemplar_entities: How many entities are searched by their exemplars, see
        ``RetrieverSettings``.
    """

    entities: EntitySearch
    exemplar_index: Index
    exemplar_rows: np.ndarray
    exemplar_entities: np.ndarray
    similarity: Similarity
    n_exemplar_entities: int = 0

    def neighbours(
        self,
        batch: MentionBatch,
        n_entities: int,
        n_exemplars: int,
        n_mentions: int,
        allowed: AllowedEntities | None = None,
        named: np.ndarray | None = None,
    ) -> Neighbours:
        """The neighbours of encoded mentions.

        n_exemplars: The number of exemplars of a mention, whatever their entities are. With 0,
            none are searched at all.
        allowed: Which entities each mention may be linked to; None for all. Exemplars of other
            entities are left out.
        named: (m, c) int64 entities with the names of mentions without a vector, -1 for none.
        """
        vectors = batch.encoded
        exemplars, owners = self.exemplars(vectors, n_exemplars, allowed)
        return Neighbours(
            self.entities.nearest(vectors, n_entities, allowed, named),
            exemplars,
            nearest_in_document(vectors, batch.documents, n_mentions, self.similarity),
            owners,
            allowed,
        )

    def exemplars(
        self, vectors: np.ndarray, count: int, allowed: AllowedEntities | None
    ) -> tuple[TopK, np.ndarray]:
        """The nearest exemplars. Rows of the exemplar store, and the entity of each, -1 for none.

        vectors: (m, width) float32, prepared.
        allowed: As in ``neighbours``.
        """
        nearest = self._nearest_exemplars(vectors, count, allowed)
        rows = take_or(self.exemplar_rows, nearest.ids, -1)
        owners = take_or(self.exemplar_entities, nearest.ids, -1)
        return TopK(rows, nearest.scores), owners

    def _nearest_exemplars(
        self, vectors: np.ndarray, count: int, allowed: AllowedEntities | None
    ) -> TopK:
        """Rows of the exemplar index."""

        def search(
            vectors: np.ndarray, count: int, allowed: np.ndarray | None
        ) -> TopK:
            usable = None if allowed is None else allowed[self.exemplar_entities]
            return self.exemplar_index.search(vectors, count, usable)

        count = min(count, len(self.exemplar_rows))
        if count and self.n_exemplar_entities:
            nearest = self._with_further_entities(search, vectors, count, allowed)
        else:
            nearest = search_by_label(search, vectors, count, allowed)
        return nearest.where(has_vector(vectors)[:, None])

    def _with_further_entities(
        self,
        search: Search,
        vectors: np.ndarray,
        count: int,
        allowed: AllowedEntities | None,
    ) -> TopK:
        """Add the nearest exemplar of each further entity, in up to ``MAX_SEARCHED`` exemplars."""
        total = len(self.exemplar_rows)
        n_wanted = self.n_exemplar_entities
        tables = [TopK.empty(0)]
        open_mentions = np.arange(len(vectors))
        numbers = [open_mentions[:0]]
        wide = min(max(count, EXEMPLARS_PER_ENTITY * n_wanted), total)
        while len(open_mentions):
            within = None if allowed is None else allowed.take(open_mentions)
            nearest = search_by_label(search, vectors[open_mentions], wide, within)
            owners = take_or(self.exemplar_entities, nearest.ids, -1)
            chosen, n_entities = first_entities(owners, count, n_wanted)
            last = wide >= min(total, MAX_SEARCHED)
            done = (n_entities >= n_wanted) | ~nearest.valid[:, -1] | last
            tables.append(nearest.where(chosen).take(done).first(count + n_wanted))
            numbers.append(open_mentions[done])
            open_mentions = open_mentions[~done]
            wide = min(4 * wide, total, MAX_SEARCHED)
        order = np.argsort(np.concatenate(numbers), kind="stable")
        return TopK.concat(tables).take(order)


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
        result.put(mentions, nearest)
    return result


def entities_of_rows(rows: TopK, owners: np.ndarray, count: int) -> TopK:
    """The entities that own rows, with their best rows: (m, count), each once.

    Entities with equal scores come in the order of their rows.

    rows: Rows of the knowledge base.
    owners: (rows,) int64, the entity of each row.
    """
    entities = take_or(owners, rows.ids, -1)
    columns = first_columns(entities, count)
    return TopK(
        at_columns(entities, columns, -1), at_columns(rows.scores, columns, -np.inf)
    )


def first_entities(
    owners: np.ndarray, count: int, n_entities: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mark each entity's first exemplar, for the first entities.

    owners: (m, k) int64, the entity of each exemplar, -1 for none.
    count: The first exemplars are taken in any case.
    RETURNS: (m, k) bool, and the number of entities of each mention, (m,) int64.
    """
    columns = first_columns(owners, n_entities)
    chosen = (owners >= 0) & (np.arange(owners.shape[1]) < count)
    chosen[np.nonzero(columns >= 0)[0], columns[columns >= 0]] = True
    return chosen, (columns >= 0).sum(axis=1)
