"""Negatives that combine or limit other negatives."""

from dataclasses import dataclass

import numpy as np
from spacy.util import registry

from ..settings import check_positive
from .cache import EmbeddingCache
from .negatives import Negatives
from .sampling import random_generator
from .table import GoldTable


# paper: MOLEMAN
@registry.misc("spacy-arbo-el.BothNegatives.v1")
@dataclass(frozen=True)
class BothNegatives:
    """Two kinds of negatives at once, such as those of the batch and hard ones (MOLEMAN, §3.2.2)::

        [components.arbo_linker.objective.negatives]
        @misc = "spacy-arbo-el.BothNegatives.v1"

        [components.arbo_linker.objective.negatives.first]
        @misc = "spacy-arbo-el.InBatchMentionNegatives.v1"

        [components.arbo_linker.objective.negatives.second]
        @misc = "spacy-arbo-el.HardNegatives.v1"
        mention_share = 1.0

    A negative of both kinds counts once.

    first: Chooses negatives.
    second: Chooses more.
    """

    first: Negatives
    second: Negatives

    def __call__(self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        first = self.first(queries, table, cache)
        second = self.second(queries, table, cache)
        repeated = (second[:, :, None] == first[:, None, :]).any(axis=2)
        return np.concatenate([first, np.where(repeated, -1, second)], axis=1)


# paper: MOLEMAN
@registry.misc("spacy-arbo-el.NegativesByFrequency.v1")
@dataclass(frozen=True)
class NegativesByFrequency:
    """Negatives that leave out mentions of entities which would be negatives too often.

    An entity is a negative at most ``ratio`` times as often as it is a positive (MOLEMAN, §3.2.2),
    so that rare entities are not only pushed away::

        [components.arbo_linker.objective.negatives]
        @misc = "spacy-arbo-el.NegativesByFrequency.v1"
        ratio = 10.0

        [components.arbo_linker.objective.negatives.negatives]
        @misc = "spacy-arbo-el.HardNegatives.v1"
        mention_share = 1.0

    This holds on average: in a step, an entity may be a negative ``ratio * its mentions * the
    step's share of all mentions`` times. What is over a whole number is drawn from NumPy's global
    random state. Texts of entities are not limited.

    negatives: Chooses them, the hardest first.
    ratio: The most times that an entity is a negative, per time that it is a positive.
    """

    negatives: Negatives
    ratio: float = 10.0

    def __post_init__(self) -> None:
        check_positive("negatives.ratio", self.ratio)

    def __call__(self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        nodes = self.negatives(queries, table, cache)
        frequency = table.cluster_sizes
        mean = self.ratio * frequency * (len(queries) / max(table.n_labelled, 1))
        whole = np.floor(mean).astype(np.int64)
        allowed = whole + (random_generator().random(len(mean)) < mean - whole)
        by_column = nodes.T.flatten()
        mentions = np.flatnonzero((by_column >= 0) & ~table.is_text(by_column))
        cluster = table.cluster[by_column[mentions] - table.n_texts]
        order = np.argsort(cluster, kind="stable")
        starts = np.searchsorted(cluster[order], cluster[order])
        is_over = np.arange(len(order)) - starts >= allowed[cluster[order]]
        by_column[mentions[order[is_over]]] = -1
        return by_column.reshape(nodes.T.shape).T
