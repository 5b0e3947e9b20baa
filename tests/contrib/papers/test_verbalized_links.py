"""Training in texts with links: which links are written in, and what is trained."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.training import Example

from spacy_arbo_el.contrib.papers.verbalized_links import (
    WrittenLinks,
    _some_of_each,
    read_with_links,
)
from spacy_arbo_el.encoders.inputs import SpanInputs
from spacy_arbo_el.training.step import RevisedInputs

from ...encoders.strategies import span_inputs, spans_of
from ...linker.conftest import build
from ...linker.world import annotated

TRAIN = [
    "A spacecraft saw [Mercury|planet], [Amazon|river], [Jaguar|car] and [Apple|maker].",
    "The [Amazon|river] is long. [Mercury|metal] is not [Mercury|planet].",
    "Only [Amazon|shop] here.",
]
ITERATIVE = {
    "factory": "arbo_iterative_linker",
    "iteration": {
        "@misc": "spacy-arbo-el.IterativePrediction.v1",
        "training": {"@misc": "spacy-arbo-el.WrittenLinks.v1", "share": 0.5, "corrupted": 0.0},
    },
}


@pytest.fixture(scope="module")
def nlp():
    return build(train=TRAIN, **ITERATIVE)


def read(nlp, written_links):
    """The mentions trained on with their texts, and the links that stand in these."""
    linker = nlp.get_pipe("arbo_linker")
    docs = [annotated(nlp, text) for text in TRAIN]
    spans = [linker.reader.all_mentions(doc) for doc in docs]
    rows = np.arange(len(linker.exemplars))
    texts = []

    def inputs_of(read):
        texts.extend(read.texts)
        return linker.reader.inputs_of(read)

    reader = SimpleNamespace(texts_of=linker.reader.texts_of, inputs_of=inputs_of)
    stages = replace(linker.stages, reader=reader)
    given = linker.iteration.limit, written_links, stages, linker.trainer, spans, rows
    kept, revised = read_with_links(*given)
    return linker, kept, revised, texts


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=6), st.floats(0.01, 0.99), st.integers(0, 9)
)
def test_some_mentions_of_each_document_are_chosen_but_never_all(counts, share, seed):
    documents = np.repeat(np.arange(len(counts)), counts)
    rng = np.random.default_rng(seed)
    doubt = rng.permutation(len(documents)).astype(float)
    chosen = _some_of_each(documents, share, doubt, rng)
    assert len(set(chosen.tolist())) == len(chosen)
    of_document = np.bincount(documents[chosen], minlength=len(counts))
    for count, n_chosen in zip(counts, of_document.tolist()):
        assert n_chosen <= count - 1
        assert n_chosen == count - 1 or abs(n_chosen - share * count) < 1
    for document in range(len(counts)):
        rest = np.setdiff1d(np.flatnonzero(documents == document), chosen)
        own = chosen[documents[chosen] == document]
        assert not len(own) or doubt[own].max() < doubt[rest].min()


def test_gold_links_are_written_in_and_their_mentions_are_not_trained(nlp):
    np.random.seed(0)
    linker, rows, revised, texts = read(nlp, WrittenLinks(share=0.5, corrupted=0.0))
    assert texts[0].count("(") == 2
    assert texts[2] == "Only Amazon here."
    assert rows.tolist() == revised.rows.tolist()
    assert len(revised.inputs) == len(rows)
    left_out = set(range(len(linker.exemplars))) - set(rows.tolist())
    entities = [linker.kb[linker.exemplars.records[row].kb_ids[0]] for row in left_out]
    assert all(any(f"({e.description or e.title}" in t for t in texts) for e in entities)
    assert sum(text.count("(") for text in texts) == len(left_out)


def test_corrupted_links_are_of_other_entities(nlp):
    np.random.seed(1)
    elsewhere = "sweet fruit of a tree"
    drawn = {
        corrupted: " ".join(
            text
            for _ in range(20)
            for text in read(nlp, WrittenLinks(share=0.5, corrupted=corrupted))[-1]
        )
        for corrupted in (0.0, 1.0)
    }
    assert elsewhere in drawn[1.0]
    assert elsewhere not in drawn[0.0]


def test_predicted_links_are_the_nearest_texts(nlp):
    linker = nlp.get_pipe("arbo_linker")
    linker.trainer.total = 30
    try:
        *_, texts = read(nlp, WrittenLinks(share=0.5, corrupted=1.0, predicted_after=30))
    finally:
        linker.trainer.total = 0
    rows = np.arange(len(linker.exemplars))
    predicted = linker.trainer.predicted_entities(rows)
    batch = linker.stages.encode(
        linker.stages.read([list(annotated(nlp, text).ents) for text in TRAIN])
    )
    with linker.datastore.reading() as retriever:
        nearest = retriever.neighbours(batch, 1, 0, 0).entities.ids[:, 0]
    order = [linker.exemplars.row(record.key) for record in batch.records]
    assert predicted.ids[order, 0].tolist() == nearest.tolist()
    assert texts[0].count("(") == 2


@given(span_inputs(), span_inputs(), st.data())
def test_revised_spans_stand_in_for_those_that_are_stored(stored, new, data):
    rows = data.draw(st.permutations(range(len(stored) + 3)))[: len(new)]
    new = new.take(np.arange(len(rows)))
    mentions = np.array(sorted(data.draw(st.sets(st.integers(0, len(stored) + 2)))), dtype=np.int64)
    mentions = mentions[mentions < len(stored)]
    revised = RevisedInputs(np.array(rows, dtype=np.int64), new)
    spans = spans_of(revised.of(mentions, stored.take(mentions)))
    place = {row: i for i, row in enumerate(rows)}
    expected = [
        spans_of(new.take(np.array([place[row]])))[0]
        if row in place
        else spans_of(stored.take(np.array([row])))[0]
        for row in mentions.tolist()
    ]
    assert spans == expected


def test_training_encodes_the_changed_texts_and_learns(nlp, monkeypatch):
    nlp = build(train=TRAIN, **ITERATIVE)
    linker = nlp.get_pipe("arbo_linker")
    steps = []
    step = type(linker.trainer).step

    def noted(self, rows, revised=None):
        steps.append((rows, revised))
        return step(self, rows, revised)

    monkeypatch.setattr(type(linker.trainer), "step", noted)
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in (annotated(nlp, t) for t in TRAIN)]
    optimizer = nlp.resume_training()
    losses = [nlp.update(examples, sgd=optimizer)["arbo_linker"] for _ in range(8)]
    assert all(isinstance(revised, RevisedInputs) for _, revised in steps)
    assert min(losses[-3:]) < losses[0]
    assert linker.trainer.total == sum(len(rows) for rows, _ in steps)
    assert linker.trainer.state()["total"] == linker.trainer.total
    assert isinstance(linker.exemplars.inputs, SpanInputs)
    assert len(linker.exemplars) == 8
