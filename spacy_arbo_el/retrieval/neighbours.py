"""Neighbours that a search finds for mentions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..base.arrays import TopK, concat_tables
from .entity_search import AllowedEntities


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
    def concat(cls, parts: Sequence["Neighbours"]) -> "Neighbours":
        """The mentions of one or more batches, one after the other."""
        starts = np.cumsum([0, *(len(part) for part in parts)])
        mentions = [
            TopK(np.where(part.mentions.valid, part.mentions.ids + start, -1), part.mentions.scores)
            for part, start in zip(parts, starts)
        ]
        return cls(
            TopK.concat([part.entities for part in parts]),
            TopK.concat([part.exemplars for part in parts]),
            TopK.concat(mentions),
            concat_tables([part.exemplar_entities for part in parts], -1),
            parts[0].metric,
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
