"""Names and definitions of an ontology join the entities that its cross-references name."""

import pytest
from spacy.util import registry
from spacy.vocab import Vocab

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import write_entities_jsonl
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.ontologies import KBWithOntologies, with_terms

OBO = """format-version: 1.2

[Term]
id: X:1
name: common cold disease
def: "A viral disease." []
synonym: "coryza" EXACT []
synonym: "Common Cold" EXACT []
synonym: "sniffles" RELATED []
xref: MESH:D5

[Term]
id: X:2
name: measles
synonym: "rubeola" EXACT []
xref: ICD10:7
"""


@pytest.fixture
def obo(tmp_path):
    (tmp_path / "x.obo").write_text(OBO, encoding="utf8")
    return tmp_path / "x.obo"


@pytest.fixture
def source(tmp_path):
    entities = [Entity("D5", "cold", "", ["common cold"]), Entity("7", "seven", "a number")]
    write_entities_jsonl(entities, tmp_path / "kb.jsonl")
    return tmp_path / "kb.jsonl"


def test_terms_join_their_entities_and_others_are_added(obo, source):
    loader = registry.misc.get("spacy-arbo-el.KBWithOntologies.v1")
    kb = loader(source, [str(obo)])(Vocab())
    assert [entity.id for entity in kb] == ["D5", "7", "X:2"]
    # "Common Cold" is there already, in another spelling.
    assert kb["D5"].names == ["cold", "common cold", "common cold disease", "coryza"]
    assert kb["D5"].description == "A viral disease."
    # The number of a classification is not an id of the knowledge base.
    assert kb["7"] == Entity("7", "seven", "a number")
    assert kb["X:2"].names == ["measles", "rubeola"]


def test_an_ontology_alone(obo):
    assert [entity.id for entity in KBWithOntologies(None, [obo])(Vocab())] == ["X:1", "X:2"]
    with pytest.raises(ValueError, match="E613"):
        KBWithOntologies()


def test_older_ids_lead_to_the_entity():
    kb = ArboKB(Vocab(), [Entity("D9", "cold")])
    kb.redirect({"D5": "D9"})
    term = Entity("X:1", "coryza", "viral", meta={"xrefs": ["MESH:D5", "UMLS_CUI:C1"]})
    (entity,) = with_terms(kb, [term])
    assert entity == Entity("D9", "cold", "viral", ["coryza"])


def test_own_description_stays_and_several_terms_join():
    kb = ArboKB(Vocab(), [Entity("D9", "cold", "own")])
    terms = [Entity("D9", "coryza", "one"), Entity("Y", "rhinitis", "two", meta={"xrefs": ["D9"]})]
    (entity,) = with_terms(kb, terms)
    assert entity == Entity("D9", "cold", "own", ["coryza", "rhinitis"])
