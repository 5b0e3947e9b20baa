"""Entities without any name: they have no text, and no name leads to them."""

import pytest
from spacy.vocab import Vocab

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.verbalizations import Names, NoText, Parts, TitleDescription

UNNAMED = Entity("D7", types=("Disease",), meta={"unnamed": True})
DESCRIBED = Entity("D8", description="An illness.", meta={"unnamed": True})


def test_an_unnamed_entity_has_its_id_as_title_and_no_names():
    assert (UNNAMED.title, UNNAMED.names) == ("D7", [])
    assert Entity("D7").names == ["D7"], "an id may be a name: Entity('Kathmandu')"
    assert Entity("D7", "Flu", meta={"unnamed": True}).names == ["Flu"]
    assert Entity("D7", aliases=("flu",), meta={"unnamed": True}).names == ["flu"]


@pytest.mark.parametrize(
    ("verbalize", "texts"),
    [
        (TitleDescription(), [("", "An illness.")]),
        (Names(), []),
        (Names(types=True), []),
        (Names(types=True, description=True), [("", "An illness.")]),
        (Parts(types=True), [("", "An illness.")]),
        (Parts(description=False), []),
        (NoText(), []),
    ],
)
def test_an_unnamed_entity_has_the_text_of_its_description(verbalize, texts):
    assert verbalize(UNNAMED) == [] and verbalize(DESCRIBED) == texts


def test_a_merge_with_a_named_entity_gives_it_its_names():
    flu = Entity("D9", "Flu", aliases=("grippe",))
    merged = UNNAMED.merged_with(flu)
    assert (merged.id, merged.title, merged.names) == ("D7", "Flu", ["Flu", "grippe"])
    assert "unnamed" not in merged.meta
    merged = flu.merged_with(UNNAMED)
    assert merged.names == ["Flu", "grippe"] and "unnamed" not in merged.meta
    assert UNNAMED.merged_with(DESCRIBED).names == []


def test_no_name_leads_to_an_unnamed_entity():
    kb = ArboKB(Vocab(), [UNNAMED, Entity("D9", "Flu")])
    assert not kb.contains_alias("D7") and kb.get_alias_strings() == ["Flu"]
    assert kb.get("D7") == UNNAMED and kb.get_size_aliases() == 1
