"""Hard negatives in rounds: against loops over mentions and texts, and in training."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.vocab import Vocab
from thinc.api import Adam, fix_random_seed

from spacy_arbo_el import ArboKB, Entity, MentionRecord, find_linker
from spacy_arbo_el.contrib.papers.deer import (
    KEPT,
    KeptPairs,
    NegativesOfRounds,
    PositivesInRounds,
    nearer_than_gold,
    texts_of,
)
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.retrieval.similarity import Cosine, Dot
from spacy_arbo_el.training.cache import EmbeddingCache
from spacy_arbo_el.training.table import GoldTable

from ...linker.conftest import NGRAMS, build, learned_scalars
from ...linker.world import TRAIN, examples
from ...systems import load_system

# Entities with several names, some of them shared.
NAMES = {"a": ["a", "aa", "shared"], "b": ["b"], "c": ["c", "shared"], "d": ["d", "dd"], "e": ["e"]}
GOLD = [("a",), ("b",), ("c",), ("d", "e"), ("gone",), (), ("a",), ("b",)]


def world_of(seed, similarity=Dot):
    rng = np.random.default_rng(seed)
    kb = ArboKB(Vocab(), [Entity(k, names[0], aliases=names[1:]) for k, names in NAMES.items()])
    texts = [name for names in NAMES.values() for name in names]
    # Few values, so that there are equals; a row of zeros is a text that nobody can read.
    vectors = {name: rng.integers(-2, 3, 3).astype(np.float32) for name in dict.fromkeys(texts)}
    kb.encode_missing(Names(), lambda pairs: np.array([vectors[name] for name, _ in pairs]), "hand")
    records = [MentionRecord((str(i), 0, 1), ids, "x") for i, ids in enumerate(GOLD)]
    distinct = kb.vectors.distinct_texts(Names())
    table = GoldTable(records, kb, distinct, np.ones(len(distinct), dtype=np.int64))
    mentions = rng.integers(-2, 3, (len(GOLD), 3)).astype(np.float32)
    return table, EmbeddingCache(similarity(), kb.rows.take(distinct.rows), mentions), distinct, kb


def naive(table, cache, texts, k):
    """§4.3, steps 2 and 3, one mention at a time."""
    pairs = set()
    names = [title for title, _ in texts.texts]
    for mention, gold in enumerate(GOLD):
        own = {name for kb_id in gold for name in NAMES.get(kb_id, ())}
        if not own:
            continue
        scores = cache.texts @ cache.mentions[mention]
        best = max(scores[names.index(name)] for name in own)
        entities = []
        for text in np.lexsort((np.arange(len(names)), -scores)):
            entity = int(table.text_entity[text])
            nearer = scores[text] > best and cache.texts[text].any() and names[text] not in own
            if nearer and entity not in entities:
                entities.append(entity)
                if len(entities) <= k:
                    pairs.add((mention, int(text)))
    return pairs


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_negatives_are_the_entities_nearer_than_the_gold_one(seed, k):
    table, cache, texts, _ = world_of(seed)
    found = nearer_than_gold(k, table, cache)
    assert set(zip(*(array.tolist() for array in found))) == naive(table, cache, texts, k)


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 6))))
def test_texts_are_those_paired_with_a_mention(pairs):
    table = texts_of(
        np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T, np.array([5, 0, 0, 9])
    )
    for row, mention in zip(table.tolist(), (5, 0, 0, 9)):
        assert [text for text in row if text >= 0] == sorted(t for m, t in pairs if m == mention)


@given(st.integers(0, 10**6))
def test_pairs_of_earlier_rounds_are_kept(seed):
    table, cache, texts, _ = world_of(seed)
    expected = set()
    for number in range(1, 4):
        cache.refreshes = number
        NegativesOfRounds(2)(table.n_texts + np.arange(1), table, cache)
        expected |= naive(table, cache, texts, 2)
        kept = cache.kept[KEPT]
        assert kept.refresh == number
        assert list(zip(*kept.pairs.tolist())) == sorted(expected)
        cache.mentions[:] = world_of(seed + number)[1].mentions


def test_pairs_follow_new_numbers_of_mentions_and_texts():
    kept = KeptPairs(2, np.array([[0, 1, 1, 3], [5, 0, 5, 2]]))
    # Mention 1 is now 0, 3 is now 2, 0 is gone; text 5 is now 1, 2 is now 0, and 0 is gone.
    moved = kept.renumbered(np.array([1, -1, 3]), np.array([2, 5]))
    assert moved.pairs.tolist() == [[0, 2], [1, 0]]
    assert moved.refresh == 2


def test_first_round_has_neither_positives_nor_negatives():
    table, cache, *_ = world_of(0, Cosine)
    queries = table.n_texts + np.arange(3)
    assert (PositivesInRounds()(queries, table, cache) == -1).all()
    assert NegativesOfRounds()(queries, table, cache).shape == (3, 0)
    cache.refreshes += 1
    assert (PositivesInRounds()(queries, table, cache) >= 0).all()
    assert NegativesOfRounds()(queries, table, cache).shape[1] > 0


def test_negatives_are_mined_once_in_a_round():
    table, cache, *_ = world_of(1)
    queries, negatives = table.n_texts + np.arange(3), NegativesOfRounds()
    cache.refreshes += 1
    negatives(queries, table, cache)
    first = cache.kept[KEPT]
    cache.texts[:] = 0
    negatives(queries, table, cache)
    assert cache.kept[KEPT] is first


@pytest.fixture
def nlp():
    """A small linker with the objective of the paper's system, and rounds of 40 mentions."""
    fix_random_seed(0)
    objective = load_system("deer")["components"]["arbo_linker"]["objective"]
    refresh = {**objective["refresh"], "every": 40}
    return build(model=NGRAMS, objective={**objective, "refresh": refresh})


def kept_by(linker):
    """The number of the round, and the mentions and texts of the pairs that are kept."""
    cache = linker.trainer._data.cache
    kept = cache.kept.get(KEPT, KeptPairs())
    return cache.refreshes, kept.pairs


def test_training_goes_through_rounds_and_learns_scalars_of_both_losses(nlp):
    linker, optimizer = find_linker(nlp), Adam(0.001)
    numbers, pairs = [], [0]
    begin = learned_scalars(linker)
    for _ in range(8):
        nlp.update(examples(nlp, TRAIN), sgd=optimizer)
        number, kept = kept_by(linker)
        numbers.append(number)
        assert kept.shape[1] >= pairs[-1]
        pairs.append(kept.shape[1])
    # 20 mentions a step, and 40 a round.
    assert numbers == [0, 0, 1, 1, 2, 2, 3, 3]
    assert pairs[-1] > 0
    softmax, logistic = learned_scalars(linker)
    assert softmax[0] != begin[0][0]
    assert logistic[0] != begin[1][0]
    assert logistic[1] != begin[1][1]


def train(nlp, steps=1):
    for _ in range(steps):
        nlp.update(examples(nlp, TRAIN), sgd=Adam(0.001))


def test_rounds_continue_when_an_entity_is_added(nlp, linker):
    train(nlp, 3)
    (number, before), texts = kept_by(linker), linker.trainer._data.texts.texts
    assert number == 1
    assert before.size
    linker.kb.add([Entity("new", "Aardvark", "an animal")])
    train(nlp)
    (_, after), new_texts = kept_by(linker), linker.trainer._data.texts.texts
    assert len(new_texts) > len(texts)
    assert [new_texts[i] for i in after[1]] == [texts[i] for i in before[1]]


def test_state_of_training_has_the_rounds(nlp, linker):
    train(nlp, 5)
    state = linker.trainer.state()
    linker.trainer._data = None
    linker.trainer.restore(state)
    cache = linker.trainer._data.cache
    assert cache.refreshes == 2
    assert not cache.kept
    # Pairs are mined again when they are needed.
    train(nlp)
    assert linker.trainer._data.cache.kept[KEPT].refresh >= 2
