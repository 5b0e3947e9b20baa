"""Formats of annotation tools: what is read, what is refused, and what --skip-bad leaves out."""

import json

import pytest

from spacy_arbo_el.corpora.annotated import AnnotatedMention
from spacy_arbo_el.corpora.convert import convert_corpus
from spacy_arbo_el.corpora.read import read as read_corpus

ADA = AnnotatedMention(0, 3, "PERSON", ("Q7259",))
BO = AnnotatedMention(8, 10, "PERSON")
TEXT = "Ada met Bo."
SPANS = [
    {"start": 0, "end": 3, "label": "PERSON", "kb_id": "Q7259"},
    {"start": 8, "end": 10, "label": "PERSON"},
]


def region(start, end, kind, value):
    place = {"start": start, "end": end}
    return {"id": f"r{start}", "type": kind, "value": {**place, **value}}


# The last annotation counts that was not cancelled.
REGIONS = [
    {"result": [region(0, 10, "labels", {"labels": ["PLACE"]})]},
    {
        "result": [
            region(0, 3, "labels", {"labels": ["PERSON"]}),
            region(0, 3, "taxonomy", {"taxonomy": [["people", "Q7259"]]}),
            region(8, 10, "labels", {"labels": ["PERSON"]}),
            region(8, 10, "textarea", {"text": ["NIL"]}),
            {"type": "choices", "value": {"choices": ["checked"]}},
        ]
    },
    {"result": [], "was_cancelled": True},
]


def lines(*records):
    return "\n".join(json.dumps(record) for record in records)


def read(write, content, format, name="annotated.txt"):
    return list(read_corpus(write(content, name), format))


@pytest.mark.parametrize(
    "format, content, doc_id",
    [
        (
            "jsonl",
            lines({"text": TEXT, "mentions": [{**SPANS[0]}, {**SPANS[1], "kb_id": None}]}),
            0,
        ),
        ("prodigy", lines({"text": TEXT, "spans": SPANS, "meta": {"id": "m7"}}), "m7"),
        (
            "doccano",
            lines({"id": 7, "text": TEXT, "label": [[0, 3, "PERSON:Q7259"], [8, 10, "PERSON"]]}),
            "7",
        ),  # noqa: E501
        (
            "doccano",
            lines(
                {
                    "text": TEXT,
                    "entities": [
                        {"start_offset": 0, "end_offset": 3, "label": "PERSON", "kb_id": "Q7259"},
                        {"start_offset": 8, "end_offset": 10, "label": "PERSON"},
                    ],
                }
            ),
            0,
        ),
        ("label-studio", json.dumps([{"data": {"text": TEXT}, "annotations": REGIONS}]), 0),
        ("spacy-json", json.dumps([{"text": TEXT, "ents": SPANS}], indent=1), 0),
        ("spacy-json", lines({"text": TEXT, "ents": SPANS}), 0),
        (
            "spacy-json",
            json.dumps(
                [
                    TEXT,
                    {
                        "entities": [[0, 3, "PERSON"], [8, 10, "PERSON"]],
                        "links": {"0,3": {"Q7259": 1.0, "Q1": 0.0}},
                    },
                ]  # noqa: E501
            ),
            0,
        ),
        (
            "csv",
            f"Text,start,end,label,kb_id\n{TEXT},0,3,PERSON,Q7259\n{TEXT},8,10,PERSON,NIL\n",
            2,
        ),
        (
            "csv",
            f"id,text,mention,label,kb_id\nd1,{TEXT},Ada,PERSON,Q7259\nd1,{TEXT},Bo,PERSON,\n",
            "d1",
        ),  # noqa: E501
    ],
)
def test_formats_are_read_and_ids_made_up_where_missing(write, format, content, doc_id):
    (document,) = read(write, content, format)
    assert (document.text, document.mentions) == (TEXT, (ADA, BO))
    assert document.id == (f"annotated-{doc_id or 1}" if isinstance(doc_id, int) else doc_id)


def test_tasks_of_label_studio_without_annotations_are_left_out_and_wrong_ones_said(write):
    tasks = [{"data": {"text": TEXT}}, {"data": {"text": TEXT, "id": 5}, "annotations": REGIONS}]
    (document,) = read(write, json.dumps(tasks), "label-studio")
    assert document.id == "5"
    wrong = {"data": {"text": TEXT}, "annotations": [{"result": [{"value": 3}]}]}
    with pytest.raises(ValueError, match="line 2"):
        read(write, json.dumps([tasks[1], wrong]), "label-studio")
    with pytest.raises(ValueError, match="line 1: no valid JSON"):
        read(write, "[", "label-studio")


def test_a_task_of_prodigy_names_the_entity_of_a_span_of_another(write):
    spans = [{**span, "kb_id": None} for span in SPANS]
    plain, task = {"text": TEXT, "spans": spans}, {"text": TEXT, "spans": SPANS[:1]}
    chosen = {**task, "accept": ["Q7259"]}
    for order in ((plain, chosen), (chosen, plain), (plain, chosen, chosen)):
        (document,) = read(write, lines(*order), "prodigy")
        assert sorted(document.mentions, key=lambda m: m.start) == [ADA, BO]
    with pytest.raises(ValueError, match="line 2: the mention 'Ada' from 0 to 3 is Q1, and Q7259"):
        read(write, lines(chosen, {**task, "accept": ["Q1"]}), "prodigy")


def test_lines_of_a_table_with_the_same_words_are_places_one_after_the_other(write):
    content = "text,mention,kb_id\n" + "\n".join(
        f"Flu here and Flu there.,{words},{kb_id}"
        for words, kb_id in (("Flu", "a"), ("here", "h"), ("Flu", "b"), ("Flu", "a"))
    )
    (document,) = read(write, content, "csv", "a.csv")
    assert [(m.start, m.kb_id) for m in document.mentions] == [
        (0, "a"), (4, "h"), (13, "b"), (0, "a")
    ]  # fmt: skip


def test_tasks_of_prodigy_about_one_text_are_one_document(write, nlp, tmp_path):
    span, other = ({k: v for k, v in s.items() if k != "kb_id"} for s in SPANS)
    content = lines(
        {"text": TEXT, "spans": [span], "accept": ["Q7259"], "answer": "accept"},
        {"text": TEXT, "spans": [other], "accept": ["NIL_otherLink"], "answer": "accept"},
        {"text": "Skipped.", "spans": [], "answer": "reject"},
    )
    (document,) = read(write, content, "prodigy")
    assert document.mentions == (ADA, BO)
    path, out = write(content), tmp_path / "o.spacy"
    counts = convert_corpus(path, out, format="prodigy", nlp=nlp)
    assert (counts["docs"], counts["excluded"], counts["nil"]) == (1, 1, 1)


BAD = {
    "jsonl": (lines({"text": TEXT, "mentions": []}), '{"text": "Ada"', 2),
    "prodigy": (lines({"text": TEXT}), lines({"text": "A", "spans": [{"start": 0, "end": 2}]}), 2),
    "doccano": (lines({"text": TEXT}), lines({"id": "x"}), 2),
    "spacy-json": (lines({"text": TEXT}), lines({"text": "A", "ents": 3}), 2),
    "csv": (f"id,text,start,end\nd1,{TEXT},0,3", "d2,Text,3,9", 3),
    "pubtator": ("1|t|Flu.\n1|a|B.\n", "2|t|Flu.\n2|a|B.\n2\t0\t9\tFlu\tX\tD1\n", 6),
}


@pytest.mark.parametrize("format", BAD)
def test_skip_bad_lists_every_bad_line_and_goes_on(write, nlp, tmp_path, format):
    good, bad, line = BAD[format]
    last = {"csv": "d3,T,,", "pubtator": "3|t|Flu.\n3|a|B.\n"}.get(format, good.replace("1", "3"))
    path = write("\n".join([good, bad, last.replace("Ada", "Ida")]))
    with pytest.raises(ValueError, match=f"line {line}"):
        convert_corpus(path, tmp_path / "o.spacy", format=format, nlp=nlp)
    assert not (tmp_path / "o.spacy").exists()
    problems = []
    counts = convert_corpus(path, tmp_path / "o.spacy", format=format, nlp=nlp, bad=problems.append)
    assert counts["docs"] == 2
    assert len(problems) == 1 and f"line {line}" in str(problems[0])


@pytest.mark.parametrize(
    "content, problem",
    [
        ("", "the file is empty"),
        ("id,start\nd,1\n", "no column 'text'"),
        ("text,text\na,b\n", "'text' occurs twice"),
        ("id,text\nd\n", "expected 2 columns"),
        ("text,mention\nAda,Bo\n", "does not contain the mention 'Bo'"),
        ("text,start,end\nAda,x,3\n", "'start' must be a whole number"),
        ("text,start,end\nAda,²,3\n", "'start' must be a whole number"),
        ("text,start,end,mention\nAda,0,2,Bo\n", "the mention is 'Bo', but the text"),
        ("id,text\nd,Ada\nd,Bo\n", "another text in an earlier line"),
        ('text\n"Ada" x\n', "no valid table"),
    ],
)
def test_invalid_tables_are_errors_with_file_and_line(write, content, problem):
    with pytest.raises(ValueError, match=rf"annotated.csv, line \d+: .*{problem}"):
        read(write, content, "csv", "annotated.csv")


def test_tsv_text_of_several_lines_and_rows_without_mentions(write):
    first, second = read(write, 'text\tid\n"A\nb, c"\tx\nD\ty\n', "csv", "a.tsv")
    assert (first.id, first.text, first.mentions) == ("x", "A\nb, c", ())
    assert second.text == "D"
