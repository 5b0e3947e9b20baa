"""MOLEMAN (FitzGerald and others, 2021): mentions on both sides of a dual encoder.

Exemplars are searched, texts of entities are pseudo-mentions told apart by a token type
(``text_type``), and ``ExemplarVote.v1`` links. Here: the nearest mention as positive, and
negatives of two kinds at once, limited by frequency (§3.2.2).

Other than in the paper, mentions are of one language, a hard negative is limited on average, not
by a count over the corpus, and the encoder is smaller.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.util import registry

from ... import graph
from ...base.settings import check_positive
from ...training.cache import EmbeddingCache
from ...training.negatives import Negatives
from ...training.positives import parents
from ...training.queries import random_generator
from ...training.table import GoldTable


@registry.misc("spacy-arbo-el.NearestMentionPositives.v1")
@dataclass(frozen=True)
class NearestMentionPositives:
    """The entity's most similar other mention, by cached vectors (MOLEMAN, §3.2.2).

    Use it to link by exemplars alone, or with names as pseudo-mentions::

        [components.arbo_linker.objective.positives]
        @misc = "spacy-arbo-el.NearestMentionPositives.v1"
        with_entity = true

    Since the cache follows training, the positive is chosen anew in each step. A mention that is
    the only one of its entity has no positive, unless ``with_entity`` gives it one.

    with_entity: Whether the most similar text of the entity is a second positive.
    """

    with_entity: bool = False

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        return parents(_nearest_mentions, self.with_entity, queries, table, cache)


def _nearest_mentions(
    vectors: np.ndarray, similarity: np.ndarray, offsets: np.ndarray, **kwargs: Any
) -> np.ndarray:
    """``graph.gold_parents_1nn`` without entities: the parent is the nearest gold mention."""
    return graph.gold_parents_1nn(
        vectors, np.full_like(similarity, -np.inf), offsets, **kwargs
    )


@registry.misc("spacy-arbo-el.BothNegatives.v1")
@dataclass(frozen=True)
class BothNegatives:
    """Two kinds of negatives at once. Such as those of the batch and hard ones (MOLEMAN, §3.2.2)::

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

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        first = self.first(queries, table, cache)
        second = self.second(queries, table, cache)
        repeated = (second[:, :, None] == first[:, None, :]).any(axis=2)
        return np.concatenate([first, np.where(repeated, -1, second)], axis=1)


@registry.misc("spacy-arbo-el.NegativesByFrequency.v1")
@dataclass(frozen=True)
class NegativesByFrequency:
    """Negatives without mentions of entities drawn too often.

    An entity is a negative at most ``ratio`` times as often as it is a positive (MOLEMAN, §3.2.2),
    so that rare entities are not only pushed away::

        [components.arbo_linker.objective.negatives]
        @misc = "spacy-arbo-el.NegativesByFrequency.v1"
        ratio = 10.0

        [components.arbo_linker.objective.negatives.negatives]
        @misc = "spacy-arbo-el.HardNegatives.v1"
        mention_share = 1.0

    This holds on average: in a step, an entity may be a negative ``ratio * its mentions * the
    step's share of all mentions`` times. The fraction is drawn from NumPy's global
    random state. Texts of entities are not limited.

    negatives: Chooses them, the hardest first.
    ratio: The most times that an entity is a negative, per time that it is a positive.
    """

    negatives: Negatives
    ratio: float = 10.0

    def __post_init__(self) -> None:
        check_positive("negatives.ratio", self.ratio)

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        nodes = self.negatives(queries, table, cache)
        frequency = table.cluster_sizes
        mean = self.ratio * frequency * (len(queries) / max(table.n_labelled, 1))
        floor = np.floor(mean).astype(np.int64)
        allowed = floor + (random_generator().random(len(mean)) < mean - floor)
        by_column = nodes.T.flatten()
        mentions = np.flatnonzero((by_column >= 0) & ~table.is_text(by_column))
        cluster = table.cluster[by_column[mentions] - table.n_texts]
        order = np.argsort(cluster, kind="stable")
        starts = np.searchsorted(cluster[order], cluster[order])
        is_over = np.arange(len(order)) - starts >= allowed[cluster[order]]
        by_column[mentions[order[is_over]]] = -1
        return by_column.reshape(nodes.T.shape).T
