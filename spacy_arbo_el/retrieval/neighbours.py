"""Vectors of mentions -> their neighbours: entities, exemplars, mentions of the same document."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

import numpy as np
from numba import njit

from .index import FlatIndex, Index
from .similarity import Similarity

if TYPE_CHECKING:
    from .candidates import Candidates


@dataclass(frozen=True)
class Neighbours:
    """What is near each of ``m`` mentions, nearest first; -1 and -inf fill up the rows.

    document: (m,) int64, which document each mention stands in.
    entities, entity_similarity: (m, c) int64 positions in the KB and float32 similarities.
    exemplars, exemplar_similarity: (m, k) int64 rows in the store and float32.
    exemplar_entity: (m, k) int64, the entity each of these exemplars is labelled with.
    candidates: All that speaks for the likeliest entities, where a lexicon was asked for.
    mentions, mention_similarity: (m, j) int64 and float32, other mentions, of the same document
        unless all documents are linked together.
    """

    document: np.ndarray
    entities: np.ndarray
    entity_similarity: np.ndarray
    exemplars: np.ndarray
    exemplar_similarity: np.ndarray
    exemplar_entity: np.ndarray
    mentions: np.ndarray
    mention_similarity: np.ndarray
    candidates: Optional["Candidates"] = None

    def __len__(self) -> int:
        return len(self.document)


class Retriever:
    """Searches the KB's texts, the exemplars and the document's own mentions.

    owners: (rows,) int64, the entity of each row of the KB's vectors, -1 for rows that don't count.
    text_index, exemplar_index: Indexes over prepared vectors.
    exemplar_rows, exemplar_entity: (n,) int64, for each vector of the exemplar index its row in
        the store and the entity it is labelled with.
    oversampling: Texts searched for each entity wanted, since an entity may have many.
    """

    def __init__(
        self,
        owners: np.ndarray,
        text_index: Index,
        exemplar_index: Index,
        exemplar_rows: np.ndarray,
        exemplar_entity: np.ndarray,
        similarity: Similarity,
        oversampling: int = 3,
    ):
        self.owners = owners
        self.text_index = text_index
        self.exemplar_index = exemplar_index
        self.exemplar_rows = exemplar_rows
        self.exemplar_entity = exemplar_entity
        self.similarity = similarity
        counted = owners >= 0
        self._counted = None if counted.all() else counted
        # An entity has about as many rows as these; where none has two, none is found twice.
        most = int(np.bincount(owners[counted]).max(initial=1))
        self.oversampling = min(oversampling, most)

    def neighbours(
        self,
        vectors: np.ndarray,
        document: np.ndarray,
        entities: int,
        exemplars: int,
        mentions: int,
        across: bool = False,
    ) -> Neighbours:
        """The neighbours of mentions.

        vectors: (m, width) float32, prepared.
        document: (m,) int64, ascending: mentions of a document stand together.
        entities, exemplars, mentions: How many of each to find.
        across: Whether mentions of other documents count as neighbours too.
        """
        others = (
            nearest_in_corpus(vectors, mentions, self.similarity)
            if across
            else nearest_in_document(vectors, document, mentions, self.similarity)
        )
        return Neighbours(
            document,
            *self._nearest_entities(vectors, entities),
            *self._nearest_exemplars(vectors, exemplars),
            *others,
        )

    def _nearest_entities(self, vectors: np.ndarray, count: int):
        similarities, rows = self.text_index.search(
            vectors, count * self.oversampling, self._counted
        )
        return best_of_each(self.owners, similarities, rows, count)

    def _nearest_exemplars(self, vectors: np.ndarray, count: int):
        similarities, found = self.exemplar_index.search(vectors, count)
        return self.exemplar_rows[found], similarities, self.exemplar_entity[found]


def best_of_each(owners: np.ndarray, similarities: np.ndarray, found: np.ndarray, count: int):
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


def nearest_in_document(
    vectors: np.ndarray, document: np.ndarray, count: int, similarity: Similarity
):
    """The nearest other mentions of the same document.

    RETURNS: mentions (m, count) int64 and similarities (m, count) float32.
    """
    found = np.full((len(vectors), count), -1, dtype=np.int64)
    similarities = np.full((len(vectors), count), -np.inf, dtype=np.float32)
    bounds = np.flatnonzero(np.diff(document, prepend=-1, append=-1))
    for start, end in zip(bounds[:-1], bounds[1:]):
        kept = min(count, end - start - 1)
        if kept <= 0:
            continue
        scores = similarity.blocks(vectors[start:end], vectors[start:end])
        np.fill_diagonal(scores, -np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :kept]
        found[start:end, :kept] = order + start
        similarities[start:end, :kept] = np.take_along_axis(scores, order, axis=1)
    return found, similarities


def nearest_in_corpus(vectors: np.ndarray, count: int, similarity: Similarity):
    """The nearest other mentions of any document, in the form of ``nearest_in_document``."""
    similarities, found = FlatIndex(vectors, similarity).search(vectors, count + 1)
    # A mention usually finds itself first, but not where others have the very same vector.
    itself = found == np.arange(len(vectors))[:, None]
    itself[~itself.any(axis=1), -1:] = True
    shape = (len(vectors), max(found.shape[1] - 1, 0))
    return found[~itself].reshape(shape), similarities[~itself].reshape(shape)
