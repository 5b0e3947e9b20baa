"""Nodes that queries of a step should avoid."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from spacy.util import registry

from ..base.arrays import first_of_each, take_or
from ..base.settings import check_count, check_share
from ..retrieval.index.exact import Forbid, forbid_mask, forbid_pairs, nearest
from .cache import EmbeddingCache
from .positives import gold_texts, mentions_of
from .table import GoldTable

# (queries (q,), table, cache) -> (q, k) int64 nodes, -1 for none; queries are nodes
Negatives = Callable[[np.ndarray, GoldTable, EmbeddingCache], np.ndarray]

# Texts that are searched for each entity wanted: several may be of one entity.
TEXTS_PER_ENTITY = 4


@registry.misc("spacy-arbo-el.HardNegatives.v1")
@dataclass(frozen=True)
class HardNegatives:
    """Most similar wrong entities and mentions (paper, §2.3). Vectors are cached ones.

    The default. Half of each is the paper's choice; ``mention_share = 0.0`` gives its k-NN
    negatives baseline, and suits queries that are names::

        [components.arbo_linker.objective.negatives]
        @misc = "spacy-arbo-el.HardNegatives.v1"
        k = 10
        mention_share = 0.5

    k: The number of negatives per query.
    mention_share: The share of mentions among them, from 0 to 1; the others are entities.
    """

    k: int = 10
    mention_share: float = 0.5

    def __post_init__(self) -> None:
        check_count("negatives.k", self.k)
        check_share("negatives.mention_share", self.mention_share)

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        n_mentions = int(round(self.k * self.mention_share))
        entities = self._entities(queries, table, cache, self.k - n_mentions)
        mentions = self._mentions(queries, table, cache, n_mentions)
        return np.concatenate([entities, mentions], axis=1)

    def _entities(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache, count: int
    ) -> np.ndarray:
        """Nearest text of each nearest wrong entity: (b, count)."""
        forbidden = forbid_pairs(*table.text_pairs(queries))
        vectors = cache.vectors(queries)
        metric = cache.similarity.metric
        k = count * TEXTS_PER_ENTITY
        texts = nearest(vectors, cache.device_texts, k, metric, forbidden)
        flat = texts.ids[texts.valid]
        row = np.nonzero(texts.valid)[0]
        places = first_of_each(row, table.text_entity[flat], len(texts), count)
        return take_or(flat, places, -1)

    def _mentions(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache, count: int
    ) -> np.ndarray:
        """The nodes of the nearest wrong mentions, (b, count)."""
        # Mentions without gold ids could be of any entity.
        forbidden = _both(
            forbid_pairs(*table.mention_pairs(queries)), forbid_mask(table.cluster < 0)
        )
        vectors = cache.vectors(queries)
        metric = cache.similarity.metric
        wrong_mentions = nearest(
            vectors, cache.device_mentions, count, metric, forbidden
        )
        wrong_mentions = wrong_mentions.resized(count)
        return np.where(wrong_mentions.valid, wrong_mentions.ids + table.n_texts, -1)


def _both(first: Forbid, second: Forbid) -> Forbid:
    def forbid(scores: Any, start: int) -> None:
        first(scores, start)
        second(scores, start)

    return forbid


@registry.misc("spacy-arbo-el.InBatchNegatives.v1")
@dataclass(frozen=True)
class InBatchNegatives:
    """Gold entities of the step's other queries, the baseline of the paper's §3.2.

    It needs no search, and large batches. Hard negatives train better encoders::

        [components.arbo_linker.objective.negatives]
        @misc = "spacy-arbo-el.InBatchNegatives.v1"

    A query's own entities are left out for it, and no text occurs twice. A query that is a name
    gives itself. The number of negatives is the number of different texts.
    """

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        is_text = table.is_text(queries)
        gold = gold_texts(queries[~is_text] - table.n_texts, table, cache)
        texts = np.unique(np.concatenate([queries[is_text], gold[gold >= 0]]))
        nodes = np.tile(texts, (len(queries), 1))
        row, own_text = table.text_pairs(queries)
        column = np.searchsorted(texts, own_text)
        in_batch = column < len(texts)
        in_batch[in_batch] = texts[column[in_batch]] == own_text[in_batch]
        nodes[row[in_batch], column[in_batch]] = -1
        return nodes


@registry.misc("spacy-arbo-el.InBatchMentionNegatives.v1")
@dataclass(frozen=True)
class InBatchMentionNegatives:
    """The step's mentions of other entities (BioCoM, §3.2).

    It needs no search and no texts of entities. Use it for linking by contexts alone::

        [components.arbo_linker.objective.negatives]
        @misc = "spacy-arbo-el.InBatchMentionNegatives.v1"
    """

    def __call__(
        self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache
    ) -> np.ndarray:
        return np.where(table.same_entity(mentions_of(queries, table)), -1, queries)
