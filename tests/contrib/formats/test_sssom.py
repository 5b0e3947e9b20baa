"""Links as SSSOM, names from SSSOM and SSSLM, and a pipeline as a grounder of ssslm."""

import csv

import pytest
from spacy.vocab import Vocab

from spacy_arbo_el.kb.loaders import load_kb
from spacy_arbo_el.pipelines import pipeline_from_list

from ...commands import run

SSSOM = """#curie_map:
#  DOID: http://doid/
subject_id\tsubject_label\tpredicate_id\tobject_id\tobject_label
DOID:1\tcough\tskos:exactMatch\tMESH:D1\ttussis
DOID:1\tcough\tskos:broadMatch\tMESH:D9\tsymptom
DOID:2\tfever\tskos:exactMatch\tMESH:D2\tpyrexia
"""
SSSLM = "text\tcurie\tname\tpredicate\ncough\tDOID:1\tcough\tx\ntussis\tDOID:1\tcough\tx\n"


@pytest.fixture
def list_path(tmp_path):
    (tmp_path / "a.sssom.tsv").write_text(SSSOM)
    return tmp_path / "a.sssom.tsv"


def test_labels_and_ids_of_the_same_are_names_and_further_ids(list_path):
    kb = load_kb(list_path, Vocab())
    assert [entity.names for entity in kb] == [["cough", "tussis"], ["fever", "pyrexia"]]
    assert kb["MESH:D1"].id == "DOID:1"
    assert "MESH:D9" not in kb


def test_mappings_that_do_not_hold_are_left_out(tmp_path):
    rows = "DOID:1\tcough\t\tskos:exactMatch\tA:1\tx\nDOID:1\tcough\tNot\tskos:exactMatch\tA:2\ty\n"
    header = (
        "subject_id\tsubject_label\tpredicate_modifier\tpredicate_id\tobject_id\tobject_label\n"
    )
    (tmp_path / "a.tsv").write_text(header + rows)
    (entity,) = load_kb(tmp_path / "a.tsv", Vocab())
    assert entity.names == ["cough", "x"]


def test_labels_are_optional_and_the_name_of_the_file_tells_the_format(tmp_path):
    prefixes = "".join(f"#  P{n}: http://p/{n}/\n" for n in range(300))
    mapping = "subject_id\tsubject_label\tpredicate_id\tobject_id\nA:1\tcough\towl:sameAs\tB:1\n"
    (tmp_path / "a.sssom.tsv").write_text(f"#curie_map:\n{prefixes}{mapping}")
    assert load_kb(tmp_path / "a.sssom.tsv", Vocab())["B:1"].names == ["cough"]


def test_texts_of_literal_mappings_are_names(tmp_path):
    (tmp_path / "a.tsv").write_text(SSSLM)
    (entity,) = load_kb(tmp_path / "a.tsv", Vocab())
    assert (entity.id, entity.names) == ("DOID:1", ["cough", "tussis"])


@pytest.fixture
def linked(tmp_path):
    """Function from a list and options to the mappings of a text's links."""
    (tmp_path / "text.txt").write_text("A cough.")

    def linked(path, *options):
        out = tmp_path / "links.sssom.tsv"
        run("link", path, tmp_path / "text.txt", "--output", out, *options)
        lines = out.read_text("utf8").splitlines()
        return list(csv.DictReader((line for line in lines if line[0] != "#"), delimiter="\t"))

    return linked


def test_links_are_literal_mappings(list_path, linked):
    (row,) = linked(list_path)
    assert float(row.pop("confidence")) > 0.5
    assert row == {
        "subject_label": "cough",
        "subject_type": "rdfs literal",
        "predicate_id": "skos:exactMatch",
        "object_id": "DOID:1",
        "object_label": "cough",
        "mapping_justification": "semapv:CompositeMatching",
        "mapping_tool": "spacy_arbo_el",
        "comment": "text.txt, characters 2 to 7",
    }


def test_ids_without_a_prefix_get_that_of_the_list(tmp_path, linked):
    (tmp_path / "list.csv").write_text("id,name\n1,cough\n")
    assert linked(tmp_path / "list.csv", "--prefix", "DOID")[0]["object_id"] == "DOID:1"
    arguments = ("link", tmp_path / "list.csv", tmp_path / "text.txt", "--output")
    assert "E109" in run(*arguments, tmp_path / "a.sssom.tsv", code=1)
    assert "E896" in run(*arguments, tmp_path / "a.csv", "--prefix", "DOID", code=1)
    run(*arguments, tmp_path / "A.SSSOM.TSV", "--prefix", "DOID")


def test_a_pipeline_is_a_grounder(list_path):
    ssslm = pytest.importorskip("ssslm")
    from spacy_arbo_el.contrib.formats.grounder import ArboGrounder

    grounder = ssslm.make_grounder(ArboGrounder(pipeline_from_list(list_path, "en")))
    assert grounder.get_best_match("tussis").curie == "DOID:1"
    assert grounder.get_matches("cough", context="A cough.")[0].name == "cough"
    assert grounder.get_matches("Zorblax") == []
    (annotation,) = grounder.annotate("A pyrexia.")
    assert (annotation.substr, annotation.curie) == ("pyrexia", "DOID:2")


def test_a_grounder_looks_up_words_and_uses_the_extension_of_its_linker(tmp_path):
    pytest.importorskip("ssslm")
    from spacy_arbo_el.contrib.formats.grounder import ArboGrounder

    (tmp_path / "a.csv").write_text("id,name\nA:1,ALS\nA:2,PORTALS\n")
    settings = {"arbo_linker": {"extension": "linked"}}
    grounder = ArboGrounder(pipeline_from_list(tmp_path / "a.csv", "en", settings))
    assert grounder.get_matches("ALS", context="PORTALS and ALS were seen.")[0].curie == "A:1"
    assert [match.curie for match in grounder.annotate("PORTALS")] == ["A:2"]
