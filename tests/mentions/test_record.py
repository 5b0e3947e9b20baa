"""Batches of mentions: put one after the other, and taken apart."""

import numpy as np
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.encoders.inputs import SpanInputs
from spacy_arbo_el.mentions.reader import MentionReader, MentionSettings
from spacy_arbo_el.mentions.record import MentionBatch, keys_of

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
    batch = batch.with_vectors(np.arange(len(batch), dtype=np.float32)[:, None])
    rows = data.draw(st.lists(st.integers(0, len(batch) - 1), unique=True))
    taken = batch.take(np.array(rows, dtype=np.int64))
    assert taken.keys == [batch.records[row].key for row in rows]
    assert taken.encoded[:, 0].tolist() == rows
    assert taken.inputs.ids.tolist() == batch.inputs.ids[rows].tolist()


def test_records_hold_what_is_in_the_document():
    spans = list(DOCS[0].ents)
    batch = READER.read([spans])
    for record, span, key in zip(batch.records, spans, keys_of(spans)):
        assert record.key == key and record.text == span.text and record.label == "THING"
        assert record.kb_ids == (span.kb_id_,) and record.normalized == span.text
        assert span.doc.text.startswith(record.before + record.text + record.after)
        assert record.context in " ".join(span.doc.text.split())
