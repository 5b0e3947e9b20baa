"""Vectors of mentions -> their neighbours: entities, exemplars, mentions of the same document."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

import numpy as np

from .entities import EntitySearch, Types, search_by_type
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
    decided: (m,) bool, mentions that a correction has decided: their first exemplar is right.
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
    decided: Optional[np.ndarray] = None

    def __len__(self) -> int:
        return len(self.document)


class Retriever:
    """Searches the KB's texts, the exemplars and the document's own mentions.

    entities: The search over the knowledge base.
    exemplar_index: An index over the exemplars' vectors.
    exemplar_rows, exemplar_entity: (n,) int64, for each vector of the exemplar index its row in
        the store and the entity it is labelled with.
    """

    def __init__(
        self,
        entities: EntitySearch,
        exemplar_index: Index,
        exemplar_rows: np.ndarray,
        exemplar_entity: np.ndarray,
        similarity: Similarity,
    ):
        self.entities = entities
        self.exemplar_index = exemplar_index
        self.exemplar_rows = exemplar_rows
        self.exemplar_entity = exemplar_entity
        self.similarity = similarity

    def neighbours(
        self,
        vectors: np.ndarray,
        document: np.ndarray,
        entities: int,
        exemplars: int,
        mentions: int,
        across: bool = False,
        types: Optional[Types] = None,
        named: Optional[np.ndarray] = None,
    ) -> Neighbours:
        """The neighbours of mentions.

        vectors: (m, width) float32, prepared.
        document: (m,) int64, ascending: mentions of a document stand together.
        entities, exemplars, mentions: How many of each to find.
        across: Whether mentions of other documents count as neighbours too.
        types: Which entities a mention may be linked to, and so which exemplars count.
        named: (m, c) int64 entities that go by a mention's name, -1 for none.
        """
        others = (
            nearest_in_corpus(vectors, mentions, self.similarity)
            if across
            else nearest_in_document(vectors, document, mentions, self.similarity)
        )
        return Neighbours(
            document,
            *self.entities.nearest(vectors, entities, types, named),
            *self._nearest_exemplars(vectors, exemplars, types),
            *others,
        )

    def _nearest_exemplars(self, vectors: np.ndarray, count: int, types: Optional[Types]):
        def search(vectors: np.ndarray, count: int, allowed: Optional[np.ndarray]):
            usable = None if allowed is None else allowed[self.exemplar_entity]
            similarities, found = self.exemplar_index.search(vectors, count, usable)
            return found, similarities

        count = min(count, len(self.exemplar_rows))
        found, similarities = search_by_type(search, vectors, count, types)
        there = found >= 0
        return (
            np.where(there, self.exemplar_rows[found], -1),
            similarities,
            np.where(there, self.exemplar_entity[found], -1),
        )


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
