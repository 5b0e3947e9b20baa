"""Malformed and hostile files: each reader gives documents, or an error with file and line."""

import copy
import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin

from spacy_arbo_el.corpora.annotated import AnnotatedMention, AnnotatedText
from spacy_arbo_el.corpora.convert import convert_corpus
from spacy_arbo_el.corpora.docbin import read_docs, write_docbin
from spacy_arbo_el.corpora.docs import to_doc
from spacy_arbo_el.corpora.read import read, read_ids

JSONL = {
    "id": "d1",
    "text": "Ada met Lovelace.",
    "mentions": [
        {"start": 0, "end": 3, "label": "PERSON", "kb_id": "a|b", "cluster": ""},
        {"start": 8, "end": 16, "label": "PERSON", "kb_id": None, "cluster": "new-1"},
    ],
}
PUBTATOR = "1|t|A title\n1|a|An abstract\n1\t0\t7\tA title\tDisease\tD1|D2\n1\tCID\tD1\tD2\n\n"
VALID = {
    "jsonl": (json.dumps(JSONL) + "\n").encode(),
    "pubtator": PUBTATOR.encode(),
}
HALF = "\ud83d"
WRONG = [
    None, True, False, 0, -1, 3, 10**30, 1.0, 2.5, float("nan"), float("inf"), "", " ", "0", "NIL",
    "x\x00y", HALF, "\ufeff", "\r\n", "\u2028", "|", "-1", "x" * 10_000, [], [[]], [None], {},
    {"start": 0}, [[[[[[[[[[]]]]]]]]]], ["a", "b", "c", "d"], [0, 1, "C"],
]  # fmt: skip
DEEP = 100_000


def places(value, path=()):
    """The paths to all values inside a JSON value."""
    yield path
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    value = copy.deepcopy(value)
    at = value
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return value


def removed(value, path):
    value = copy.deepcopy(value)
    at = value
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]
    return value


def check(nlp, path, format):
    """Read a file to the end and convert it. RETURNS: Whether it is valid."""
    try:
        texts = list(read(path, format))
    except ValueError as error:
        assert f"{path}, line " in str(error) and error.__class__ is ValueError, error
        assert len(str(error)) < 2000, "a message is no copy of the file"
        return False
    docs = [to_doc(nlp, text) for text in texts]
    for doc in (
        DocBin().from_bytes(DocBin(docs=docs, store_user_data=True).to_bytes()).get_docs(nlp.vocab)
    ):
        assert all(span.text for span in doc.spans["mentions"])
    return True


def test_wrong_values_everywhere_are_errors_with_file_and_line(nlp, tmp_path):
    """Each value of a record in turn is replaced by each of many, or removed."""
    path = tmp_path / "corpus"
    variants = [replaced(JSONL, at, new) for at in places(JSONL) for new in WRONG]
    variants += [removed(JSONL, at) for at in places(JSONL) if at]
    valid = 0
    for variant in variants:
        path.write_text(json.dumps(variant) + "\n", encoding="utf8")
        valid += check(nlp, path, "jsonl")
    assert 0 < valid < len(variants) / 3


BYTES = [
    b"\x00", b"\xff", b"\xfe\xff", b"\xed\xa0\xbd", b"\xc0\x80", b"\xef\xbb\xbf", b"\r", b"\r\n",
    b"\n", b"\t", b"|", b'"', b"\\", b"\\ud83d", b"NaN", b"Infinity", b"{", b"[", b"]", b"}",
    b"1e999", "\u2028".encode(), "\x85".encode(), "🙂".encode(), b"-1", b"9" * 5000, b",", b" ",
]  # fmt: skip


@pytest.mark.parametrize("format", VALID)
@given(data=st.data())
def test_bytes_put_in_or_taken_out_are_errors_with_file_and_line(nlp, tmp_path, format, data):
    content = VALID[format] * data.draw(st.integers(0, 2))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        gone = data.draw(st.integers(0, 3))
        new = data.draw(st.sampled_from(BYTES) | st.binary(max_size=40))
        content = content[:at] + new + content[at + gone :]
    path = tmp_path / "corpus"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(nlp, path, format)


@pytest.mark.parametrize("format", VALID)
@pytest.mark.parametrize(
    "content",
    [
        b"[" * DEEP,
        b'{"id": ' * DEEP,
        b'{"id": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"id": ' + b"9" * 5000 + b"}",
        b'{"id": NaN}',
        b"x" * 10_000_000,
        b'{"id": "' + b"x" * 10_000_000,
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
        b"\x00" * 1000,
        b"\xff\xfe{\x00}\x00",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_no_json_and_endless_lines_are_errors_with_file_and_line(nlp, tmp_path, format, content):
    path = tmp_path / "corpus"
    path.write_bytes(content + b"\n")
    assert not check(nlp, path, format)


def test_documents_of_10_mb_on_one_line_are_read(nlp, tmp_path):
    text = "word " * 2_000_000
    (tmp_path / "a").write_text(json.dumps({**JSONL, "text": text}), encoding="utf8")
    (document,) = read(tmp_path / "a", "jsonl")
    assert len(document.text) == len(text)
    (tmp_path / "b").write_text(f"1|t|{text}\n1|a|\n", encoding="utf8")
    (document,) = read(tmp_path / "b", "pubtator")
    assert len(document.text) == len(text) + 1


@pytest.mark.parametrize("format", VALID)
def test_carriage_returns_and_a_byte_order_mark_change_nothing(nlp, tmp_path, format):
    path, other = tmp_path / "plain", tmp_path / "windows"
    path.write_bytes(VALID[format])
    other.write_bytes(b"\xef\xbb\xbf" + VALID[format].replace(b"\n", b"\r\n"))
    assert list(read(path, format)) == list(read(other, format))


@pytest.mark.parametrize("format", VALID)
def test_no_files_and_folders_are_errors_that_name_them(nlp, tmp_path, format):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        list(read(tmp_path / "nowhere", format))
    with pytest.raises((ValueError, OSError), match=str(tmp_path)):
        list(read(tmp_path, format))
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="no documents"):
        convert_corpus(tmp_path / "empty", tmp_path / "out.spacy", format=format, nlp=nlp)


@given(st.binary(max_size=30))
def test_any_file_of_ids_is_read_or_an_error_with_file_and_line(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "ids.txt"
    path.write_bytes(content)
    try:
        read_ids(path)
    except ValueError as error:
        assert f"{path}, line " in str(error) and error.__class__ is ValueError


@pytest.mark.parametrize("kind", ["flip", "cut"])
@given(data=st.data())
def test_damaged_spacy_files_are_read_or_an_error_with_the_file(nlp, tmp_path, kind, data):
    path = tmp_path / "corpus.spacy"
    mention = AnnotatedMention(0, 3, "X", ("Q1",))
    write_docbin([to_doc(nlp, AnnotatedText("d", "Ada met Ada.", (mention,)))], path)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if kind == "flip":
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content if kind == "flip" else content[:at])
    try:
        list(read_docs(path, nlp.vocab))
    except ValueError as error:
        assert str(path) in str(error)
