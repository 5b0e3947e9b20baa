"""Ids of mentions are read from wherever a format has them, or a warning names the field."""

import json
import warnings

import pytest

from spacy_arbo_el.corpora.annotated import split_ids
from spacy_arbo_el.corpora.id_fields import find_id
from spacy_arbo_el.corpora.read import read

BIOC = (
    '<?xml version="1.0"?><collection><document><id>1</id><passage><offset>0</offset>'
    '<text>Blue fever came.</text><annotation id="0"><infon key="type">Disease</infon>'
    '<infon key="{}">{}</infon><location offset="0" length="10"/><text>Blue fever</text>'
    "</annotation></passage></document></collection>"
)


def ids(folder, format, files, **more):
    """The ids of the mentions, and the warnings."""
    for name, content in files.items():
        (folder / name).write_text(content, "utf8")
    path = folder if len(files) > 1 else folder / next(iter(files))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [one.kb_ids for text in read(path, format, **more) for one in text.mentions]
    return found, " ".join(str(one.message) for one in caught)


@pytest.mark.parametrize(
    "key",
    ["NCBI GENE", "ncbi_gene", "CHEBI", "SNOMEDCT", "MEDIC", "NCBI Taxonomy", "cui", "Wiki-ID"],
)
def test_bioc_has_ids_in_infons_of_many_names(tmp_path, key):
    assert ids(tmp_path, "bioc", {"a.xml": BIOC.format(key, "D1")}) == ([("D1",)], "")


def test_an_unknown_infon_is_named_and_can_be_given(tmp_path):
    files = {"a.xml": BIOC.format("our code", "D1")}
    found, said = ids(tmp_path, "bioc", files)
    assert found == [()] and "'our code' (1)" in said and "--id-key" in said
    assert ids(tmp_path, "bioc", files, id_key="Our_Code") == ([("D1",)], "")


@pytest.mark.parametrize("value", ["-", "-1", "CUI-less", "NIL"])
def test_what_stands_for_no_concept_is_no_id(tmp_path, value):
    assert ids(tmp_path, "bioc", {"a.xml": BIOC.format("identifier", value)}) == ([()], "")
    assert split_ids(f"{value}|D1") == ("D1",)


def test_other_infons_are_no_ids(tmp_path):
    assert ids(tmp_path, "bioc", {"a.xml": BIOC.format("annotator", "Ada")}) == ([()], "")


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("2260(Tax:9606)", ("2260",)),
        ("2260(Tax:9606);2261(Tax:9606)", ("2260", "2261")),
        ("MESH:D1*", ("MESH:D1",)),
        ("-", ()),
    ],
)
def test_remarks_behind_ids_of_pubtator(tmp_path, value, want):
    text = f"1|t|FGFR1 came.\n1|a|It.\n1\t0\t5\tFGFR1\tGene\t{value}\n"
    assert ids(tmp_path, "pubtator", {"a.pubtator": text}) == ([want], "")


def test_brat_has_ids_in_attributes_and_notes(tmp_path):
    line = "T1\tDisease 0 10\tBlue fever\n"
    files = {"a.txt": "Blue fever came.", "a.ann": f"{line}#1\tAnnotatorNotes T1\tD1\n"}
    found, said = ids(tmp_path, "brat", files)
    assert found == [()] and "'AnnotatorNotes' (1)" in said
    assert ids(tmp_path, "brat", files, id_key="AnnotatorNotes") == ([("D1",)], "")
    files["a.ann"] = f"{line}A1\tCUI T1 D2\nA2\tNegated T1\n"
    assert ids(tmp_path, "brat", files) == ([("D2",)], "")
    # A normalization is the id, whatever notes say.
    files["a.ann"] = f"{line}N1\tReference T1 D3\tfever\n#1\tAnnotatorNotes T1\tsee D1\n"
    assert ids(tmp_path, "brat", files) == ([("D3",)], "")


def studio(*results):
    task = {"id": 5, "data": {"text": "He saw Port Veil."}, "annotations": [{"result": results}]}
    return {"a.json": json.dumps([task])}


def region(kind="labels", **more):
    value = {"start": 7, "end": 16, "text": "Port Veil", kind: ["P"]}
    return {"id": "r", "type": kind, "value": {**value, **more.pop("value", {})}, **more}


def field(name, text):
    return {"id": "r", "type": "textarea", "from_name": name, "value": {"text": [text]}}


def test_label_studio_has_ids_in_notes_and_named_fields(tmp_path):
    files = studio(region(meta={"text": ["Q1"]}))
    found, said = ids(tmp_path, "label-studio", files)
    assert found == [()] and "'meta'" in said
    assert ids(tmp_path, "label-studio", files, id_key="meta") == ([("Q1",)], "")
    two = studio(region(), field("kb_id", "Q1"), field("comment", "a town"))
    assert ids(tmp_path, "label-studio", two) == ([("Q1",)], "")
    found, said = ids(tmp_path, "label-studio", studio(region(), field("a", "1"), field("b", "2")))
    assert found == [()] and "'a'" in said and "'b'" in said


@pytest.mark.parametrize(
    "place",
    [
        {"start": "/text()[1]", "end": "/text()[1]", "startOffset": 7, "endOffset": 16},
        {"start": "/p[1]", "end": "/p[1]", "globalOffsets": {"start": 7, "end": 16}},
    ],
)
def test_label_studio_hypertext(tmp_path, place):
    files = studio(region("hypertextlabels", value=place), field("wikidata", "Q1"))
    assert ids(tmp_path, "label-studio", files) == ([("Q1",)], "")


def test_prodigy_has_one_choice_for_several_spans(tmp_path):
    spans = [{"start": 7, "end": 16, "label": "P"}, {"start": 18, "end": 22, "label": "P"}]
    task = {"text": "He saw Port Veil, Veil.", "spans": spans, "accept": ["Q1"]}
    found, said = ids(tmp_path, "prodigy", {"a.jsonl": json.dumps(task)})
    assert found == [(), ()] and "'accept'" in said
    spans[0]["wikidata_id"] = "Q1"
    spans[1]["our_code"] = "Q2"
    del task["accept"]
    found, said = ids(tmp_path, "prodigy", {"a.jsonl": json.dumps(task)})
    assert found == [("Q1",), ()] and "'our_code' (1)" in said


def test_tables_have_ids_in_columns_of_many_names(tmp_path):
    table = "id,text,start,end,label,{}\nd1,Blue fever came.,0,10,D,D1\n"
    assert ids(tmp_path, "csv", {"a.csv": table.format("MeSH")}) == ([("D1",)], "")
    found, said = ids(tmp_path, "csv", {"a.csv": table.format("code")})
    assert found == [()] and "'code' (1)" in said
    assert ids(tmp_path, "csv", {"a.csv": table.format("code")}, id_key="code")[0] == [("D1",)]


def test_conllu_has_entities_in_tags(tmp_path):
    words = [
        ("Old", "_"),
        ("Port", "NE=B-LOC|Wiki=Port_Veil"),
        ("Veil", "NE=I-LOC"),
        ("Ada", "NER=S-PER|Our=Q2"),
        ("Bo", "NER=B-PER|wikidata=Q3"),
    ]
    rows = [[str(n), w, w, "X", "_", "_", "0", "dep", "_", m] for n, (w, m) in enumerate(words, 1)]
    text = "# text = …\n" + "\n".join("\t".join(row) for row in rows) + "\n\n"
    found, said = ids(tmp_path, "conllu", {"a.conllu": text})
    assert found == [("Port_Veil",), (), ("Q3",)] and "'Our' (1)" in said


def test_a_format_with_a_place_for_ids_has_no_such_option(tmp_path):
    with pytest.raises(ValueError, match="E124"):
        ids(tmp_path, "pubtator", {"a.pubtator": "1|t|A.\n"}, id_key="x")


def test_known_names_go_before_others_and_empty_ones_after():
    assert find_id({"note": "x", "CUI": "", "mesh": 7}).value == "7"
    assert find_id({"note": "x", "CUI": ""}).unread == ()
    assert find_id({"note": "x", "is_mapped": True}).unread == ("note",)
