"""A dict changes what it gives of an entity, and keeps the rest."""

import pytest
from spacy.vocab import Vocab

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB

WHOLE = Entity("E1", "measles", "a fever", ["rubeola"], ["DISEASE"], 7.0, {"Country": "NO", "n": 1})


@pytest.fixture
def kb():
    return ArboKB(Vocab(), [WHOLE, Entity("E2", "gout")])


@pytest.mark.parametrize("edit", ["update", "upsert"])
@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"aliases": ["morbilli"]}, {"aliases": ("morbilli",)}),
        ({"synonyms": "a|b", "name": "Measles"}, {"aliases": ("a", "b"), "title": "Measles"}),
        ({"frequency": 9, "description": None}, {"frequency": 9.0}),
        ({"description": "", "types": []}, {"description": "", "types": ()}),
        ({"Country": "SE"}, {"meta": {"Country": "SE", "n": 1}}),
        ({"meta": {"n": 2}}, {"meta": {"Country": "NO", "n": 2}}),
        ({}, {}),
    ],
)
def test_a_dict_changes_what_it_gives(kb, edit, given, changed):
    assert getattr(kb, edit)({"id": "E1", **given}) == 1
    fields = ("title", "description", "aliases", "types", "frequency", "meta")
    expected = {name: getattr(WHOLE, name) for name in fields} | changed
    assert {name: getattr(kb["E1"], name) for name in fields} == expected


def test_an_entity_replaces_the_whole(kb):
    kb.update(Entity("E1", "measles"))
    assert kb["E1"] == Entity("E1", "measles")


def test_changes_of_one_call_add_up(kb):
    kb.update([{"id": "E1", "frequency": 1}, {"id": "E1", "title": "Measles"}])
    assert (kb["E1"].frequency, kb["E1"].title) == (1.0, "Measles")
    kb.upsert([{"id": "E3", "title": "new"}, {"id": "E2", "aliases": ["podagra"]}])
    assert kb["E3"].title == "new" and kb["E2"].names == ["gout", "podagra"]


def test_an_id_that_was_merged_is_no_entity(kb):
    kb.merge("E2", "E1")
    with pytest.raises(KeyError):
        kb.update({"id": "E2", "title": "gout"})
    with pytest.raises(KeyError):
        kb.update({"id": "E9", "title": "gout"})


def test_a_name_makes_an_entity_named():
    kb = ArboKB(Vocab(), [Entity("E1", meta={"unnamed": True, "n": 1})])
    kb.update({"id": "E1", "title": "measles"})
    assert kb["E1"].names == ["measles"] and kb["E1"].meta == {"n": 1}
