"""The road turned round: mentions of a batch -> positives, negatives, loss, gradients."""

import time
from typing import Tuple

import numpy as np
from thinc.api import Model

from .cache import EmbeddingCache
from .clock import Clock
from .losses import Loss
from .negatives import Negatives
from .positives import Positives
from .refresh import Refresh
from .step import Batch, train_step
from .table import GoldTable


class Trainer:
    """Chooses what a batch learns from, and keeps the cache it chooses on in good order.

    refresh: When the cache's vectors are renewed.
    clock: Is told how long each step takes.
    seen: Mentions trained on since the last refresh.
    """

    def __init__(
        self,
        model: Model,
        table: GoldTable,
        cache: EmbeddingCache,
        positives: Positives,
        negatives: Negatives,
        loss: Loss,
        refresh: Refresh,
        clock: Clock,
    ):
        self.model = model
        self.table = table
        self.cache = cache
        self.positives = positives
        self.negatives = negatives
        self.loss = loss
        self.refresh = refresh
        self.clock = clock
        self.seen = 0
        self._in_epoch = int((table.cluster >= 0).sum())

    @property
    def refresh_due(self) -> bool:
        """Whether it is time to bring the vectors in KB and store up to date."""
        return self.refresh.is_due(self.seen, self._in_epoch)

    def refreshed(self) -> None:
        """Tell the trainer that the vectors in KB and store are new."""
        self.cache.reload()
        self.seen = 0

    def step(self, mentions: np.ndarray) -> Tuple[float, int]:
        """Gradients for a batch of stored mentions.

        mentions: (b,) int64 rows in the store.
        RETURNS: the mean loss, and the number of mentions that had something to learn from.
        """
        mentions = np.unique(mentions[self.table.cluster[mentions] >= 0])
        self.seen += len(mentions)
        if not len(mentions):
            return 0.0, 0
        start = time.perf_counter()
        positive = self.positives(mentions, self.table, self.cache)
        learns = (positive >= 0).any(axis=1)
        mentions, positive = mentions[learns], positive[learns]
        if not len(mentions):
            return 0.0, 0
        negative = self.negatives(mentions, self.table, self.cache)
        chosen = time.perf_counter()
        loss, encoded = train_step(
            self.model,
            Batch(mentions + self.table.texts, positive, negative),
            self.cache.text_sequences,
            self.cache.store.windows,
            self.cache.similarity,
            self.loss,
        )
        if self.refresh.on_the_fly:
            self.cache.update_texts(encoded.texts, encoded.text_vectors)
            self.cache.update_mentions(encoded.mentions, encoded.mention_vectors)
        self.clock.add(chosen - start, time.perf_counter() - chosen)
        return loss, len(mentions)
