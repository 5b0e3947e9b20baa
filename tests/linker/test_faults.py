"""What spaCy's entity_linker gets wrong must work here (PEERS.md, "Faults of the incumbent")."""

import warnings
from dataclasses import replace

import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_arbo_el.base.log import warn_once
from spacy_arbo_el.kb.entity import Entity

from .conftest import build
from .world import DEV, TRAIN, annotated, examples, without_links


def kb_ids(doc):
    return [ent.kb_id_ for ent in doc.ents]


def test_ties_are_always_decided_in_the_same_way():
    twins = [Entity("b", "Springfield"), Entity("a", "Springfield")]
    nlp = build(twins, train=[])
    doc = annotated(nlp, "He moved to [Springfield|a] last year.")
    found = {tuple(kb_ids(nlp(without_links(doc)))) for _ in range(20)}
    assert found == {("b",)}, "a tie goes to the entity that comes first in the KB"
    candidates = nlp(without_links(doc)).ents[0]._.arbo.candidates
    assert [c.kb_id for c in candidates] == ["b", "a"]
    assert candidates[0].score == candidates[1].score


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("discarded", [["THING"], ["OTHER"], []])
def test_any_batch_size_with_any_discarded_label(shared_nlp, batch_size, discarded):
    linker = shared_nlp.get_pipe("arbo_linker")
    docs = [annotated(shared_nlp, text) for text in TRAIN]
    for i, doc in enumerate(docs):
        doc.ents = [
            Span(doc, e.start, e.end, label="OTHER" if (i + j) % 2 else "THING", kb_id=e.kb_id)
            for j, e in enumerate(doc.ents)
        ]
    reader = linker.reader
    try:
        linker.reader = replace(reader, settings=replace(linker.mentions, labels_discard=discarded))
        plain = [without_links(doc) for doc in docs]
        for doc, gold in zip(shared_nlp.pipe(plain, batch_size=batch_size), docs):
            for ent, right in zip(doc.ents, gold.ents):
                # The training mentions are exemplars: each is its own nearest neighbour.
                assert ent.kb_id_ == ("NIL" if ent.label_ in discarded else right.kb_id_)
    finally:
        linker.reader = reader


def test_spans_in_doc_spans_are_linked():
    getter = {"@misc": "spacy-arbo-el.GroupSpans.v1", "spans_key": "sc"}
    nlp = build(key="sc", mentions={"getter": getter})
    gold = annotated(nlp, TRAIN[1], key="sc")
    doc = without_links(gold, key="sc")
    doc.spans["sc"][0].id_ = "kept"
    doc.spans["other"] = [Span(doc, 0, 1, label="X")]
    doc = nlp(doc)
    # Spans of a group may overlap, and two may have one place.
    other = nlp.make_doc("The Amazon River floods.")
    other.spans["sc"] = [Span(other, 1, 2, "A"), Span(other, 1, 3, "B"), Span(other, 1, 3, "C")]
    places = [(span.start, span.end, span.label_) for span in nlp(other).spans["sc"]]
    assert places == [(1, 2, "A"), (1, 3, "B"), (1, 3, "C")]
    assert [span.kb_id_ for span in other.spans["sc"]][1:] == ["river", "river"]
    assert [span.kb_id_ for span in doc.spans["sc"]] == ["metal", "metal"]
    assert [span.label_ for span in doc.spans["sc"]] == ["THING", "THING"]
    assert [span.kb_id_ for span in doc.spans["other"]] == [""]
    assert doc.spans["sc"][1]._.arbo.kb_id == "metal"
    assert not doc.ents


def test_score_counts_missed_mentions_as_missed(shared_nlp):
    gold = annotated(shared_nlp, TRAIN[0])
    found = without_links(gold)
    found.ents = found.ents[:1]
    linker = shared_nlp.get_pipe("arbo_linker")
    linker.set_annotations([found], linker.predict([found]))
    try:
        linker.cfg["use_gold_ents"] = False
        scores = linker.score([Example(found, gold)])
    finally:
        linker.cfg["use_gold_ents"] = True
    assert scores["nel_micro_r"] == 0.5 and scores["nel_micro_p"] == 1.0
    assert scores["arbo_acc"] == 0.5


def test_evaluate_counts_gold_mentions(shared_nlp):
    scores = shared_nlp.evaluate(examples(shared_nlp, DEV))
    assert scores["arbo_mentions"] == len(DEV)
    assert scores["arbo_recall_at_8"] == 1.0
    plain = [
        Example(shared_nlp.make_doc(eg.text), eg.reference) for eg in examples(shared_nlp, DEV)
    ]
    assert shared_nlp.evaluate(plain)["arbo_acc"] == scores["arbo_acc"]


@pytest.mark.parametrize(
    ("pipes", "problems"),
    [
        (["ner", "arbo_linker"], []),
        (["entity_ruler", "arbo_linker"], []),
        (["arbo_linker", "ner"], ["doc.ents"]),
        (["arbo_linker", "entity_ruler"], ["doc.ents"]),
        (["arbo_linker"], ["doc.ents"]),
    ],
)
def test_analyze_pipes_finds_a_linker_before_what_finds_mentions(pipes, problems):
    nlp = spacy.blank("xx")
    for pipe in pipes:
        nlp.add_pipe(pipe)
    assert nlp.analyze_pipes()["problems"]["arbo_linker"] == problems


def test_a_missing_span_group_is_warned_of_once():
    warn_once.cache_clear()
    getter = {"@misc": "spacy-arbo-el.GroupSpans.v1", "spans_key": "genes"}
    nlp = build(key="genes", mentions={"getter": getter})
    with pytest.warns(UserWarning, match="no group doc.spans.'genes'.*spans_key") as caught:
        docs = list(nlp.pipe(["Boats travel up the Amazon.", "Nothing.", ""]))
    assert len(caught) == 1 and not any(doc.ents for doc in docs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doc = nlp.make_doc("Nothing.")
        doc.spans["genes"] = []
        warn_once.cache_clear()
        nlp(doc)
