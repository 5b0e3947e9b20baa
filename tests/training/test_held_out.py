"""Mentions that the encoder is not trained on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import MentionRecord
from spacy_arbo_el.training import held_out
from spacy_arbo_el.training.held_out import MIN_MENTIONS, HeldOut

from ..expecting import raises
from ..linker.conftest import build

IDS = st.lists(st.sampled_from([f"E{i}" for i in range(40)]), max_size=2, unique=True)
PLACES = st.tuples(st.sampled_from([f"document {i}" for i in range(30)]), IDS)


def records_of(places):
    return [
        MentionRecord((document, i, i + 1), tuple(ids), "x")
        for i, (document, ids) in enumerate(places)
    ]


def rows_of(records, keys):
    return np.array([record.key in keys for record in records], dtype=bool)


def held_out_rows(records, share):
    return rows_of(records, HeldOut.of(records, share).keys)


@given(st.lists(PLACES, min_size=MIN_MENTIONS, max_size=MIN_MENTIONS + 80))
def test_documents_and_entities_are_held_out_as_a_whole(places):
    records = records_of(places)
    held = HeldOut.of(records, 0.6)
    chosen = rows_of(records, held.keys)
    assert all(chosen[row] for row, r in enumerate(records) if r.key[0] in held.documents)
    if not chosen.any():
        return
    assert chosen.sum() >= MIN_MENTIONS
    trained = [record for record, is_held_out in zip(records, chosen) if not is_held_out]
    documents = {record.key[0] for record in trained if record.kb_ids}
    entities = {kb_id for record in trained for kb_id in record.kb_ids}
    for record, is_held_out in zip(records, chosen):
        if is_held_out:
            is_of_both = record.key[0] in documents and entities >= set(record.kb_ids)
            assert not is_of_both


def test_the_share_is_that_of_documents_and_half_of_entities():
    documents = records_of([(f"document {i}", ["E"]) for i in range(4000)])
    entities = records_of([("document", [f"E{i}"]) for i in range(4000)])
    assert abs(held_out_rows(documents, 0.2).mean() - 0.2) < 0.03
    assert abs(held_out_rows(entities, 0.2).mean() - 0.1) < 0.03
    assert not held_out_rows(documents, 0.0).any()


def test_too_few_mentions_are_all_trained_on():
    records = records_of([(f"document {i}", ["E"]) for i in range(4000)])
    few = [record for record, is_chosen in zip(records, held_out_rows(records, 0.2)) if is_chosen]
    assert held_out_rows(few[:MIN_MENTIONS], 0.2).all()
    assert not held_out_rows(few[: MIN_MENTIONS - 1], 0.2).any()


def loss_of_a_step(linker, rows):
    linker.datastore.refresh()
    return linker.trainer.step(np.flatnonzero(rows))


def test_what_is_held_out_is_neither_a_query_nor_a_target(monkeypatch):
    monkeypatch.setattr(held_out, "MIN_MENTIONS", 1)
    objective = {"@misc": "spacy-arbo-el.Objective.v1", "held_out": 0.5}
    linker = build(objective=objective).get_pipe("arbo_linker")
    chosen = rows_of(linker.exemplars.records, linker.trainer.held_out.keys)
    assert chosen.any()
    assert not chosen.all()
    assert loss_of_a_step(linker, chosen) == (0.0, 0), "no query"
    alone = build(train=[]).get_pipe("arbo_linker")
    records = [linker.exemplars.records[row] for row in np.flatnonzero(~chosen)]
    inputs = linker.exemplars.inputs.take(np.flatnonzero(~chosen))
    rows = alone.exemplars.extend(records, inputs)
    expected = loss_of_a_step(alone, np.bincount(rows) > 0)
    assert loss_of_a_step(linker, ~chosen) == pytest.approx(expected), "no target"


def test_a_share_that_is_none_is_refused():
    with raises("held_out"):
        build(objective={"@misc": "spacy-arbo-el.Objective.v1", "held_out": 2})
