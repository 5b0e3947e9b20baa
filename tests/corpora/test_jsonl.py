import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.corpora.annotated import AnnotatedMention, AnnotatedText
from spacy_arbo_el.corpora.json_documents import JsonlReader

from .strategies import annotated_texts

MENTION = {"start": 0, "end": 3, "label": "PERSON", "kb_id": "ada"}


def document(**changes):
    return {"id": "d1", "text": "Ada met Ada.", "mentions": [MENTION], **changes}


def mention(**changes):
    return document(mentions=[MENTION, {**MENTION, **changes}])


def without(record, key):
    return {name: value for name, value in record.items() if name != key}


def test_read_jsonl(write):
    records = [
        document(),
        document(id="d2", mentions=[{**MENTION, "kb_id": None, "cluster": "new-1"}], more=1),
        document(id="d3", mentions=[{**MENTION, "kb_id": "B|A"}, {**MENTION, "kb_id": "NIL"}]),
        document(id="d4", text="", mentions=[]),
    ]
    first, second, third, fourth = JsonlReader().read(write("\n\n".join(map(json.dumps, records))))
    assert first == AnnotatedText(
        "d1", "Ada met Ada.", (AnnotatedMention(0, 3, "PERSON", ("ada",)),)
    )
    assert second.mentions == (AnnotatedMention(0, 3, "PERSON", (), "new-1"),)
    assert [m.kb_ids for m in third.mentions] == [("B", "A"), ()]
    assert fourth == AnnotatedText("d4", "")


INVALID = [
    ("{", "JSON over several lines"),
    ("[]", "expected a JSON object, got a list"),
    ("3", "expected a JSON object, got the number 3"),
    ("null", "expected a JSON object, got null"),
    ("[" * 100_000, "no valid JSON"),
    ('{"id": ' + "9" * 5000 + "}", "no valid JSON"),
    (document(id=" "), "'id' must not be empty"),
    (without(document(), "text"), "the key 'text' is missing"),
    (document(text=None), "'text' must be a string, got null"),
    (document(text="Ada \ud83d"), "'text' holds half a character"),
    (without(document(), "mentions"), "the key 'mentions' is missing"),
    (document(mentions={}), "'mentions' must be a list, got an object"),
    (document(mentions=[MENTION, 1]), "mention 2: must be an object, got the number 1"),
    (mention(start="0"), "mention 2: 'start' must be a whole number, got a string"),
    (mention(start=True), "mention 2: 'start' must be a whole number, got true or false"),
    (mention(end=2.5), "mention 2: 'end' must be a whole number, got the number 2.5"),
    (mention(start=-1), "mention 2: a mention from -1 to 3 doesn't fit a text of 12"),
    (mention(start=3), "mention 2: a mention from 3 to 3 doesn't fit"),
    (mention(end=13), "mention 2: a mention from 0 to 13 doesn't fit a text of 12"),
    (mention(label=["X"]), "mention 2: 'label' must be a string, got a list"),
    (mention(kb_id=7), "mention 2: 'kb_id' must be a string, got the number 7"),
    (document(mentions=[without(MENTION, "kb_id")]), "mention 1: the key 'kb_id' is missing"),
    (mention(cluster=7), "mention 2: 'cluster' must be a string, got the number 7"),
]


@pytest.mark.parametrize(("record", "problem"), INVALID, ids=[problem for _, problem in INVALID])
def test_invalid_line_is_an_error_with_file_line_and_problem(write, record, problem):
    line = record if isinstance(record, str) else json.dumps(record)
    path = write(f"{json.dumps(document(id='d0'))}\n\n{line}\n", "invalid.jsonl")
    texts = JsonlReader().read(path)
    assert next(texts).id == "d0"
    with pytest.raises(ValueError) as caught:
        next(texts)
    assert f"{path}, line 3: " in str(caught.value)
    assert problem in str(caught.value)


def test_duplicate_id_is_an_error_that_names_both_lines(write):
    path = write("\n".join(json.dumps(document()) for _ in range(2)))
    with pytest.raises(ValueError, match="line 2: the document id 'd1' was used before, in line 1"):
        list(JsonlReader().read(path))


@given(st.lists(annotated_texts(), max_size=4, unique_by=lambda text: text.id))
def test_every_annotated_text_is_read_as_it_was(tmp_path, texts):
    path = tmp_path / "texts.jsonl"
    lines = []
    for text in texts:
        mentions = [{**asdict(mention), "kb_id": mention.kb_id} for mention in text.mentions]
        lines.append(json.dumps({"id": text.id, "text": text.text, "mentions": mentions}))
    path.write_text("\n".join(lines), encoding="utf8")
    assert list(JsonlReader().read(path)) == texts
