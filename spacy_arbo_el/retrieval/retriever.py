"""The neighbours of mentions: entities, exemplars, and mentions of the same document."""

from dataclasses import dataclass
from typing import Optional

import numpy as np

from ..arrays import TopK, has_vector
from ..mentions.batch import MentionBatch
from .entity_search import AllowedEntities, EntitySearch, search_by_label
from .index.protocol import Index
from .mention_search import nearest_in_document
from .neighbours import Neighbours
from .similarity import Similarity


@dataclass(frozen=True)
class Retriever:
    """Searches the knowledge base, the exemplars and the mentions of a document.

    entities: The search over the knowledge base.
    exemplar_index: An index over the vectors of ``n`` exemplars.
    exemplar_rows: (n,) int64, the row of each of them in the exemplar store.
    exemplar_entities: (n,) int64, the entity that each of them is labelled with.
    """

    entities: EntitySearch
    exemplar_index: Index
    exemplar_rows: np.ndarray
    exemplar_entities: np.ndarray
    similarity: Similarity

    def neighbours(
        self,
        batch: MentionBatch,
        n_entities: int,
        n_exemplars: int,
        n_mentions: int,
        allowed: Optional[AllowedEntities] = None,
        named: Optional[np.ndarray] = None,
    ) -> Neighbours:
        """The neighbours of encoded mentions.

        n_entities: The number of entities of a mention.
        n_exemplars: The number of exemplars of a mention.
        n_mentions: The number of other mentions of a mention.
        allowed: Which entities each mention may be linked to; None for all. Exemplars of other
            entities are left out.
        named: (m, c) int64 entities with the mention's name, which must be among the neighbours;
            -1 for none.
        """
        vectors = batch.encoded
        nearest = self._nearest_exemplars(vectors, n_exemplars, allowed)
        valid, rows = nearest.valid, nearest.ids
        return Neighbours(
            self.entities.nearest(vectors, n_entities, allowed, named),
            TopK(np.where(valid, self.exemplar_rows[rows], -1), nearest.scores),
            nearest_in_document(vectors, batch.documents, n_mentions, self.similarity),
            np.where(valid, self.exemplar_entities[rows], -1),
            self.similarity.metric,
        )

    def _nearest_exemplars(
        self, vectors: np.ndarray, count: int, allowed: Optional[AllowedEntities]
    ) -> TopK:
        """Rows of the exemplar index."""

        def search(vectors: np.ndarray, count: int, allowed: Optional[np.ndarray]) -> TopK:
            usable = None if allowed is None else allowed[self.exemplar_entities]
            return self.exemplar_index.search(vectors, count, usable)

        count = min(count, len(self.exemplar_rows))
        nearest = search_by_label(search, vectors, count, allowed)
        return nearest.where(has_vector(vectors)[:, None])
