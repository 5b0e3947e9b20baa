"""The exemplar store, with passages that hold several mentions."""

from dataclasses import replace

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, Entity, MentionRecord, SpanInputs
from spacy_arbo_el.base.arrays import AppendOnly
from spacy_arbo_el.retrieval.exemplars import ExemplarStore

from ..expecting import raises


def record_of(number, *kb_ids):
    texts = (f"mention {number}", "before ", " after", "THING", f"normalized {number}", "doc 1")
    return MentionRecord((f"doc{number // 2}", number, number + 1), kb_ids, *texts)


def inputs_of(numbers):
    """Passages of two mentions each: passage p holds word pieces 10 p to 10 p + 3."""
    passages = sorted({number // 2 for number in numbers})
    ids = np.array([10 * p + i for p in passages for i in range(4)], dtype=np.int32)
    first = np.array([1 + number % 2 for number in numbers], dtype=np.int32)
    passage = np.array([passages.index(number // 2) for number in numbers], dtype=np.int64)
    return SpanInputs(ids, 4 * np.arange(len(passages) + 1), passage, first, first, first)


def encode(inputs):
    """A vector says which word piece the span starts at, and how long its passage is."""
    starts = inputs.ids[inputs.offsets[:-1][inputs.passage] + inputs.first]
    return np.stack([starts, inputs.lengths[inputs.passage]], axis=1).astype(np.float32)


def vectors_of(numbers):
    return [[10.0 * (number // 2) + 1 + number % 2, 4.0] for number in numbers]


@pytest.fixture
def store():
    store = ExemplarStore()
    rows = store.extend([record_of(i, "a") for i in range(4)], inputs_of(range(4)))
    assert rows.tolist() == [0, 1, 2, 3]
    store.sync(encode, "encoder")
    return store


def test_mentions_of_one_passage_share_it(store):
    assert store.inputs.passages == 2
    assert len(store.inputs) == 4
    assert store.vectors.tolist() == vectors_of(range(4))


def test_only_new_mentions_are_encoded(store):
    counts = []
    store.extend([record_of(4, "b"), record_of(5, "b")], inputs_of([4, 5]))
    assert store.sync(lambda new: counts.append(len(new)) or encode(new), "encoder") == 2
    assert counts == [2]
    assert store.vectors.tolist() == vectors_of(range(6))
    assert store.sync(encode, "encoder") == 0
    assert store.sync(encode, "another encoder") == 6
    store.extend([record_of(6)], inputs_of([6]))
    assert store.sync(encode, "a third", keep_old=True) == 1
    assert store.sync(encode, "another encoder") == 7


def test_given_vectors_are_not_encoded_again(store):
    vectors = np.array([[1, 2], [3, 4]], dtype="f")
    store.extend([record_of(0, "a"), record_of(4, "b")], inputs_of([0, 4]), vectors)
    assert store.vectors.tolist() == [*vectors_of(range(4)), [3.0, 4.0]]
    assert store.sync(encode, "encoder") == 0


def test_a_stored_mention_keeps_its_row_and_gets_the_new_record(store):
    before = store.version
    assert store.extend([record_of(2, "b")], inputs_of([2])).tolist() == [2]
    assert store.records[2].kb_ids == ("b",)
    assert store.version != before


@pytest.mark.parametrize("stored", [0, 2])
def test_a_mention_that_occurs_twice_at_once_is_stored_once(stored):
    """Raw text has copies of documents: their mentions differ in the id of the document alone."""
    store = ExemplarStore()
    known = [record_of(i, "a") for i in range(stored)]
    store.extend(known, inputs_of(range(stored)))
    numbers = [*range(stored), 2, 3, 2]
    records = [record_of(2, "a"), record_of(3, "a"), replace(record_of(2, "b"), doc_id="copy")]
    rows = store.extend([*known, *records], inputs_of(numbers))
    assert rows.tolist() == [*range(stored), stored, stored + 1, stored]
    assert store.records == [*known, records[2], records[1]]
    assert len(store.inputs) == stored + 2
    store.sync(encode, "encoder")
    assert store.vectors.tolist() == vectors_of([*range(stored), 2, 3])
    before = store.version
    store.extend([*known, *records], inputs_of(numbers))
    assert store.version == before, "nothing has changed"


def test_removed_mentions_take_nothing_of_the_others_along(store):
    store.remove([record_of(0).key, record_of(3).key, ("unknown", 0, 1)])
    assert [record.text for record in store.records] == ["mention 1", "mention 2"]
    assert store.row(record_of(2).key) == 1
    assert store.row(record_of(0).key) == -1
    assert store.vectors.tolist() == vectors_of([1, 2])
    store.sync(encode, "another encoder")
    assert store.vectors.tolist() == vectors_of([1, 2])


def test_relabelled_mentions_and_their_entities(store):
    store.relabel(record_of(1).key, ("unknown", "b"))
    store.relabel(record_of(2).key, ())
    kb = ArboKB(Vocab(), [Entity("x", "x"), Entity("a", "a"), Entity("b", "b")])

    def entities():
        return store.entities(kb).tolist()

    assert entities() == [1, 2, -1, 1]
    kb.remove("b")
    assert entities() == [1, -1, -1, 1]
    store.extend([record_of(7, "x")], inputs_of([7]))
    assert entities() == [1, -1, -1, 1, 0]
    store.relabel(record_of(1).key, ("x",))
    assert entities() == [1, 0, -1, 1, 0]
    store.remove([record_of(0).key])
    assert entities() == [0, -1, 1, 0]
    assert store.entities(ArboKB(Vocab())).tolist() == [-1, -1, -1, -1]


def test_a_store_survives_bytes(store):
    again = ExemplarStore().from_bytes(store.to_bytes())
    assert again.records == store.records
    assert again.fingerprint == "encoder"
    assert again.vectors.tolist() == store.vectors.tolist()
    assert again.inputs.keys() == store.inputs.keys()
    assert again.inputs.passages == 2
    assert again.row(record_of(3).key) == 3
    assert ExemplarStore().from_bytes(ExemplarStore().to_bytes()).records == []


def test_vectors_of_another_type_are_an_error(store):
    store._vectors = AppendOnly.of(store.vectors.astype(np.float64))
    with pytest.raises(ValueError, match="float32"):
        ExemplarStore().from_bytes(store.to_bytes())


def test_records_and_inputs_of_different_numbers_are_an_error(store):
    with raises("E302"):
        store.extend([record_of(4)], inputs_of([4, 5]))
    unencoded = ExemplarStore()
    unencoded.extend([record_of(0)], inputs_of([0]))
    with raises("E302"):
        ExemplarStore().from_bytes(unencoded.to_bytes())
