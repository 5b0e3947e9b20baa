"""Cached vectors of all texts and mentions: what positives and negatives are chosen on."""

from typing import Callable

import numpy as np

from ..encoders.sequences import Sequences
from ..kb.knowledge_base import ArboKB
from ..retrieval.exemplars import ExemplarStore
from ..retrieval.similarity import Similarity


class EmbeddingCache:
    """Prepared vectors of the KB's texts and of the stored mentions, as nodes of ``GoldTable``.

    The raw vectors live in the KB and in the store, so what a refresh has encoded also serves
    inference, and nothing is encoded twice.
    """

    def __init__(
        self, kb: ArboKB, store: ExemplarStore, text_sequences: Sequences, similarity: Similarity
    ):
        self.kb = kb
        self.store = store
        self.text_sequences = text_sequences
        self.similarity = similarity
        self.reload()

    @property
    def size(self) -> int:
        return len(self.text_sequences) + len(self.store)

    def reload(self) -> None:
        """Take over vectors that were encoded elsewhere."""
        self.texts = np.array(self.similarity.prepare(self.kb.rows.vectors))
        self.mentions = np.array(self.similarity.prepare(self.store.vectors))

    def refresh(
        self,
        encode_texts: Callable[[Sequences], np.ndarray],
        encode_mentions: Callable[[Sequences], np.ndarray],
    ) -> None:
        """Encode everything again."""
        if len(self.text_sequences):
            self.kb.rows.vectors = encode_texts(self.text_sequences)
        if len(self.store):
            self.store.vectors = encode_mentions(self.store.windows)
        self.reload()

    def update_texts(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Put in what a batch has just encoded; vectors (n, width) raw."""
        self.kb.rows.vectors[rows] = vectors
        self.texts[rows] = self.similarity.prepare(vectors)

    def update_mentions(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        self.store.vectors[rows] = vectors
        self.mentions[rows] = self.similarity.prepare(vectors)
