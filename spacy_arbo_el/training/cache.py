"""Cached vectors of all texts and mentions, on which positives and negatives are chosen."""

from typing import Tuple

import numpy as np
import torch
from thinc.api import get_torch_default_device

from ..retrieval.similarity import Similarity

KeptRows = Tuple[np.ndarray, np.ndarray]


class EmbeddingCache:
    """Prepared vectors of ``r`` texts and ``n`` mentions, numbered as in ``GoldTable``.

    The cache is filled with the vectors of the datastore, which a refresh has encoded for
    inference as well. Vectors that a training step computes are put into the cache only: they were
    computed with dropout.

    similarity: How vectors are prepared and compared.
    texts: (r, width) float32, prepared.
    mentions: (n, width) float32, prepared.
    device_texts: ``texts`` as a tensor on thinc's device.
    device_mentions: ``mentions`` as a tensor on thinc's device.
    """

    def __init__(self, similarity: Similarity, texts: np.ndarray, mentions: np.ndarray):
        self.similarity = similarity
        self.load(texts, mentions)

    def load(self, texts: np.ndarray, mentions: np.ndarray) -> None:
        """Replace all vectors.

        texts: (r, width) float32, raw.
        mentions: (n, width) float32, raw.
        """
        self.load_prepared(self.similarity.prepare(texts), self.similarity.prepare(mentions))

    def load_prepared(self, texts: np.ndarray, mentions: np.ndarray) -> None:
        """Replace all vectors by copies of prepared ones."""
        device = get_torch_default_device()
        self.texts, self.mentions = np.array(texts), np.array(mentions)
        # On a CPU, tensor and array share their memory.
        self.device_texts = torch.from_numpy(self.texts).to(device)
        self.device_mentions = torch.from_numpy(self.mentions).to(device)

    def vectors(self, nodes: np.ndarray) -> np.ndarray:
        """(b, width) float32, the prepared vectors of nodes of ``GoldTable``."""
        is_text = nodes < len(self.texts)
        of_texts = self.texts[nodes[is_text]]
        of_mentions = self.mentions[nodes[~is_text] - len(self.texts)]
        if not len(of_texts) or not len(of_mentions):
            return of_texts if len(of_texts) else of_mentions
        vectors = np.empty((len(nodes), of_texts.shape[1]), dtype=np.float32)
        vectors[is_text], vectors[~is_text] = of_texts, of_mentions
        return vectors

    def keep(self, texts: KeptRows, mentions: KeptRows) -> None:
        """Replace vectors by those of an earlier cache.

        texts, mentions: For each row the row of the earlier cache, -1 for none, and the prepared
            vectors of that.
        """
        arrays = []
        for array, (rows, vectors) in ((self.texts, texts), (self.mentions, mentions)):
            array[rows >= 0] = vectors[rows[rows >= 0]]
            arrays.append(array)
        self.load_prepared(*arrays)

    def update_texts(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Replace the vectors of some texts by raw ones, (len(rows), width)."""
        self._update(self.texts, self.device_texts, rows, vectors)

    def update_mentions(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Replace the vectors of some mentions by raw ones, (len(rows), width)."""
        self._update(self.mentions, self.device_mentions, rows, vectors)

    def _update(
        self, array: np.ndarray, on_device: torch.Tensor, rows: np.ndarray, vectors: np.ndarray
    ) -> None:
        if not len(rows):
            return
        array[rows] = self.similarity.prepare(vectors)
        if on_device.device.type != "cpu":
            indices = torch.from_numpy(rows).to(on_device.device)
            on_device[indices] = torch.from_numpy(array[rows]).to(on_device.device)
