"""BioC and brat; formats by name and content; files of other kinds, which are named."""

import json

import pytest

from spacy_arbo_el.corpora.annotated import AnnotatedMention
from spacy_arbo_el.corpora.read import known_format_of, read
from spacy_arbo_el.kb import loaders

TEXT = "💩 Blue fever. He had blue fever in Port Veil."
FEVER = AnnotatedMention(21, 31, "Disease", ("D1",))
VEIL = AnnotatedMention(35, 44, "Place")


def annotation(start, words, label, kb_id):
    infons = {"type": label, "identifier": kb_id} if kb_id else {"type": label}
    locations = [{"offset": start, "length": len(words)}]
    return {"infons": infons, "text": words, "locations": locations}


BIOC = {
    "documents": [
        {
            "id": "7",
            "passages": [
                {"offset": 0, "text": TEXT[:13]},
                {
                    "offset": 14,
                    "text": TEXT[14:],
                    "annotations": [
                        annotation(21, "blue fever", "Disease", "D1"),
                        annotation(35, "Port Veil", "Place", ""),
                        {**annotation(21, "blue", "X", ""), "locations": [{}, {}]},
                    ],
                },
            ],
        }
    ]
}


def bioc_xml(utf16=0):
    rows = ""
    for start, words, label, kb_id in ((21, "blue fever", "Disease", "D1"), (35, "Port Veil", "Place", "")):  # fmt: skip  # noqa: E501
        identifier = f'<infon key="MESH">{kb_id}</infon>' if kb_id else ""
        rows += (
            f'<annotation id="1"><infon key="type">{label}</infon>{identifier}'
            f'<location offset="{start + utf16}" length="{len(words)}"/>'
            f"<text>{words}</text></annotation>"
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><collection><document><id>7</id>'
        f"<passage><offset>0</offset><text>{TEXT[:13]}</text></passage>"
        f"<passage><offset>{14 + utf16}</offset><text>{TEXT[14:]}</text>{rows}</passage>"
        "</document></collection>"
    )


@pytest.mark.parametrize("name", ["a.json", "a.xml", "a.txt"])
def test_bioc(write, name):
    content = bioc_xml() if name != "a.json" else json.dumps(BIOC)
    (document,) = read(write(content, name), "")
    assert (document.id, document.text, document.mentions) == ("7", TEXT, (FEVER, VEIL))


def test_mentions_of_bioc_in_several_pieces_are_counted(write):
    pieces = '<location offset="17" length="3"/><location offset="21" length="4"/>'
    content = bioc_xml().replace("</annotation>", f"</annotation><annotation>{pieces}</annotation>")
    for path in (write(json.dumps(BIOC), "a.json"), write(content, "a.xml")):
        count = 1 + (path.suffix == ".xml")
        message = f"{path.name}: {count} mentions in several pieces .* in 1 documents.*'7'"
        with pytest.warns(UserWarning, match=message):
            (document,) = read(path, "")
        assert document.mentions == (FEVER, VEIL)


def test_bioc_in_utf_16_units_has_the_same_words(write):
    (document,) = read(write(bioc_xml(utf16=1), "a.xml"), "")
    words = [document.text[one.start : one.end] for one in document.mentions]
    assert words == ["blue fever", "Port Veil"]


def test_wrong_bioc_is_an_error_with_its_place(write):
    with pytest.raises(ValueError, match=r"line 1: .*the mention is 'blue fever', but the text"):
        list(read(write(bioc_xml().replace('"21"', '"20"').replace("had blue", "had blux"), "a.xml"), ""))  # fmt: skip  # noqa: E501
    with pytest.raises(ValueError, match="line 1: no valid XML"):
        list(read(write("<collection><a></collection>", "a.xml"), ""))


def test_brat(tmp_path):
    folder = tmp_path / "notes" / "a"
    folder.mkdir(parents=True)
    (folder / "d.txt").write_text(TEXT, "utf8")
    lines = [
        "T1\tDisease 21 31\tblue fever",
        "T2\tPlace 35 44\tPort Veil",
        "T3\tX 0 1;3 4\t💩 l",
        "N1\tReference T1 D1\tblue fever",
        "R1\tIn Arg1:T1 Arg2:T2",
        "#1\tAnnotatorNotes T1\tsure",
    ]
    (folder / "d.ann").write_text("\n".join(lines), "utf8")
    with pytest.warns(UserWarning, match="1 mentions in several pieces .*'a/d'"):
        (document,) = read(tmp_path / "notes", "")
    assert (document.id, document.mentions) == ("a/d", (FEVER, VEIL))
    (alone,) = read(folder / "d.ann", "")
    assert (alone.id, alone.mentions) == ("d", document.mentions)
    (folder / "d.ann").write_text("T1\tDisease 18 28\tblue fever\nT2\tPlace x\ty", "utf8")
    problems = []
    (left,) = read(tmp_path / "notes", "brat", problems.append)
    assert left.mentions == () and ["line 2" in str(one) for one in problems] == [True, False]


@pytest.mark.parametrize(
    ("name", "start", "format"),
    [
        ("a.jsonl", '{"id": "1", "text": "x", "mentions": []}', "jsonl"),
        ("a.jsonl", '{"text": "x", "spans": []}', "prodigy"),
        ("a.json", '[{"id": 1, "data": {"text": "x"}, "annotations": []}]', "label-studio"),
        ("a.csv", "id,text\n", "csv"),
        ("a.tsv", "id\ttext\n", "csv"),
        ("a.txt", "903|t|Blue fever.\n", "pubtator"),
        ("a.pubtator", "\n903|t|Blue fever.\n", "pubtator"),
    ],
)
def test_formats_of_corpora_by_name_and_content(write, name, start, format):
    assert known_format_of(write(start, name)) == format


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.xml", "<a/>", "XML file"),
        ("a.xmi", "<a/>", "UIMA CAS"),
        ("a.tsv", "# text = x\n", "conllu"),
        ("a.yaml", "a: b\n", "YAML file"),
        ("a.tsv", "#FORMAT=WebAnno TSV 3.2\n", "webanno"),
        ("a.jsonl", b"PK\x03\x04x", "zip archive or .xlsx"),
        ("a.csv", b"PK\x03\x04x", "zip archive or .xlsx"),
        ("a.parquet", b"PAR1x", "Parquet file"),
    ],
)
def test_files_of_other_kinds_are_named(write, name, content, kind):
    path = write(content, name)
    with pytest.raises(ValueError, match=f"E119.*{kind}"):
        list(read(path, "jsonl"))
    with pytest.raises(ValueError, match=f"E119.*{kind}"):
        loaders.known_format_of(path)


def test_json_over_several_lines_and_old_line_ends_are_said(write):
    with pytest.raises(ValueError, match="line 1: JSON over several lines"):
        list(read(write('{\n "text": "x"}', "a.jsonl"), "jsonl"))
    with pytest.raises(ValueError, match="carriage return alone"):
        list(read(write("id,text\r1,x\r", "a.csv"), "csv"))
