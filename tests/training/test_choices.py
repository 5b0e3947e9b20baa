"""Positives, negatives and the refresh schedule, on vectors written by hand."""

from dataclasses import replace

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, Entity, MentionRecord, SpanInputs
from spacy_arbo_el.contrib.papers.biocom import InBatchPositives
from spacy_arbo_el.contrib.papers.moleman import NearestMentionPositives
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.retrieval.exemplars import ExemplarStore
from spacy_arbo_el.retrieval.similarity import Cosine, Dot
from spacy_arbo_el.training.cache import EmbeddingCache
from spacy_arbo_el.training.losses import CrossEntropy
from spacy_arbo_el.training.negatives import (
    HardNegatives,
    InBatchMentionNegatives,
    InBatchNegatives,
)
from spacy_arbo_el.training.objective import Objective, ObjectiveSum, objective_sum
from spacy_arbo_el.training.positives import (
    ArborescencePositives,
    EntityPositives,
    SynonymPositives,
)
from spacy_arbo_el.training.queries import NameQueries
from spacy_arbo_el.training.refresh import CacheRefresh
from spacy_arbo_el.training.table import GoldTable

from ..expecting import raises

# One name per entity: text i is that of entity i.
TEXTS = {"a": [4, 0, 0], "b": [0, 4, 0], "c": [0, 0, 4], "d": [0, 3, 3]}
MENTIONS = [
    ("a", [3, 1, 0]),  # 0, closest to its entity
    ("a", [1, 1, 1]),  # 1, as close to mention 0 as to its entity
    ("b", [0, 2, 1]),  # 2
    ("b|c", [0, 2, 2]),  # 3, composite
    ("gone", [2, 2, 0]),  # 4, its id is not in the KB
    ("gone", [2, 3, 0]),  # 5
    ("", [9, 9, 9]),  # 6, no gold id
    ("alone", [-9, -9, -9]),  # 7, its id is not in the KB, and no other mention has it
]
BASE = len(TEXTS)


@pytest.fixture(scope="module")
def world():
    kb = ArboKB(Vocab(), [Entity(k, k) for k in TEXTS])
    text_vectors = np.array(list(TEXTS.values()), np.float32)
    kb.encode_missing(Names(), lambda texts: text_vectors, "hand")
    exemplars = ExemplarStore()
    records = [
        MentionRecord((str(i), 0, 1), tuple(filter(None, ids.split("|"))), "x")
        for i, (ids, _) in enumerate(MENTIONS)
    ]
    one = np.ones(len(records), np.int32)
    windows = SpanInputs.one_span_each(one, np.arange(len(records) + 1), one * 0, one * 0, one * 0)
    exemplars.extend(records, windows)
    exemplars.sync(lambda inputs: np.array([v for *_, v in MENTIONS], np.float32), "hand")
    texts = kb.vectors.distinct_texts(Names())
    table = GoldTable(exemplars.records, kb, texts, np.arange(1, 5))
    return table, EmbeddingCache(Dot(), kb.rows.take(texts.rows), exemplars.vectors)


def chosen(world, part, mentions):
    """The nodes that a part of the objective chooses for mentions, without padding."""
    table, cache = world
    nodes = part(BASE + np.array(mentions), table, cache)
    return [[int(node) for node in row if node >= 0] for row in nodes]


def test_vectors_of_an_earlier_cache_are_kept():
    old = EmbeddingCache(Dot(), np.eye(2, dtype="f"), np.ones((1, 2), "f"))
    new = EmbeddingCache(Dot(), np.zeros((3, 2), "f"), np.zeros((2, 2), "f"))
    new.follow(old, np.array([1, -1, 0]), np.array([-1, 0]), keep=True)
    np.testing.assert_array_equal(new.texts, [[0, 1], [0, 0], [1, 0]])
    np.testing.assert_array_equal(new.device_mentions.cpu(), [[0, 0], [1, 1]])


def test_positives(world):
    assert chosen(world, EntityPositives(), [0, 1, 2, 3, 4]) == [[0], [0], [1], [1], []]
    # Mention 1: 4 to its entity, 4 to mention 0; the entity comes first among equals.
    assert chosen(world, ArborescencePositives(), [0, 1]) == [[0], [0]]
    # Mentions whose entity is not in the KB have each other.
    assert chosen(world, ArborescencePositives(), [4, 5]) == [[], [BASE + 4]]
    for mentions in ("nearest", "random"):
        by_others = ArborescencePositives(mentions=mentions)
        assert chosen(world, by_others, [4, 5]) == [[BASE + 5], [BASE + 4]]
    for mentions in ("all", "nearest", "random"):
        alone = ArborescencePositives(with_entity=True, mentions=mentions)
        assert chosen(world, alone, [7]) == [[]], "no other mention has its entity"
    # A mention without a gold id has no positive.
    assert chosen(world, ArborescencePositives(True), [6, 0]) == [[], [0]]


def test_with_entity_adds_the_entity_to_a_parent_that_is_a_mention(world):
    table, cache = world
    other = EmbeddingCache(cache.similarity, cache.texts, cache.mentions)
    other.mentions[1] = [1, 5, 0]  # 4 to its entity, 8 to mention 0, which has 12
    nodes = ArborescencePositives(with_entity=True)(np.array([BASE + 1]), table, other)
    assert nodes.tolist() == [[BASE + 0, 0]]


def test_nearest_mentions_are_positives(world):
    # Mention 3 is of another set of entities, and 7 is the only one of its.
    expected = [[BASE + 1], [BASE], [], [], [BASE + 5], [BASE + 4], [], []]
    assert chosen(world, NearestMentionPositives(), range(8)) == expected
    with_entity = chosen(world, NearestMentionPositives(with_entity=True), [0, 2, 6])
    assert with_entity == [[BASE + 1, 0], [1], []]


def test_hard_negatives_are_the_nearest_wrong_ones(world):
    texts, mentions = HardNegatives(4, 0.0), HardNegatives(2, 1.0)
    assert chosen(world, texts, [2]) == [[3, 2, 0]]
    # Mention 3 is composite: neither b nor c is wrong for it.
    assert chosen(world, texts, [3]) == [[3, 0]]
    # Nor is mention 3 wrong for mention 2; mention 6 could be of any entity.
    assert chosen(world, mentions, [2]) == [[BASE + 5, BASE + 4]]


def test_in_batch_negatives_are_the_entities_of_other_mentions(world):
    part = InBatchNegatives()
    assert chosen(world, part, [0, 1, 2]) == [[1], [1], [0]]
    # b is gold for the composite mention too; an id outside the KB gives nothing.
    assert chosen(world, part, [0, 2, 3, 4]) == [[1], [0], [0], [0, 1]]
    assert chosen(world, part, [4]) == [[]]


NAMES = {
    "cancer": ["cancer", "Cancer", "malignant tumour", "tumour"],
    "growth": ["growth", "tumour"],  # shares a name
    "cold": ["cold", "COLD"],  # two spellings of one name
    "flu": ["flu", "influenza", "grippe"],
}


def test_in_batch_mentions_are_positives_or_negatives(world):
    """A composite mention shares an entity with two; unknown ids are entities too."""
    batch = [0, 1, 2, 3, 4, 5, 7]
    shared = {0: [1], 1: [0], 2: [3], 3: [2], 4: [5], 5: [4], 7: []}
    positives = chosen(world, InBatchPositives(), batch)
    negatives = chosen(world, InBatchMentionNegatives(), batch)
    for i, mention in enumerate(batch):
        own = [BASE + other for other in shared[mention]]
        assert sorted(positives[i]) == own
        others = [BASE + other for other in batch if other != mention and BASE + other not in own]
        assert sorted(negatives[i]) == others
    assert chosen(world, InBatchPositives(), [0, 2]) == [[], []]


@pytest.fixture(scope="module")
def names():
    """A table whose entities have several names: text i is the i-th of ``strings``."""
    kb = ArboKB(Vocab(), [Entity(k, v[0], "", v[1:]) for k, v in NAMES.items()])
    kb.encode_missing(Names(), lambda texts: np.eye(len(texts), 9, dtype="f"), "hand")
    texts = kb.vectors.distinct_texts(Names())
    strings = [title for title, _ in texts.texts]
    records = [
        MentionRecord(("0", 0, 1), ("flu",), "FLU"),
        MentionRecord(("1", 0, 1), ("cold",), "x"),
        MentionRecord(("2", 0, 1), ("flu", "cancer"), "Grippe"),
        MentionRecord(("3", 0, 1), ("growth",), "tm", normalized="Tumour"),
    ]
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(strings), 9)).astype("f")
    cache = EmbeddingCache(Cosine(), vectors, rng.normal(size=(4, 9)).astype("f"))
    return strings, GoldTable(records, kb, texts, np.ones(len(texts), dtype=np.int64)), cache


def is_synonym(one, other):
    return one.casefold() != other.casefold() and any(
        one in own and other in own for own in NAMES.values()
    )


def test_name_queries_are_names_that_have_a_synonym(names):
    strings, table, _ = names
    expected = {name for name in strings if any(is_synonym(name, other) for other in strings)}
    drawn = NameQueries(100)(np.array([0]), table)
    assert sorted(strings[i] for i in drawn) == sorted(expected)
    assert "cold" not in expected
    assert "Cancer" in expected
    some = [NameQueries(3)(np.array([], dtype=int), table) for _ in range(40)]
    assert all(len(set(queries.tolist())) == 3 for queries in some)
    assert set(np.concatenate(some)) == set(drawn)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_synonym_positives_are_other_names_of_the_entity(names, n):
    strings, table, cache = names
    queries = table.texts_with_synonyms
    positives = SynonymPositives(n)(queries, table, cache)
    assert positives.shape == (len(queries), n)
    for query, row in zip(queries, positives):
        ids = [int(text) for text in row if text >= 0]
        synonyms = [i for i, name in enumerate(strings) if is_synonym(strings[query], name)]
        assert len(set(ids)) == len(ids)
        assert len(ids) == min(n, len(synonyms))
        assert set(ids) <= set(synonyms)


def test_synonym_positives_of_mentions_are_names_that_they_are_not_written_with(names):
    strings, table, cache = names
    queries = table.n_texts + np.arange(4)
    rows = SynonymPositives(9)(queries, table, cache)
    for number, row in enumerate(rows):
        record = table.records[number]
        written = (record.normalized or record.text).casefold()
        own = {name for key in record.kb_ids for name in NAMES.get(key, ())}
        ids = [i for i in row.tolist() if i >= 0]
        assert {strings[i] for i in ids} == {name for name in own if name.casefold() != written}


def test_hard_negatives_of_names_are_the_nearest_names_of_other_entities(names):
    strings, table, cache = names
    queries = np.arange(len(strings))
    chosen_texts = HardNegatives(9, 0.0)(queries, table, cache)
    chosen_mentions = HardNegatives(4, 1.0)(queries, table, cache) - table.n_texts
    entities = [{key for key, own in NAMES.items() if name in own} for name in strings]
    for query in queries:
        similarity = cache.texts @ cache.texts[query]
        wrong = [i for i in queries if not entities[i] & entities[query]]
        nearest, seen = [], set()
        for i in sorted(wrong, key=lambda i: -similarity[i]):
            if table.text_entity[i] not in seen:
                seen.add(table.text_entity[i])
                nearest.append(i)
        assert [i for i in chosen_texts[query] if i >= 0] == nearest
        gold = enumerate(record.kb_ids for record in table.records)
        expected = {m for m, ids in gold if not entities[query].intersection(ids)}
        assert {m for m in chosen_mentions[query].tolist() if m >= 0} == expected


def test_in_batch_negatives_of_names_are_the_other_names(names):
    strings, table, cache = names
    queries = np.array([strings.index(name) for name in ("flu", "grippe", "cold", "tumour")])
    rows = InBatchNegatives()(queries, table, cache)
    texts = [{strings[i] for i in row if i >= 0} for row in rows]
    assert texts == [{"cold", "tumour"}, {"cold", "tumour"}, {"flu", "grippe", "tumour"},
                     {"flu", "grippe", "cold"}]  # fmt: skip


def test_positives_for_the_wrong_kind_of_query_are_an_error(names, world):
    _, table, cache = names
    for part in (
        ArborescencePositives(),
        EntityPositives(),
        ArborescencePositives(mentions="nearest"),
    ):
        with raises("E611.*SynonymPositives"):
            part(np.array([0]), table, cache)
    with raises("E608.*two different texts"):
        NameQueries()(np.array([0]), world[0])


def test_only_a_sum_as_a_whole_is_refreshed():
    one = Objective(EntityPositives(), HardNegatives(), CrossEntropy())
    own, of_sum = replace(one, refresh=CacheRefresh(7)), objective_sum(one, refresh=CacheRefresh(7))
    assert one.refresh is None
    assert own.refresh == of_sum.refresh
    assert of_sum.refresh == CacheRefresh(7)
    for inner in (own, of_sum):
        with raises("E620.*objective.refresh"):
            objective_sum(inner)
    for terms, problem in ((), "E609"), (("all",), "E610.*str, not"):
        with raises(problem):
            ObjectiveSum(terms)
    with raises("objective.weight must be a finite number above 0"):
        replace(one, weight=0.0)


def test_refresh_schedules():
    assert not CacheRefresh().is_due(4999)
    assert CacheRefresh().is_due(5000)
    assert CacheRefresh(50).is_due(50)
    assert not CacheRefresh(50).is_due(49)
    assert not CacheRefresh(-1).is_due(10**9)


def test_mentions_of_merged_entities_are_mentions_of_one():
    records = [
        MentionRecord((str(i), 0, 1), ids, "x")
        for i, ids in enumerate([("a",), ("b",), ("b", "a"), ("c",), ("gone",)])
    ]
    kb = ArboKB(Vocab(), [Entity(k, k) for k in "abc"])
    kb.encode_missing(Names(), lambda texts: np.eye(3, dtype=np.float32), "hand")
    kb.merge("b", "a")
    kb.encode_missing(Names(), lambda texts: np.eye(len(texts), 3, dtype=np.float32), "hand")
    texts = kb.vectors.distinct_texts(Names())
    table = GoldTable(records, kb, texts, np.ones(len(texts)))
    assert table.cluster.tolist() == [0, 0, 0, 1, 2]
    same = table.same_entity(np.arange(5))
    assert same[:3, :3].all()
    assert same.sum() == 11
