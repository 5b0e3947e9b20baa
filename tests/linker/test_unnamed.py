"""Entities without a name or a text: exemplars lead to them (MOLEMAN, §3)."""

import spacy
from thinc.api import Adam

from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.corpora.reader import KBFromCorpus
from spacy_arbo_el.kb.entity import Entity

from .conftest import build
from .world import DEV, ENTITIES, TRAIN, annotated, examples, without_links

COMET = Entity("C7", types=("STAR",), meta={"unnamed": True})
SEEN = "The [comet|C7] with its bright tail came back after years."


def linked(nlp, marked):
    return nlp(without_links(annotated(nlp, marked))).ents[0]._.arbo


def test_an_unnamed_entity_has_no_vector_and_is_linked_by_its_exemplar(tmp_path):
    nlp = build([*ENTITIES, COMET, Entity("C8", meta={"unnamed": True})], [*TRAIN, SEEN])
    linker = nlp.get_pipe("arbo_linker")
    owners = set(linker.refresh().entities.owners.tolist())
    texts = {e.id: position in owners for position, e in linker.kb.entities.items()}
    assert not texts.pop("C7") and not texts.pop("C8") and all(texts.values())
    link = linked(nlp, "They saw the [comet|C7] with a bright tail.")
    assert link.kb_id == "C7"
    assert [step.kind for step in link.evidence][:2] == ["entity", "exemplar"]
    assert "C8" not in linked(nlp, "[C8|C8] is a name that nothing has.").ids
    nlp.to_disk(tmp_path / "model")
    assert linked(spacy.load(tmp_path / "model"), "They saw the [comet|C7].").kb_id == "C7"


def test_mentions_of_unnamed_entities_are_trained_on():
    nlp = build([*ENTITIES, COMET], [*TRAIN, SEEN])
    trained = examples(nlp, [*TRAIN, SEEN, "A [comet|C7] has a tail of dust."])
    assert nlp.update(trained, sgd=Adam(1e-4))["arbo_linker"] > 0


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
