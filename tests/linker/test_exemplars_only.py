"""Entities that have labelled mentions and no text (MOLEMAN, §3)."""

import spacy

from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.corpora.kb import KBFromCorpus

from .conftest import build
from .world import DEV, TRAIN, annotated, examples

NO_TEXT = {"@misc": "spacy-arbo-el.NoText.v1"}


def test_links_without_any_text_of_entities(tmp_path):
    blank = spacy.blank("xx")
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
