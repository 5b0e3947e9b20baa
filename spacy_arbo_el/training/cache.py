"""Cached vectors of all texts and mentions: what positives and negatives are chosen on."""

import numpy as np
import torch
from thinc.api import get_torch_default_device

from ..encoders.sequences import Sequences
from ..kb.knowledge_base import ArboKB
from ..kb.texts import DistinctTexts
from ..retrieval.exemplars import ExemplarStore
from ..retrieval.similarity import Similarity


class EmbeddingCache:
    """Prepared vectors of the KB's texts and of the stored mentions, as nodes of ``GoldTable``.

    Starts from the vectors of the KB and the store, which a refresh has brought up to date for
    inference too, so that nothing is encoded twice. What a batch encodes on its way goes into
    the cache alone: it was encoded with dropout.

    texts: (r, width) float32. mentions: (n, width) float32.
    device_texts, device_mentions: The same as tensors on thinc's device, for mining.
    distinct: The KB's texts, each once. text_sequences: The same, tokenized.
    """

    def __init__(
        self,
        kb: ArboKB,
        distinct: DistinctTexts,
        store: ExemplarStore,
        text_sequences: Sequences,
        similarity: Similarity,
    ):
        self.kb = kb
        self.distinct = distinct
        self.store = store
        self.text_sequences = text_sequences
        self.similarity = similarity
        self.reload()

    def reload(self) -> None:
        """Take over the vectors of the KB and the store."""
        prepare = self.similarity.prepare
        self.take_over(prepare(self.distinct.vectors(self.kb.rows)), prepare(self.store.vectors))

    def take_over(self, texts: np.ndarray, mentions: np.ndarray) -> None:
        """Start from these vectors, prepared; they are copied."""
        device = get_torch_default_device()
        self.texts, self.mentions = np.array(texts), np.array(mentions)
        # On a CPU these are the very same memory.
        self.device_texts = torch.from_numpy(self.texts).to(device)
        self.device_mentions = torch.from_numpy(self.mentions).to(device)

    def update_texts(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Put in what a batch has just encoded; vectors (n, width) raw."""
        if len(rows):
            self._update(self.texts, self.device_texts, rows, vectors)

    def update_mentions(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Put in what a batch has just encoded; vectors (n, width) raw."""
        self._update(self.mentions, self.device_mentions, rows, vectors)

    def _update(
        self, array: np.ndarray, on_device: torch.Tensor, rows: np.ndarray, vectors: np.ndarray
    ) -> None:
        array[rows] = self.similarity.prepare(vectors)
        if on_device.device.type != "cpu":
            place = torch.from_numpy(rows).to(on_device.device)
            on_device[place] = torch.from_numpy(array[rows]).to(on_device.device)
