"""Which labels are linked: values are left out, unless the knowledge base has such a type."""

import json

import pytest
from spacy.tokens import Doc, Span

from spacy_arbo_el import Entity, find_linker
from spacy_arbo_el.base.log import warn_once
from spacy_arbo_el.corpora.docbin import write_docbin

from ..commands import run
from ..expecting import no_warnings, warns
from .conftest import build

ENTITIES = [Entity("D1", "1990", types=["YEAR"]), Entity("O1", "Ottoline", types=["ORG"])]
WORDS = ["In", "1990", "and", "1990", "Ottoline", "met", "Zorblat"]
LABELS = {1: "DATE", 3: "CARDINAL", 4: "ORG", 6: "PERSON"}


def pipeline(entities=ENTITIES, **mentions):
    return build(entities, train=[], threshold=0.5, mentions=mentions)


def document(nlp):
    doc = Doc(nlp.vocab, words=WORDS)
    doc.ents = [Span(doc, start, start + 1, label) for start, label in LABELS.items()]
    return doc


def linked(nlp):
    return {ent.label_ for ent in nlp(document(nlp)).ents if ent._.arbo and ent._.arbo.ids}


@pytest.mark.parametrize(
    "settings, labels",
    [
        ({}, {"ORG", "PERSON"}),
        ({"labels_discard": []}, set(LABELS.values())),
        ({"labels_discard": ["ORG"]}, {"DATE", "CARDINAL", "PERSON"}),
        ({"labels": ["ORG", "DATE"]}, {"ORG", "DATE"}),
        ({"labels": ["ORG", "DATE"], "labels_discard": ["DATE"]}, {"ORG"}),
    ],
)
@pytest.mark.filterwarnings("ignore:.*W543")
def test_which_labels_are_linked(settings, labels):
    assert linked(pipeline(**settings)) == labels


@pytest.mark.parametrize("key, kb_id", [("labels", ""), ("labels_discard", "NIL")])
def test_a_label_that_is_not_meant_gets_no_link_and_a_discarded_one_nil(key, kb_id):
    nlp = pipeline(**{key: ["ORG"]})
    ent = next(e for e in nlp(document(nlp)).ents if (e.label_ == "ORG") == (kb_id == "NIL"))
    assert ent.kb_id_ == kb_id
    assert (ent._.arbo is None) == (kb_id == "")


@pytest.mark.filterwarnings("ignore:.*W543")
def test_values_are_linked_where_the_knowledge_base_has_such_a_type():
    nlp = pipeline()
    find_linker(nlp).kb.add(Entity("D2", "Christmas", types=["DATE"]))
    assert linked(nlp) == {"DATE", "ORG", "PERSON"}
    assert nlp(document(nlp)).ents[0].kb_id_ == "D1"
    find_linker(nlp).kb.remove("D2")
    assert linked(nlp) == {"ORG", "PERSON"}


def test_what_is_left_out_is_said_once_with_its_count():
    warn_once.cache_clear()
    nlp = pipeline()
    with warns("W543.*2 mentions.*CARDINAL, DATE.*labels_discard"):
        linked(nlp)
    with no_warnings():
        linked(nlp)
        linked(pipeline(labels=["ORG"]))


def only(*labels):
    """The override of the config that links mentions with these labels alone."""
    return "--components.arbo_linker.mentions.labels", json.dumps(labels)


def test_labels_and_sizes_on_the_command_line(tmp_path):
    nlp = pipeline(labels_discard=None)
    nlp.to_disk(tmp_path / "model")
    write_docbin([document(nlp), document(nlp)], tmp_path / "c.spacy")
    place, out = (tmp_path / "model", tmp_path / "c.spacy"), tmp_path / "out.jsonl"
    with no_warnings():
        output = run("link", *place, "--output", out)
        assert "4 mentions with the labels" in output
        assert "DATE (2)" in output
        assert "4 mentions, 2 linked to 1 entities, 2 NIL in 1 new entities" in output
        output = run("link", *place, "--output", out, *only("DATE", "PERSON"))
        assert "4 mentions, 2 linked to 1 entities, 2 NIL in 1" in output
    run("discover", *place, "--output", out)
    assert [json.loads(line)["name"] for line in out.read_text().splitlines()] == ["Zorblat"]
    output = run("discover", *place, "--output", out, "--min-mentions", 3)
    assert "1 new entities with fewer than 3 mentions" in output
    assert not out.read_text()
