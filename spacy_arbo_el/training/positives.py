"""Which node each mention of a batch should move towards."""

from typing import Callable

import numpy as np
from spacy.util import registry

from .. import graph
from ..graph.positives import ENTITY
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

    return _parents_as_positives(graph.gold_parents, with_entity)


@registry.misc("spacy-arbo-el.Arborescence1NNPositives.v1")
def arborescence_1nn_positives(with_entity: bool = False) -> Positives:
    """As ``ArborescencePositives``, over gold entity, query and its nearest gold mention (§3.2)."""
    return _parents_as_positives(graph.gold_parents_1nn, with_entity)


@registry.misc("spacy-arbo-el.Arborescence1RandPositives.v1")
def arborescence_1rand_positives(with_entity: bool = False) -> Positives:
    """As ``ArborescencePositives``, over gold entity, query and a random gold mention (§3.2).

    Drawn from NumPy's global state, which ``[training.seed]`` sets and a checkpoint keeps.
    """

    def find_parents(*args, **kwargs):
        rng = np.random.default_rng(np.random.randint(2**31 - 1))
        return graph.gold_parents_1rand(*args, rng=rng, **kwargs)

    return _parents_as_positives(find_parents, with_entity)


def _parents_as_positives(find_parents: Callable, with_entity: bool) -> Positives:
    """Positives by a function of ``graph`` that finds parents in gold clusters."""

    def choose(mentions: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        clusters = np.unique(table.cluster[mentions])
        clusters = clusters[clusters >= 0]
        members, bounds = table.members(clusters)
        text, similarity = nearest_gold_texts(members, bounds, table, cache)
        position = np.full(len(table.cluster), -1, dtype=np.int64)
        position[members] = np.arange(len(members))
        known = np.flatnonzero(position[mentions] >= 0)
        queries = position[mentions[known]]
        parent = find_parents(
            cache.mentions[members],
            similarity,
            bounds,
            queries=queries,
            metric=cache.similarity.metric,
        )
        by_mention = parent >= 0
        own = np.where(parent == ENTITY, text[queries], -1)
        positives = np.full((len(mentions), 1 + with_entity), -1, dtype=np.int64)
        positives[known, 0] = np.where(by_mention, table.texts + members[parent], own)
        if with_entity:
            positives[known, 1] = np.where(parent == ENTITY, -1, text[queries])
        return positives

    return choose


@registry.misc("spacy-arbo-el.EntityPositives.v1")
def entity_positives() -> Positives:
    """The nearest text of the mention's gold entity (the baselines of the paper, §3.2)."""

    def choose(mentions: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        return gold_texts(mentions, table, cache)[:, None]

    return choose


def gold_texts(mentions: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
    """The nearest text of each mention's gold entities, (b,) int64, -1 for none."""
    order = np.argsort(table.cluster[mentions], kind="stable")
    cluster = table.cluster[mentions][order]
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(cluster)) + 1, [len(order)]])
    texts = np.full(len(mentions), -1, dtype=np.int64)
    texts[order], _ = nearest_gold_texts(mentions[order], bounds, table, cache)
    return texts


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
