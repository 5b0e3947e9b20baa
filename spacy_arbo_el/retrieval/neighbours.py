"""Neighbours that a search finds for mentions, and the entities that it is limited to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Optional

import numpy as np

from ..base.arrays import TopK, concat_tables


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
class Neighbours:
    """The neighbours of ``m`` mentions: scores are similarities.

    entities: Positions in the knowledge base.
    exemplars: Rows in the exemplar store.
    mentions: Numbers of other mentions in the batch. They are of the same document, unless a corpus
        is linked in one graph.
    exemplar_entities: (m, k) int64, the entity that each exemplar is labelled with, -1 for none.
    metric: "ip" where similarities are inner products, "l2" for negative squared distances.
    allowed: The entities that the search was limited to; None for all, and for several batches.
    """

    entities: TopK
    exemplars: TopK
    mentions: TopK
    exemplar_entities: np.ndarray
    metric: str = "ip"
    allowed: AllowedEntities | None = None

    def __len__(self) -> int:
        return len(self.entities)

    @classmethod
    def concat(cls, batches: Sequence["Neighbours"]) -> "Neighbours":
        """The mentions of one or more batches, one after the other."""
        starts = np.cumsum([0, *(len(batch) for batch in batches)])
        mentions = [
            TopK(
                np.where(batch.mentions.valid, batch.mentions.ids + start, -1),
                batch.mentions.scores,
            )
            for batch, start in zip(batches, starts)
        ]
        return cls(
            TopK.concat([batch.entities for batch in batches]),
            TopK.concat([batch.exemplars for batch in batches]),
            TopK.concat(mentions),
            concat_tables([batch.exemplar_entities for batch in batches], -1),
            batches[0].metric,
        )

    def take(self, rows: np.ndarray) -> "Neighbours":
        """The neighbours of the given mentions. Mentions among them keep their numbers."""
        return Neighbours(
            self.entities.take(rows),
            self.exemplars.take(rows),
            self.mentions.take(rows),
            self.exemplar_entities[rows],
            self.metric,
            self.allowed and self.allowed.take(rows),
        )

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

    def within_labels(self, labels: np.ndarray) -> "Neighbours":
        """Keep only neighbouring mentions of the same label. (m,) of any kind."""
        same = labels[self.mentions.ids] == labels[:, None]
        return self.with_mentions(self.mentions.where(same))
