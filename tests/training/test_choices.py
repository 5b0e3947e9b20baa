"""Positives, negatives and the refresh schedule, over vectors written down by hand."""

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_arbo_el.encoders.sequences import Sequences
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.verbalizations import names
from spacy_arbo_el.retrieval.exemplars import ExemplarStore, Labelled
from spacy_arbo_el.retrieval.similarity import dot
from spacy_arbo_el.training.cache import EmbeddingCache
from spacy_arbo_el.training.negatives import hard_negatives, in_batch_negatives
from spacy_arbo_el.training.positives import (
    arborescence_1nn_positives,
    arborescence_1rand_positives,
    arborescence_positives,
    entity_positives,
)
from spacy_arbo_el.training.refresh import cache_refresh
from spacy_arbo_el.training.table import GoldTable

# One name an entity: text i is entity i's.
TEXTS = {"a": [4, 0, 0], "b": [0, 4, 0], "c": [0, 0, 4], "d": [0, 3, 3]}
TYPES = {"a": ["T"], "b": ["T"], "c": ["U"], "d": []}
MENTIONS = [
    ("a", "T", [3, 1, 0]),  # 0, near its entity
    ("a", "T", [1, 1, 1]),  # 1, near mention 0 rather than the entity
    ("b", "T", [0, 2, 1]),  # 2
    ("b|c", "U", [0, 2, 2]),  # 3, composite
    ("gone", "T", [2, 2, 0]),  # 4, not in the KB
    ("gone", "T", [2, 3, 0]),  # 5
    ("", "U", [9, 9, 9]),  # 6, no gold id
]
BASE = len(TEXTS)


@pytest.fixture(scope="module")
def world():
    kb = ArboKB(Vocab(), [Entity(k, k, "", [], TYPES[k]) for k in TEXTS])
    vectors = np.array(list(TEXTS.values()), np.float32)
    kb.sync(names(), lambda texts: vectors, "hand")
    store = ExemplarStore()
    items = [
        Labelled((str(i), 0, 1), tuple(filter(None, ids.split("|"))), "x", "x", label)
        for i, (ids, label, _) in enumerate(MENTIONS)
    ]
    one = np.ones(len(items), np.int64)
    windows = Sequences(one, np.arange(len(items) + 1), one * 0, one * 0, one * 0)
    store.extend(items, windows)
    store.sync(lambda w: np.array([v for *_, v in MENTIONS], np.float32), "hand")
    distinct = kb.distinct_texts(names())
    table = GoldTable(store, kb, distinct)
    return table, EmbeddingCache(kb, distinct, store, Sequences.empty(), dot())


def chosen(world, part, mentions):
    table, cache = world
    rows = part(np.array(mentions), table, cache)
    return [[int(node) for node in row if node >= 0] for row in rows]


def test_positives(world):
    assert chosen(world, entity_positives(), [0, 1, 2, 3, 4]) == [[0], [0], [1], [1], []]
    # Mention 1: 4 to its entity, 4 to mention 0; of equals the entity comes first.
    assert chosen(world, arborescence_positives(), [0, 1]) == [[0], [0]]
    # Mentions whose entity is not in the KB have each other.
    assert chosen(world, arborescence_positives(), [4, 5]) == [[], [BASE + 4]]
    assert chosen(world, arborescence_1nn_positives(), [4, 5]) == [[BASE + 5], [BASE + 4]]
    assert chosen(world, arborescence_1rand_positives(), [4, 5]) == [[BASE + 5], [BASE + 4]]
    # Nor has a mention without a gold id a positive.
    assert chosen(world, arborescence_positives(True), [6, 0]) == [[], [0]]


def test_a_parent_that_is_a_mention_brings_the_entity_along_where_asked(world):
    table, cache = world
    near = EmbeddingCache(
        cache.kb, cache.distinct, cache.store, cache.text_sequences, cache.similarity
    )
    near.mentions[1] = [1, 5, 0]  # 4 to its entity, 8 to mention 0, which has 12
    rows = arborescence_positives(with_entity=True)(np.array([1]), table, near)
    assert rows.tolist() == [[BASE + 0, 0]]


def test_hard_negatives_are_the_nearest_wrong_ones(world):
    texts, mentions = hard_negatives(4, 0.0), hard_negatives(2, 1.0)
    assert chosen(world, texts, [2]) == [[3, 2, 0]]
    # Mention 3 is composite: neither b nor c is wrong for it.
    assert chosen(world, texts, [3]) == [[3, 0]]
    # Nor is mention 3 wrong for mention 2; mention 6 could be anything.
    assert chosen(world, mentions, [2]) == [[BASE + 5, BASE + 4]]


def test_hard_negatives_of_the_mentions_own_type(world):
    texts = hard_negatives(4, 0.0, same_type=True)
    # d has no type and may be of any; c is a U.
    assert chosen(world, texts, [2, 0]) == [[3, 0], [1, 3]]
    mentions = hard_negatives(4, 1.0, same_type=True)
    assert chosen(world, mentions, [3]) == [[]]


def test_in_batch_negatives_are_the_others_entities(world):
    part = in_batch_negatives()
    assert chosen(world, part, [0, 1, 2]) == [[1], [1], [0]]
    # b is gold for the composite mention too; what is not in the KB gives nothing.
    assert chosen(world, part, [0, 2, 3, 4]) == [[1], [0], [0], [0, 1]]
    assert chosen(world, part, [4]) == [[]]


def test_refresh_schedules():
    assert not cache_refresh().is_due(99, 100) and cache_refresh().is_due(100, 100)
    assert cache_refresh(50).is_due(50, 100) and not cache_refresh(50).is_due(49, 100)
    assert not cache_refresh(-1).is_due(10**9, 100)
    with pytest.raises(ValueError, match="E508.*-2 mentions"):
        cache_refresh(-2)
