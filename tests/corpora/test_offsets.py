"""Offsets in any unit, through each format and back; what is said where they are doubtful."""

import csv
import io
import json
import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.corpora.read import read
from spacy_arbo_el.records.offsets import CHARACTERS, READINGS, Given, place, places_in

from ..expecting import raises, warns
from .strategies import TEXTS

EMOJI = "💩 He had blue fever in Port Veil."
CRLF = "He was ill.\r\nHe had blue fever\r\nin Port Veil."
MENTIONS = ("blue fever", "Port Veil")


def places_of(text):
    return [(text.index(one), text.index(one) + len(one)) for one in MENTIONS]


def units(text, reading):
    """Each character's offset and that of the end, counted one by one."""
    offsets, at = [], 0
    for number, char in enumerate(text):
        offsets.append(at)
        follows = text[number + 1 : number + 2]
        if reading.startswith("utf16"):
            at += len(char.encode("utf-16-le", "surrogatepass")) // 2
        elif reading.startswith("bytes"):
            at += len(char.encode("utf8"))
        else:
            at += 1
        if "crlf" in reading:
            at += char == "\n" and text[number - 1 : number] != "\r"
        elif "lf" in reading:
            at -= char == "\r" and follows == "\n"
    return [*offsets, at]


def counted(text, mentions, reading):
    offsets = units(text, reading)
    inclusive = reading.endswith("-inclusive")
    return [(offsets[start], offsets[end] - inclusive, text[start:end]) for start, end in mentions]


def trimmed(text, mentions):
    """The mentions without blanks at their ends, one character at a time."""
    found = []
    for start, end in mentions:
        if text[start:end].strip():
            while text[start].isspace():
                start += 1
            while text[end - 1].isspace():
                end -= 1
        found.append((start, end))
    return found


def as_jsonl(text, mentions, reading):
    spans = [
        {"start": start, "end": end, "text": words, "label": "X", "kb_id": "D1"}
        for start, end, words in counted(text, mentions, reading)
    ]
    return json.dumps({"id": "d", "text": text, "mentions": spans})


def as_doccano(text, mentions, reading):
    places = [[s, e, "X:D1"] for s, e, _ in counted(text, mentions, reading)]
    return json.dumps({"text": text, "label": places})


def as_label_studio(text, mentions, reading):
    results = []
    for number, (start, end, words) in enumerate(counted(text, mentions, reading)):
        value = {"start": start, "end": end, "text": words, "labels": ["X"]}
        results.append({"id": f"r{number}", "type": "labels", "value": value})
        results.append({"id": f"r{number}", "type": "textarea", "value": {"text": ["D1"]}})
    return json.dumps([{"data": {"text": text}, "annotations": [{"result": results}]}])


def as_csv(text, mentions, reading):
    file = io.StringIO(newline="")
    rows = csv.writer(file)
    rows.writerow(["id", "text", "start", "end", "mention", "label", "kb_id"])
    rows.writerow(["d", text, "", "", "", "", ""])
    for start, end, words in counted(text, mentions, reading):
        rows.writerow(["d", text, start, end, words, "X", "D1"])
    return file.getvalue()


def as_pubtator(text, mentions, reading):
    lines = [f"1|t|{text}"]
    for start, end, words in counted(text, mentions, reading):
        lines.append(f"1\t{start}\t{end}\t{words}\tX\tD1")
    return "\n".join(lines) + "\n"


WRITERS = {
    "jsonl": as_jsonl,
    "doccano": as_doccano,
    "label-studio": as_label_studio,
    "csv": as_csv,
    "pubtator": as_pubtator,
}
# Those whose files have the words of mentions.
WORDED = sorted(set(WRITERS) - {"doccano"})


@st.composite
def places_in_texts(draw, reading=CHARACTERS, one_line=False):
    text = draw(TEXTS)
    if one_line:
        text = "".join(text.split()) or "a"
    at = st.integers(0, len(text))
    pairs = draw(st.lists(st.tuples(at, at).map(sorted).filter(lambda p: p[0] < p[1]), max_size=4))
    # No unit but a character tells a carriage return from the line feed behind it.
    split = {i for i in range(1, len(text)) if text[i - 1 : i + 1] == "\r\n"}
    pairs = [pair for pair in pairs if not split & set(pair)] if "lf" in reading else pairs
    return text, list(dict.fromkeys(map(tuple, pairs)))


def places_read(folder, format, content, offsets=""):
    path = folder / "annotated.data"
    path.write_bytes(content.encode("utf8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (document,) = read(path, format, offsets=offsets)
    assert {(one.label, one.kb_id) for one in document.mentions} <= {("X", "D1")}
    return document.text, [(one.start, one.end) for one in document.mentions]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("offsets")


@pytest.mark.parametrize("format", WRITERS)
@given(data=st.data())
def test_each_format_gives_the_same_spans_of_any_text(folder, format, data):
    text, mentions = data.draw(places_in_texts(one_line=format == "pubtator"))
    content = WRITERS[format](text, mentions, CHARACTERS)
    assert places_read(folder, format, content) == (text, trimmed(text, mentions))


@pytest.mark.parametrize("format", ["csv", "doccano", "label-studio"])
@given(data=st.data())
def test_offsets_in_a_unit_that_is_given_are_the_same_spans(folder, format, data):
    reading = data.draw(st.sampled_from(READINGS))
    text, mentions = data.draw(places_in_texts(reading))
    content = WRITERS[format](text, mentions, reading)
    assert places_read(folder, format, content, reading) == (text, trimmed(text, mentions))


@given(data=st.data())
def test_offsets_in_any_unit_lead_to_the_words_of_the_file(data):
    reading = data.draw(st.sampled_from(READINGS))
    text, mentions = data.draw(places_in_texts(reading))
    rows = [Given(*row) for row in counted(text, mentions, reading)]
    assert places_in(text, rows, reading) == mentions
    found, _ = place(text, rows)
    assert [text[start:end] for start, end in found] == [row.words for row in rows]


@pytest.mark.parametrize("format", WORDED)
@pytest.mark.parametrize(
    "text, reading",
    [
        (EMOJI, "utf16"),
        (EMOJI, "bytes"),
        (EMOJI, "utf16-inclusive"),
        (CRLF, "lf"),
        ("💩 Ill.\r\n" + CRLF, "utf16-lf"),
        (CRLF, "characters-inclusive"),
        ("One.\nHe had blue fever in Port Veil.", "crlf"),
    ],
)
def test_shifted_offsets_are_put_right_by_the_words_and_said(tmp_path, format, text, reading):
    if format == "pubtator":
        text, reading = EMOJI, "utf16"
    path = tmp_path / "in"
    path.write_bytes(WRITERS[format](text, places_of(text), reading).encode("utf8"))
    with warns(f"W104.*of 1 documents are {reading}, as"):
        (document,) = read(path, format)
    assert tuple(text[one.start : one.end] for one in document.mentions) == MENTIONS


@pytest.mark.parametrize("format", WORDED)
def test_words_that_are_elsewhere_are_an_error_with_the_place(write, format):
    content = WRITERS[format]("He had blue fever.", [(7, 17)], CHARACTERS)
    content = content.replace("had blue fever", "had blue itch.")
    problem = r"line \d: .*the mention is 'blue fever', but the text from 7 to 17 is 'blue itch.'"
    with raises(problem):
        list(read(write(content), format))


@pytest.mark.parametrize(
    "reading, message",
    [("utf16", "W105.*1 of 2 .*'ort Veil.' .*--offsets utf16 0 would"), (CHARACTERS, None)],
)
def test_mentions_within_words_are_counted_where_the_file_lacks_words(
    write, recwarn, reading, message
):
    text = "He had blue fever 💩 in Port Veil."
    list(read(write(as_doccano(text, places_of(text), reading)), "doccano"))
    said = [str(one.message) for one in recwarn]
    assert len(said) == bool(message)
    assert all(re.search(message, one) for one in said)


def test_mentions_within_words_without_a_better_reading_are_counted_too(write):
    with warns("W103.* 1 of 1 .*'lue feve' in document"):
        list(read(write(as_doccano("a blue fever", [(3, 11)], CHARACTERS)), "doccano"))


def test_an_unknown_reading_and_a_reader_without_the_option_are_refused(write):
    with raises("E751.*utf16-lf.*'utf-16'"):
        list(read(write("{}"), "jsonl", offsets="utf-16"))
    with raises("E043.*id_key"):
        list(read(write("1|t|A.\n"), "pubtator", id_key="x"))
