import pytest

from spacy_arbo_el.corpora.convert import concept_map_of, normalise_ids
from spacy_arbo_el.kb.entity import Entity

from ..cases import cases

CONCEPTS = {"C1": "C1", "264300": "C1", "D2": "D2", "OMIM:98": "X"}


@pytest.mark.parametrize(("ids", "expected"), cases("mapped_ids"))
def test_ids_are_mapped_to_their_concepts(ids, expected):
    assert normalise_ids(ids, CONCEPTS) == tuple(expected)


def test_without_a_map_ids_stay_as_they_are():
    assert normalise_ids(["OMIM:99", "Q1"], None) == ("OMIM:99", "Q1")


def test_concept_map_of_entities_prefers_their_own_ids():
    entities = [
        Entity("D1", meta={"ids": ["D1", "7", "8"]}),
        Entity("D2", meta={"ids": ["D2", "8"]}),
        Entity("7"),
    ]
    assert concept_map_of(entities) == {"D1": "D1", "7": "7", "8": "D1", "D2": "D2"}
