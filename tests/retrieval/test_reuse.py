"""Mentions whose surface form was annotated with one entity alone are not read again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.mentions.record import MentionRecord
from spacy_arbo_el.retrieval.reuse import KnownForms

from ..linker.conftest import build
from ..linker.world import TRAIN, annotated, without_links

TEXTS = [
    "A thing called Quicksilver and [Amazon.com|shop] met the [jaguar|cat].",
    "[quicksilver|metal] again, [Amazon.com|shop], a [Jaguar|car], and [Copper|metal].",
]


def with_reuse(least):
    settings = {"@misc": "spacy-arbo-el.Retriever.v1", "reuse_vectors": least}
    return build(retriever=settings)


def links(nlp, texts, **settings):
    docs = list(nlp.pipe((without_links(annotated(nlp, text)) for text in texts), **settings))
    return [[(ent.text, ent.kb_id_, ent._.arbo.score) for ent in doc.ents] for doc in docs]


@given(st.data(), st.integers(1, 3))
def test_forms_of_one_entity_against_counting(data, least):
    forms = data.draw(st.lists(st.sampled_from(["a", "A", "b", "c"]), max_size=8))
    owners = np.array([data.draw(st.integers(-1, 2)) for _ in forms], dtype=np.int64)
    records = [
        MentionRecord(("d", i, i + 1), (), form, normalized=form) for i, form in enumerate(forms)
    ]
    found, rows = KnownForms(records, owners, least).find(records)
    expected = {}
    for i, form in enumerate(forms):
        alike = [k for k, other in enumerate(forms) if other.lower() == form.lower()]
        if len(alike) >= least and {owners[k] for k in alike} == {owners[i]} and owners[i] >= 0:
            expected[i] = alike[0]
    assert dict(zip(found.tolist(), rows.tolist())) == expected


def test_known_forms_have_the_vector_of_their_exemplar_and_others_are_read():
    nlp = with_reuse(1)
    linker = nlp.get_pipe("arbo_linker")
    stages, read = linker.stages, []
    encode = stages.encoder.encode_mentions
    linker.refresh()
    stages.encoder.encode_mentions = lambda inputs: read.append(len(inputs)) or encode(inputs)
    docs = [annotated(nlp, text) for text in TEXTS]
    batch = stages.encode(stages.read([doc.ents for doc in docs]))
    # The forms of "jaguar" are of two entities, and there is no copper.
    assert batch.normalized == [
        "Amazon.com",
        "jaguar",
        "quicksilver",
        "Amazon.com",
        "Jaguar",
        "Copper",
    ]
    assert read == [3]
    forms = [record.normalized for record in linker.exemplars.records]
    vectors = stages.datastore.settings.similarity.prepare(linker.exemplars.vectors)
    for mention, form in ((0, "Amazon.com"), (2, "Quicksilver"), (3, "Amazon.com")):
        np.testing.assert_array_equal(batch.encoded[mention], vectors[forms.index(form)])
    plain = build().get_pipe("arbo_linker").stages
    same = plain.encode(plain.read([doc.ents for doc in docs]))
    np.testing.assert_allclose(batch.encoded[[1, 4, 5]], same.encoded[[1, 4, 5]], atol=1e-6)


@pytest.mark.parametrize("least, reads", [(0, 6), (1, 3), (2, 6)])
def test_as_many_exemplars_are_needed_as_the_setting_says(least, reads):
    nlp = with_reuse(least)
    batch = nlp.get_pipe("arbo_linker").stages.read([annotated(nlp, t).ents for t in TEXTS])
    known, vectors = nlp.get_pipe("arbo_linker").datastore.known_vectors(batch)
    assert len(batch) - len(known) == reads and len(vectors) == len(known)


def test_links_do_not_depend_on_batches_and_follow_what_is_learned():
    nlp = with_reuse(1)
    whole = links(nlp, [*TEXTS, *TRAIN])
    assert links(nlp, [*TEXTS, *TRAIN], batch_size=1) == whole
    linker = nlp.get_pipe("arbo_linker")
    span = nlp(without_links(annotated(nlp, "They sell [copper|metal] here."))).ents[0]
    linker.feedback.learn(span, "metal")
    batch = linker.stages.read([annotated(nlp, TEXTS[1]).ents])
    assert len(linker.datastore.known_vectors(batch)[0]) == 3
    linker.feedback.learn(annotated(nlp, "[Copper|maker] makes computers.").ents[0], "maker")
    assert len(linker.datastore.known_vectors(batch)[0]) == 2, "it is ambiguous now"
