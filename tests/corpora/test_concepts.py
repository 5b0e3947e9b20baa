import pytest

from spacy_arbo_el.corpora.convert import concept_map_of, normalise_ids
from spacy_arbo_el.kb.entity import Entity

CONCEPTS = {"C1": "C1", "264300": "C1", "D2": "D2", "OMIM:98": "X"}


@pytest.mark.parametrize(
    ("ids", "concepts", "expected"),
    [
        (["OMIM:264300"], CONCEPTS, ("C1",)),
        (["D2", "264300", "C1"], CONCEPTS, ("D2", "C1")),
        (["-1", "", "NIL"], CONCEPTS, ()),
        # One that is missing from the map is kept without its prefix.
        ([" OMIM:99 ", "mesh:D9", "DOID:7"], CONCEPTS, ("99", "D9", "DOID:7")),
        # One with its prefix is looked up first.
        (["OMIM:98"], CONCEPTS, ("X",)),
        (["OMIM:99", "Q1"], None, ("OMIM:99", "Q1")),
    ],
)
def test_ids_are_mapped_to_their_concepts(ids, concepts, expected):
    assert normalise_ids(ids, concepts) == expected


def test_concept_map_of_entities_prefers_their_own_ids():
    entities = [
        Entity("D1", meta={"ids": ["D1", "7", "8"]}),
        Entity("D2", meta={"ids": ["D2", "8"]}),
        Entity("7"),
    ]
    assert concept_map_of(entities) == {"D1": "D1", "7": "7", "8": "D1", "D2": "D2"}
