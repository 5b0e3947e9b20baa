"""The road turned round: mentions of a batch -> positives, negatives, loss, gradients."""

from typing import Tuple

import numpy as np
from thinc.api import Model

from .cache import EmbeddingCache
from .losses import Loss
from .negatives import Negatives
from .positives import Positives
from .step import Batch, train_step
from .table import GoldTable


class Trainer:
    """Chooses what a batch learns from, and keeps the cache it chooses on in good order.

    refresh_every: Mentions trained on between two refreshes of the cache; 0 for as many as
        there are with a gold id, once an epoch.
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
        refresh_every: int = 0,
    ):
        self.model = model
        self.table = table
        self.cache = cache
        self.positives = positives
        self.negatives = negatives
        self.loss = loss
        self.refresh_every = refresh_every
        self.seen = 0

    @property
    def refresh_due(self) -> bool:
        """Whether it is time to bring the vectors in KB and store up to date."""
        return self.seen >= (self.refresh_every or int((self.table.cluster >= 0).sum()))

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
        positive = self.positives(mentions, self.table, self.cache)
        learns = (positive >= 0).any(axis=1)
        mentions, positive = mentions[learns], positive[learns]
        if not len(mentions):
            return 0.0, 0
        negative = self.negatives(mentions, self.table, self.cache)
        loss, encoded = train_step(
            self.model,
            Batch(mentions + self.table.texts, positive, negative),
            self.cache.text_sequences,
            self.cache.store.windows,
            self.cache.similarity,
            self.loss,
        )
        self.cache.update_texts(encoded.texts, encoded.text_vectors)
        self.cache.update_mentions(encoded.mentions, encoded.mention_vectors)
        return loss, len(mentions)
