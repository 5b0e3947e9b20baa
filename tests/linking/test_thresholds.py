"""Thresholds by label, and calls that link to some entities only."""

import pickle

import pytest
import spacy
from spacy.util import load_model_from_config

from spacy_arbo_el import find_linker
from spacy_arbo_el.linking.by_label import ByLabel, check_threshold

from ..cases import cases
from ..expecting import raises

ENTITIES = [
    {"id": "fever", "title": "blue fever", "types": ["DISEASE"]},
    {"id": "town", "title": "Port Veil", "types": ["PLACE"]},
    {"id": "ship", "title": "Port Veil", "types": ["SHIP"]},
    {"id": "other", "title": "Port Vale"},
]
TABLE = {"*": 0.2, "PLACE": 1.0}


def build(**config):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns(
        [
            {"label": "DISEASE", "pattern": "blue fever"},
            {"label": "PLACE", "pattern": "Port Veil"},
            {"label": "PLACE", "pattern": "Port Vale"},
        ]
    )
    nlp.add_pipe("arbo_linker", config=config).set_kb(ENTITIES)
    return nlp


TEXT = "The blue fever came to Port Vale."


def ids(doc):
    return [ent.kb_id_ for ent in doc.ents]


@pytest.fixture(scope="module")
def nlp():
    return build()


def test_each_label_has_its_threshold(nlp):
    assert ids(nlp(TEXT)) == ["fever", "other"]
    by_label = build(threshold=TABLE)
    linker = find_linker(by_label)
    assert ids(by_label(TEXT)) == ["fever", "NIL"]
    assert [ids(doc) for doc in linker.corpus.link([by_label.make_doc(TEXT)])] == [[]]
    doc = by_label(TEXT, disable=["arbo_linker"])
    assert ids(linker.corpus.link([doc])[0]) == ["fever", "NIL"]
    assert "below the threshold of 1" in str(linker.explain(doc.ents[1], "other"))
    assert "PLACE 1" in repr(linker)
    assert linker.threshold.of("PLACE") == 1.0
    assert linker.threshold == 0.2


def test_thresholds_are_saved(tmp_path):
    nlp = build()
    find_linker(nlp).threshold = TABLE
    assert nlp.config["components"]["arbo_linker"]["threshold"] == TABLE
    nlp.to_disk(tmp_path / "model")
    assert ids(spacy.load(tmp_path / "model")(TEXT)) == ["fever", "NIL"]
    again = load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert find_linker(again).threshold.by_label == {"PLACE": 1.0}
    find_linker(nlp).threshold = 0.3
    assert ids(nlp(TEXT)) == ["fever", "other"]


def test_a_correction_is_certain_enough_for_all_labels():
    nlp = build(threshold=TABLE)
    linker = find_linker(nlp)
    linker.feedback.learn(nlp(TEXT).ents[1], "town")
    assert ids(nlp(TEXT)) == ["fever", "town"]


@pytest.mark.parametrize("value", [{"PLACE": 0.3}, {}, {"*": 2}, {"*": None}, {"*": "0.3"}])
def test_tables_are_checked(value):
    with raises("E40[27]"):
        check_threshold(value)


def test_thresholds_are_pickled():
    again = pickle.loads(pickle.dumps(ByLabel(TABLE)))
    assert again == 0.2
    assert again.by_label == {"PLACE": 1.0}


@pytest.mark.parametrize("only, want", cases("some_entities"))
def test_a_call_links_to_some_entities_only(nlp, linker, only, want):
    doc = nlp("They saw Port Vale there.", disable=["arbo_linker"])
    if want not in (None, "other"):
        doc = nlp("They saw Port Veil there.", disable=["arbo_linker"])
    (linked,) = linker.link([doc], **only)
    assert linked is doc
    assert ids(doc)[0] == (want or "NIL")
    assert {one.kb_id for one in doc.ents[0]._.arbo.candidates} <= set(
        only.get("entities", [e["id"] for e in ENTITIES])
    )
    # The next call is free again.
    assert ids(nlp("They saw Port Vale there.")) == ["other"]


def test_a_correction_leads_to_no_other_entity():
    nlp = build()
    linker = find_linker(nlp)
    text = "They saw Port Veil there."
    linker.feedback.learn(nlp(text).ents[0], "ship")
    assert ids(nlp(text)) == ["ship"]
    doc = nlp(text, disable=["arbo_linker"])
    assert ids(linker.link([doc], entities=["town"])[0]) == ["NIL"]
    linker.set_kb([])
    assert ids(linker.link([doc], types=["PLACE"])[0]) == ["NIL"]


def test_entities_of_a_call_must_be_known(nlp):
    with raises("E408.*'nowhere'"):
        find_linker(nlp).link([], entities=["town", "nowhere"])
