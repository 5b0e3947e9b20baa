"""Cached vectors from which positives and negatives are chosen. They are of all texts and
mentions.
"""

from typing import Any, Protocol

import numpy as np
import torch
from thinc.api import get_torch_default_device

from ..retrieval.similarity import Similarity


class Renumbered(Protocol):
    """Data about mentions and texts that a part of the objective keeps over refreshes."""

    def renumbered(self, mentions: np.ndarray, texts: np.ndarray) -> Any:
        """Return the same for other numbers of mentions and texts.

        mentions, texts: For each new number the one that it had before, -1 for none.
        """
        ...


class EmbeddingCache:
    """Prepared vectors of ``r`` texts and ``n`` mentions, numbered as in ``GoldTable``.

    The cache is filled with the vectors of the datastore, which a refresh has encoded for
    inference as well. Vectors that a training step computes are put into the cache only: they were
    computed with dropout.

    similarity: How vectors are prepared and compared.
    texts: (r, width) float32, prepared.
    mentions: (n, width) float32, prepared.
    refreshes: How often all texts and mentions have been encoded again.
    kept: What parts of the objective keep over refreshes, by a name of theirs.
    """

    def __init__(
        self, similarity: Similarity, texts: np.ndarray, mentions: np.ndarray
    ):
        self.similarity = similarity
        self.refreshes = 0
        self.kept: dict[str, Renumbered] = {}
        self.load(texts, mentions)

    def load(self, texts: np.ndarray, mentions: np.ndarray) -> None:
        """Replace all vectors by raw ones: (r, width) and (n, width) float32."""
        prepare = self.similarity.prepare
        self.texts = np.array(prepare(texts))
        self.mentions = np.array(prepare(mentions))
        self._device_texts: Any = None
        self._device_mentions: Any = None

    @property
    def device_texts(self) -> Any:
        """``texts`` as a tensor on thinc's device."""
        if self._device_texts is None:
            self._device_texts = _on_device(self.texts)
        return self._device_texts

    @property
    def device_mentions(self) -> Any:
        """``mentions`` as a tensor on thinc's device."""
        if self._device_mentions is None:
            self._device_mentions = _on_device(self.mentions)
        return self._device_mentions

    def vectors(self, nodes: np.ndarray) -> np.ndarray:
        """(b, width) float32, the prepared vectors of nodes of ``GoldTable``."""
        is_text = nodes < len(self.texts)
        of_texts = self.texts[nodes[is_text]]
        of_mentions = self.mentions[nodes[~is_text] - len(self.texts)]
        if not len(of_texts) or not len(of_mentions):
            return of_texts if len(of_texts) else of_mentions
        vectors = np.empty((len(nodes), of_texts.shape[1]), dtype=np.float32)
        vectors[is_text] = of_texts
        vectors[~is_text] = of_mentions
        return vectors

    def follow(
        self,
        earlier: "EmbeddingCache",
        texts: np.ndarray,
        mentions: np.ndarray,
        keep: bool,
    ) -> None:
        """Keep the objective's state from an earlier cache.

        texts, mentions: For each row that of the earlier cache, -1 for none.
        keep: Whether vectors are taken over too.
        """
        self.refreshes = earlier.refreshes
        states = earlier.kept.items()
        self.kept = {name: state.renumbered(mentions, texts) for name, state in states}
        if keep:
            self.texts[texts >= 0] = earlier.texts[texts[texts >= 0]]
            self.mentions[mentions >= 0] = earlier.mentions[mentions[mentions >= 0]]

    def update_texts(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Replace vectors of texts by raw ones. (len(rows), width)."""
        self._update(self.texts, self._device_texts, rows, vectors)

    def update_mentions(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        """Replace vectors of mentions by raw ones. (len(rows), width)."""
        self._update(self.mentions, self._device_mentions, rows, vectors)

    def _update(
        self, array: np.ndarray, on_device: Any, rows: np.ndarray, vectors: np.ndarray
    ) -> None:
        if not len(rows):
            return
        array[rows] = self.similarity.prepare(vectors)
        if on_device is not None and on_device.device.type != "cpu":
            indices = torch.from_numpy(rows).to(on_device.device)
            on_device[indices] = torch.from_numpy(array[rows]).to(on_device.device)


def _on_device(array: np.ndarray) -> Any:
    # On a CPU, tensor and array share their memory.
    return torch.from_numpy(array).to(get_torch_default_device())
