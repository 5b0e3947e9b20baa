from spacy_arbo_el.corpora.concepts import concept_map_of, normalise_ids, strip_prefix
from spacy_arbo_el.kb.entity import Entity


def test_strip_prefix_of_omim_and_mesh():
    assert strip_prefix(" OMIM:104300 ") == "104300"
    assert strip_prefix("MESH:D000544") == "D000544"
    assert strip_prefix("mesh:D000544") == "D000544"
    assert strip_prefix("DOID:7") == "DOID:7"


def test_ids_are_mapped_to_their_concepts():
    concepts = {"C1": "C1", "264300": "C1", "D2": "D2"}
    assert normalise_ids(["OMIM:264300"], concepts) == ("C1",)
    assert normalise_ids(["D2", "264300", "C1"], concepts) == ("D2", "C1")
    assert normalise_ids(["-1", "", "NIL"], concepts) == ()


def test_id_missing_from_the_map_is_kept_without_its_prefix():
    assert normalise_ids(["OMIM:99", "MESH:D9"], {"1": "1"}) == ("99", "D9")


def test_id_with_its_prefix_is_looked_up_first():
    assert normalise_ids(["OMIM:99"], {"OMIM:99": "X"}) == ("X",)


def test_without_a_map_ids_are_unchanged():
    assert normalise_ids(("OMIM:99", "Q1")) == ("OMIM:99", "Q1")


def test_concept_map_of_entities_prefers_their_own_ids():
    entities = [
        Entity("D1", meta={"ids": ["D1", "7", "8"]}),
        Entity("D2", meta={"ids": ["D2", "8"]}),
        Entity("7"),
    ]
    assert concept_map_of(entities) == {"D1": "D1", "7": "7", "8": "D1", "D2": "D2"}
