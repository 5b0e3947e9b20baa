"""Cached vectors of all texts and mentions: what positives and negatives are chosen on."""

import numpy as np

from ..encoders.sequences import Sequences
from ..kb.knowledge_base import ArboKB
from ..retrieval.exemplars import ExemplarStore
from ..retrieval.similarity import Similarity


class EmbeddingCache:
    """Prepared vectors of the KB's texts and of the stored mentions, as nodes of ``GoldTable``.

    Starts from the vectors of the KB and the store, which a refresh has brought up to date for
    inference too, so that nothing is encoded twice. What a batch encodes on its way goes into
    the cache alone: it was encoded with dropout.

    texts: (r, width) float32. mentions: (n, width) float32.
    text_sequences: The KB's texts, tokenized.
    """

    def __init__(
        self, kb: ArboKB, store: ExemplarStore, text_sequences: Sequences, similarity: Similarity
    ):
        self.kb = kb
        self.store = store
        self.text_sequences = text_sequences
        self.similarity = similarity
        self.reload()

    def reload(self) -> None:
        """Take over the vectors of the KB and the store."""
        self.texts = np.array(self.similarity.prepare(self.kb.rows.vectors))
        self.mentions = np.array(self.similarity.prepare(self.store.vectors))

    def update_texts(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Put in what a batch has just encoded; vectors (n, width) raw."""
        if len(rows):
            self.texts[rows] = self.similarity.prepare(vectors)

    def update_mentions(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Put in what a batch has just encoded; vectors (n, width) raw."""
        self.mentions[rows] = self.similarity.prepare(vectors)
