"""The objective of training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from spacy.util import registry

from ..base.errors import Errors
from ..base.settings import check_positive, check_share
from .cache import EmbeddingCache
from .losses import Loss
from .negatives import Negatives
from .positives import Positives
from .queries import MentionQueries, Queries
from .refresh import CacheRefresh
from .step import Batch
from .table import GoldTable


@runtime_checkable
class TrainingObjective(Protocol):
    """A weighted sum of objectives, of at least one.

    terms: The objectives.
    refresh: When texts and mentions are encoded again; None for the defaults.
    """

    @property
    def terms(self) -> Sequence["Objective"]: ...

    @property
    def refresh(self) -> CacheRefresh | None: ...


@registry.misc("spacy-arbo-el.Objective.v1")
@dataclass(frozen=True)
class Objective:
    """Queries, their targets and their loss.

    The defaults of the linker are those of the arborescence paper, §2.3. A config changes single
    parts, for example::

        [components.arbo_linker.objective]
        @misc = "spacy-arbo-el.Objective.v1"

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.ArborescencePositives.v1"
        with_entity = true

    positives: Chooses the targets that a query should become more similar to.
    negatives: Chooses the targets that a query should become less similar to.
    loss: The loss over the similarities to these targets.
    queries: Chooses the queries; None for the mentions of the batch.
    weight: What the mean loss is multiplied by, in a sum of objectives.
    refresh: When texts and mentions are encoded again; None for the defaults. A sum of
        objectives has its own.
    held_out: The share of documents whose mentions the encoder is not trained on. Nor is it on any
        mention of half as many entities.
        ``Calibrate.v1`` fits the ranker on them too: mentions that were trained on are nearer to
        their entities than new ones are. They become exemplars as the others do.
    """

    positives: Positives
    negatives: Negatives
    loss: Loss
    queries: Queries | None = None
    weight: float = 1.0
    refresh: CacheRefresh | None = None
    held_out: float = 0.0

    def __post_init__(self) -> None:
        check_positive("objective.weight", self.weight)
        check_share("objective.held_out", self.held_out)

    @property
    def terms(self) -> Sequence["Objective"]:
        return [self]

    @property
    def chosen_queries(self) -> Queries:
        """Selection of the queries."""
        return self.queries or MentionQueries()

    def targets(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> Batch:
        """Queries with a positive, and their targets: positives and negatives."""
        none = np.zeros((0, 0), dtype=np.int64)
        if not len(queries):
            return Batch(queries, none, none)
        positives = self.positives(queries, table, cache)
        has_positive = (positives >= 0).any(axis=1)
        queries = queries[has_positive]
        positives = positives[has_positive]
        negatives = self.negatives(queries, table, cache) if len(queries) else none
        return Batch(queries, positives, negatives)


@dataclass(frozen=True)
class ObjectiveSum:
    """A sum of objectives. See ``objective_sum``.

    refresh: When texts and mentions are encoded again; None for the defaults.
    """

    terms: Sequence[Objective]
    refresh: CacheRefresh | None = None

    def __post_init__(self) -> None:
        if not self.terms:
            raise Errors.E609()
        for term in self.terms:
            if not isinstance(term, Objective):
                raise Errors.E610(value=type(term).__name__)


@registry.misc("spacy-arbo-el.ObjectiveSum.v1")
def objective_sum(
    *objectives: TrainingObjective, refresh: CacheRefresh | None = None
) -> ObjectiveSum:
    """A weighted sum of objectives, optimized in one step. They are encoded together.

    Use it to train mentions and names at once. The names of the sections are yours::

        [components.arbo_linker.objective]
        @misc = "spacy-arbo-el.ObjectiveSum.v1"

        [components.arbo_linker.objective.*.mentions]
        @misc = "spacy-arbo-el.Objective.v1"

        [components.arbo_linker.objective.*.mentions.positives]
        @misc = "spacy-arbo-el.ArborescencePositives.v1"

        [components.arbo_linker.objective.*.mentions.negatives]
        @misc = "spacy-arbo-el.HardNegatives.v1"

        [components.arbo_linker.objective.*.mentions.loss]
        @losses = "spacy-arbo-el.SoftmaxPositiveNegative.v1"

        [components.arbo_linker.objective.*.names]
        @misc = "spacy-arbo-el.Objective.v1"
        weight = 0.5

        [components.arbo_linker.objective.*.names.queries]
        @misc = "spacy-arbo-el.NameQueries.v1"

        [components.arbo_linker.objective.*.names.positives]
        @misc = "spacy-arbo-el.SynonymPositives.v1"

        [components.arbo_linker.objective.*.names.negatives]
        @misc = "spacy-arbo-el.InBatchNegatives.v1"

        [components.arbo_linker.objective.*.names.loss]
        @losses = "spacy-arbo-el.MultiSimilarity.v1"

    Each objective has its queries, positives, negatives, loss and weight.

    *objectives: The objectives.
    refresh: When texts and mentions are encoded again; None for the defaults.
    """
    if any(objective.refresh is not None for objective in objectives):
        raise Errors.E620()
    terms = tuple(term for objective in objectives for term in objective.terms)
    return ObjectiveSum(terms, refresh)
