"""Which node each mention of a batch should move towards."""

from typing import Callable

import numpy as np
from spacy.util import registry

from .. import graph
from .cache import EmbeddingCache
from .table import GoldTable

Positives = Callable[[np.ndarray, GoldTable, EmbeddingCache], np.ndarray]


@registry.misc("spacy-arbo-el.ArborescencePositives.v1")
def arborescence_positives(with_entity: bool = False) -> Positives:
    """The mention's parent in the arborescence of its whole gold cluster (paper, §2.3).

    The graph joins all mentions of the cluster with each other and the gold entity with all of
    them; the cluster's entity is, for each mention, the nearest of its texts. The parent is
    thus a text of the entity or another mention.

    with_entity: Give a mention whose parent is another mention its entity as a second
        positive. Not in the paper; it helps linking to entities that have no exemplars.

    RETURNS: Function (mentions (b,), table, cache) -> (b, 1 or 2) int64 nodes, -1 for none.
    """

    def choose(mentions: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        clusters = np.unique(table.cluster[mentions])
        clusters = clusters[clusters >= 0]
        members, bounds = table.members(clusters)
        text, similarity = nearest_gold_texts(members, bounds, table, cache)
        parents = graph.gold_parents(
            cache.mentions[members], similarity, bounds, metric=cache.similarity.metric
        )
        node = np.full(len(table.cluster), -1, dtype=np.int64)
        by_mention = parents >= 0
        node[members[by_mention]] = table.texts + members[parents[by_mention]]
        by_entity = parents == -1
        node[members[by_entity]] = text[by_entity]
        if not with_entity:
            return node[mentions][:, None]
        entity = np.full(len(table.cluster), -1, dtype=np.int64)
        entity[members[~by_entity]] = text[~by_entity]
        return np.stack([node[mentions], entity[mentions]], axis=1)

    return choose


@registry.misc("spacy-arbo-el.EntityPositives.v1")
def entity_positives() -> Positives:
    """The nearest text of the mention's gold entity (the baselines of the paper, §3.2)."""

    def choose(mentions: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        text, _ = nearest_gold_texts(mentions, np.arange(len(mentions) + 1), table, cache)
        return text[:, None]

    return choose


def nearest_gold_texts(
    mentions: np.ndarray, bounds: np.ndarray, table: GoldTable, cache: EmbeddingCache
):
    """The nearest text among those of each mention's gold entities.

    mentions, bounds: Mentions in groups that share their gold ids.
    RETURNS: texts (m,) int64, -1 where no gold id is in the KB, and similarities (m,) float32.
    """
    text = np.full(len(mentions), -1, dtype=np.int64)
    similarity = np.full(len(mentions), -np.inf, dtype=np.float32)
    # A loop over clusters, not mentions: each turn is one matrix product.
    for start, end in zip(bounds[:-1], bounds[1:]):
        if end == start:
            continue
        own = table.texts_of(mentions[start])
        if not len(own):
            continue
        group = cache.mentions[mentions[start:end]]
        scores = cache.similarity.blocks(group, cache.texts[own])
        best = scores.argmax(axis=1)
        text[start:end] = own[best]
        similarity[start:end] = np.take_along_axis(scores, best[:, None], axis=1)[:, 0]
    return text, similarity
