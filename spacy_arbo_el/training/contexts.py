"""Training of contexts: the text around a mention approaches the description of its entity."""

from dataclasses import dataclass

import numpy as np
from spacy.util import registry

from ..base.settings import check_count, check_positive
from ..encoders.dual import DualEncoder
from ..encoders.inputs import SpanInputs
from ..kb.knowledge_base import ArboKB
from ..ranking.contexts import CONTEXT_PIECES, DESCRIPTION_PIECES, description_text
from .cache import EmbeddingCache
from .losses import Loss
from .negatives import HardNegatives
from .step import Batch
from .table import GoldTable


@dataclass(frozen=True)
class ContextBatch:
    """Contexts and descriptions of a step.

    batch: Contexts as queries and descriptions as targets. The nodes are first the descriptions,
        then the contexts.
    contexts: A passage for each mention.
    descriptions: A passage for each entity.
    """

    batch: Batch
    contexts: SpanInputs
    descriptions: SpanInputs


@registry.misc("spacy-arbo-el.ContextObjective.v1")
@dataclass(frozen=True)
class ContextObjective:
    """Contexts of mentions against descriptions of entities.

    Use it where entities have descriptions and share names, beside an objective of names::

        [components.arbo_linker.objective.contexts]
        @misc = "spacy-arbo-el.ContextObjective.v1"
        namesakes = 3

        [components.arbo_linker.objective.contexts.loss]
        @losses = "spacy-arbo-el.SoftmaxPositiveNegative.v1"

    The reranker compares the same texts, each encoded as a whole. Mentions whose entity has no
    description are left out.

    loss: The loss over the similarities of a context to the descriptions of the step.
    namesakes: The number of wrong entities with the nearest names whose descriptions are read for
        each mention. Those of all mentions of the step are targets of each of them.
    weight: What the mean loss is multiplied by, beside that of names.
    """

    loss: Loss
    namesakes: int = 3
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_count("objective.contexts.namesakes", self.namesakes)
        check_positive("objective.contexts.weight", self.weight)

    def read(
        self,
        mentions: np.ndarray,
        table: GoldTable,
        cache: EmbeddingCache,
        kb: ArboKB,
        encoder: DualEncoder,
    ) -> ContextBatch | None:
        """Read the contexts of mentions, with the descriptions that they are compared with.

        mentions: (b,) int64, their rows in the exemplar store.
        table: The gold labels.
        cache: The vectors of names, which find the namesakes.
        kb: The knowledge base.
        encoder: Reads whole texts.
        RETURNS: None where no mention has an entity with a description.
        """
        near = HardNegatives(self.namesakes, 0.0)(mentions + table.n_texts, table, cache)
        gold = table.mention_entities[mentions]
        wanted = np.union1d(gold.indices, table.text_entity[near[near >= 0]])
        found = kb.entities.at_all(wanted.tolist())
        described = [position for position in wanted.tolist() if found[position].description]
        own = gold[:, described].toarray() > 0
        has_positive = own.any(axis=1)
        mentions = mentions[has_positive]
        own = own[has_positive]
        if not len(mentions):
            return None
        columns = np.tile(np.arange(len(described)), (len(mentions), 1))
        batch = Batch(
            np.arange(len(mentions)) + len(described),
            np.where(own, columns, -1),
            np.where(own, -1, columns),
        )
        contexts = [table.records[row].passage for row in mentions.tolist()]
        texts = [description_text(found[position]) for position in described]
        return ContextBatch(
            batch,
            encoder.read_passages("mention", contexts, CONTEXT_PIECES),
            encoder.read_passages("entity", texts, DESCRIPTION_PIECES),
        )
