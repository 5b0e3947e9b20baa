"""Ids of other vocabularies lead to the entities of a list."""

import pytest

from ..commands import run

OBO = """format-version: 1.2

[Term]
id: DOID:1
name: cough
xref: mesh:D1
xref: OMIM:9 {source="x"}
xref: MESH:shared

[Term]
id: DOID:2
name: fever
xref: MESH:D2
xref: GARD:D1
xref: MESH:shared
xref: MESHX:D3
"""
TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix d: <http://d/> .
d:1 a skos:Concept ; skos:prefLabel "cough"@en ; skos:exactMatch <http://mesh/D1>, <http://x/9> .
d:2 a skos:Concept ; skos:prefLabel "fever"@en ; skos:closeMatch <http://mesh/D2> .
"""
TABLE = "id,name,mesh,omim\n1,cough,MESH:D1|D1b,OMIM:9\n2,fever,D2,\n"
LISTS = {
    "a.obo": (OBO, "MESH", {"mesh:D1", "MESH:D1", "D1", "MESH:D2", "D2"}),
    "a.ttl": (TURTLE, "http://mesh/", {"http://mesh/D1", "D1", "http://mesh/D2", "D2"}),
    "a.csv": (TABLE, "mesh", {"MESH:D1", "D1", "D1b", "D2"}),
}


def redirects_of(path):
    from spacy_arbo_el.kb.knowledge_base import ArboKB

    return ArboKB.for_reading(path).entities.redirects()


@pytest.mark.parametrize("name", LISTS)
def test_ids_of_other_vocabularies_lead_to_the_entities(tmp_path, name):
    text, xrefs, expected = LISTS[name]
    (tmp_path / name).write_text(text)
    output = run("kb", "build", tmp_path / name, tmp_path / "kb", "--option", f"xrefs={xrefs}")
    assert f"{len(expected)} further ids" in output
    assert redirects_of(tmp_path / "kb").keys() == expected
    assert redirects_of(tmp_path / "kb")["D1"].endswith("1")


def test_a_column_of_further_ids_must_exist(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    arguments = ("kb", "build", tmp_path / "a.csv", tmp_path / "kb", "--option", "xrefs=mesch")
    assert "no column 'mesch'" in run(*arguments, code=1)
