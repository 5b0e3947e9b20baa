"""Entities that have labelled mentions and no text (MOLEMAN, §3)."""

import spacy
from thinc.api import Adam

from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.corpora.kb import KBFromCorpus

from .conftest import build
from .world import DEV, TRAIN, annotated, examples

NO_TEXT = {"@misc": "spacy-arbo-el.NoText.v1"}


def test_links_without_any_text_of_entities(tmp_path):
    blank = spacy.blank("en")
    write_docbin([annotated(blank, text) for text in TRAIN], tmp_path / "train.spacy")
    nlp = build(retriever={"verbalization": NO_TEXT})
    linker = nlp.get_pipe("arbo_linker")
    linker.set_kb(KBFromCorpus(tmp_path / "train.spacy"))
    gold = {e.kb_id_ for text in TRAIN for e in annotated(blank, text).ents} - {"NIL"}
    assert {entity.id for entity in linker.kb.entities} == gold
    assert not len(linker.kb.rows)
    scores = nlp.evaluate(examples(nlp, DEV))
    assert scores["arbo_acc"] >= 0.5
    doc = nlp(annotated(nlp, DEV[0]))
    evidence = doc.ents[0]._.arbo.evidence
    assert [step.kind for step in evidence][:2] == ["entity", "exemplar"]


def test_training_and_round_trip_without_any_text(tmp_path):
    negatives = {"@misc": "spacy-arbo-el.HardNegatives.v1", "k": 4, "mention_share": 1.0}
    nlp = build(retriever={"verbalization": NO_TEXT}, objective={"negatives": negatives})
    loss = nlp.update(examples(nlp, TRAIN), sgd=Adam(1e-4))["arbo_linker"]
    assert loss > 0
    before = nlp.evaluate(examples(nlp, DEV))
    nlp.to_disk(tmp_path / "model")
    again = spacy.load(tmp_path / "model")
    after = again.evaluate(examples(again, DEV))
    assert after["arbo_acc"] == before["arbo_acc"] > 0
