"""Neighbours that a search finds for mentions, and the entities that it is limited to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Optional

import numpy as np

from ..base.arrays import Rows, TopK, offsets_of


@dataclass(frozen=True)
class AllowedEntities:
    """Entities that each mention may be linked to. They depend on the labels of the ``m`` mentions.

    label_numbers: (m,) int64, the number of each mention's label.
    masks: (labels, positions) bool, whether an entity may be linked to mentions of a label.
    """

    label_numbers: np.ndarray
    masks: np.ndarray

    def take(self, mentions: np.ndarray) -> "AllowedEntities":
        """Allowed entities of some of the mentions."""
        return AllowedEntities(self.label_numbers[mentions], self.masks)

    @classmethod
    def all_but(
        cls, left_out: np.ndarray, count: int, allowed: Optional["AllowedEntities"]
    ) -> "AllowedEntities":
        """The allowed entities of ``count`` mentions without some of them.

        left_out: (positions,) bool.
        allowed: None for all.
        """
        if allowed is None:
            return cls(np.zeros(count, dtype=np.int64), ~left_out[None])
        return cls(allowed.label_numbers, allowed.masks & ~left_out)

    def allows(self, mention: int, entity: int) -> bool:
        """Return whether a mention may be linked to an entity."""
        masks = self.masks[self.label_numbers[mention]]
        return entity < len(masks) and bool(masks[entity])

    def restrict(self, entities: np.ndarray) -> np.ndarray:
        """Replace entities (m, c), int64 positions, that are not allowed by -1."""
        # A name may be of an entity that another program has added since the masks were made.
        allowed = (entities >= 0) & (entities < self.masks.shape[1])
        labels = np.broadcast_to(self.label_numbers[:, None], entities.shape)
        allowed[allowed] = self.masks[labels[allowed], entities[allowed]]
        return np.where(allowed, entities, -1)


@dataclass(frozen=True)
class Neighbours(Rows):
    """The neighbours of ``m`` mentions: scores are similarities.

    entities: Positions in the knowledge base.
    exemplars: Rows in the exemplar store.
    mentions: Numbers of other mentions in the batch, which ``take`` leaves unchanged. They are of
        the same document, unless a corpus is linked in one graph.
    exemplar_entities: (m, k) int64, the entity that each exemplar is labelled with, -1 for none.
    allowed: The entities that the search was limited to; None for all, and for several batches.
    """

    entities: TopK
    exemplars: TopK
    mentions: TopK
    exemplar_entities: np.ndarray
    allowed: AllowedEntities | None = None

    @classmethod
    def concat(cls, batches: Sequence["Neighbours"]) -> "Neighbours":
        """The mentions of one or more batches, one after the other, numbered on."""
        numbered = []
        for batch, start in zip(batches, offsets_of(list(map(len, batches)))):
            mentions = batch.mentions
            ids = np.where(mentions.valid, mentions.ids + start, -1)
            numbered.append(batch.with_mentions(TopK(ids, mentions.scores)))
        return replace(super().concat(numbered), allowed=None)

    def with_mentions(self, mentions: TopK) -> "Neighbours":
        """The same with other neighbours among the mentions."""
        return replace(self, mentions=mentions)

    def with_exemplars(self, exemplars: TopK, entities: np.ndarray) -> "Neighbours":
        """Replace the exemplars (m, k) and their entities."""
        return replace(self, exemplars=exemplars, exemplar_entities=entities)

    def narrowed(self, entities: int, exemplars: int) -> "Neighbours":
        """Limit the entities and exemplars of each mention."""
        return replace(
            self,
            entities=self.entities.first(entities),
            exemplars=self.exemplars.first(exemplars),
            exemplar_entities=self.exemplar_entities[:, :exemplars],
        )
