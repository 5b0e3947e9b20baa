"""Mentions as they are read: batches, gold ids of merged entities, exact names."""

from dataclasses import replace

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, Entity, MentionBatch, MentionRecord, SpanInputs, find_linker
from spacy_arbo_el.mentions.labels import current_ids, gold_positions
from spacy_arbo_el.mentions.normalization.abbreviations import ExpandAbbreviations
from spacy_arbo_el.mentions.normalization.text import AmericanSpelling, NormalizerChain, keep
from spacy_arbo_el.mentions.reader import MentionReader, MentionSettings
from spacy_arbo_el.mentions.record import keys_of

from ..cases import cases
from ..linker.conftest import build
from ..linker.world import TRAIN, annotated

NLP = spacy.blank("xx")
DOCS = [annotated(NLP, text) for text in TRAIN]


class OnePieceEach:
    """An encoder that reads each mention as one word piece."""

    def read_mentions(self, texts, text_of, offsets):
        ids = offsets[:, 0].astype(np.int32)
        zeros = np.zeros(len(ids), dtype=np.int32)
        return SpanInputs.one_span_each(ids, np.arange(len(ids) + 1), zeros, zeros, zeros)


READER = MentionReader(OnePieceEach(), MentionSettings())


def read(numbers):
    return READER.read([[] if n is None else list(DOCS[n].ents) for n in numbers])


numbers = st.lists(st.one_of(st.none(), st.integers(0, len(DOCS) - 1)), max_size=6)


@given(st.lists(numbers, max_size=4))
def test_concat_gives_what_reading_all_documents_gives(groups):
    parts = MentionBatch.concat([read(group) for group in groups])
    whole = read([n for group in groups for n in group])
    assert list(parts.records) == list(whole.records)
    assert parts.documents.tolist() == whole.documents.tolist()
    assert parts.n_documents == whole.n_documents
    assert parts.labels.tolist() == whole.labels.tolist()
    assert parts.inputs.ids.tolist() == whole.inputs.ids.tolist()


@given(st.data())
def test_take_keeps_rows_in_the_order_given(data):
    batch = read(range(len(DOCS)))
    batch = replace(batch, vectors=np.arange(len(batch), dtype=np.float32)[:, None])
    rows = data.draw(st.lists(st.integers(0, len(batch) - 1), unique=True))
    taken = batch.take(np.array(rows, dtype=np.int64))
    assert taken.keys == [batch.records[row].key for row in rows]
    assert taken.encoded[:, 0].tolist() == rows
    assert taken.inputs.ids.tolist() == batch.inputs.ids[rows].tolist()


def test_records_hold_what_is_in_the_document():
    spans = list(DOCS[0].ents)
    batch = READER.read([spans])
    for record, span, key in zip(batch.records, spans, keys_of(spans)):
        assert record.key == key
        assert record.text == span.text
        assert record.label == "THING"
        assert record.kb_ids == (span.kb_id_,)
        assert record.normalized == span.text
        assert span.doc.text.startswith(record.before + record.text + record.after)
        assert record.context in " ".join(span.doc.text.split())


IDS = [f"e{i}" for i in range(5)]
ids = st.sampled_from([*IDS, "unknown"])


@given(st.data())
def test_ids_are_those_of_the_entities_that_they_lead_to(data):
    kb = ArboKB(Vocab(), map(Entity, IDS))
    for _ in range(data.draw(st.integers(0, 3))):
        old, new = data.draw(st.tuples(ids, ids))
        if old in kb and new in kb and kb.get(old).id != kb.get(new).id:
            kb.merge(old, new)
    gold = data.draw(st.lists(st.lists(ids, max_size=3), max_size=4))
    found = current_ids(kb, gold)
    for before, after in zip(gold, found):
        assert after == tuple(dict.fromkeys(kb.get(i).id if i in kb else i for i in before))
    # The same entities as those that training and calibration use.
    one, other = gold_positions(kb, gold), gold_positions(kb, found)
    for left, right in zip(one, other):
        assert {*left[left >= 0]} == {*right[right >= 0]}
    assert len(found) == len(gold)
    assert one.dtype == np.int64


CHAIN = {
    "@misc": "spacy-arbo-el.NormalizerChain.v1",
    "*": {
        name: {"@misc": f"spacy-arbo-el.{name}.v1"}
        for name in ("PlainCharacters", "ExpandAbbreviations", "AmericanSpelling")
    },
}
LONG = "World Health Office"
TEXT = (
    "The World Health Office (WHO) met. Then [WHO|E1] of [Colour Ltd|E2] paid the [WHO tumour|E3]."
)


@pytest.mark.parametrize(("names", "read"), cases("exact_names"))
def test_the_spelling_of_a_name_wins(names, read):
    entities = [{"id": f"E{n}", "title": name} for n, name in enumerate((*names, "Alder"))]
    nlp = build(entities, train=(), mentions={"normalizer": CHAIN})
    linker = find_linker(nlp)
    doc = annotated(nlp, TEXT)
    batch = linker.reader.read([list(doc.ents)])
    assert batch.normalized == read


def test_an_abbreviation_of_another_long_name_is_written_out():
    entities = [{"id": "E1", "title": "Water Horse Order", "aliases": ["WHO"]}]
    nlp = build(entities, train=(), mentions={"normalizer": CHAIN})
    doc = annotated(nlp, TEXT)
    read = find_linker(nlp).reader.read([list(doc.ents)]).normalized
    assert read == [LONG, "Color Ltd", f"{LONG} tumor"]


def test_kept_mentions_move_with_the_text():
    text = "coronary heart disease (CHD): CHD, tumour CHD and CHD tumour"
    chain = NormalizerChain((ExpandAbbreviations(), AmericanSpelling()))
    at = [30, 35, 50]
    offsets = np.array([(at[0], 33), (at[1], 45), (at[2], len(text))])
    for kept in np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=bool):
        new, moved = keep(chain, text, offsets, kept)
        for (start, end), (a, b), same in zip(offsets.tolist(), moved.tolist(), kept):
            assert (new[a:b] == text[start:end]) == same


@pytest.mark.parametrize(
    ("before", "begins"),
    [("", True), (" ", True), ("It rained. ", True), ("«No!» ", False), ("In Boston, ", False)],
)
def test_a_mention_begins_a_sentence_behind_a_full_stop_and_nothing_else(before, begins):
    assert MentionRecord(("a", 0, 5), (), "Halix", before).begins_sentence == begins
