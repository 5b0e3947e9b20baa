"""Commands on consoles that are not UTF-8."""

import io
import json
import sys

import pytest
from wasabi import msg

from spacy_arbo_el.cli import console

NAME = "Łódź – “ü” →"


def written(encoding, text):
    """What a console of an encoding gets."""
    streams = [io.BytesIO(), io.BytesIO()]
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in zip(("stdout", "stderr"), streams):
            patch.setattr(sys, name, io.TextIOWrapper(stream, encoding, write_through=True))
        console.write_any_text()
        print(text)
        msg.good(text)
        console.write_line(text)
        print(text, file=sys.stderr)
        out, error = (stream.getvalue() for stream in streams)
    return out.splitlines(), error.strip()


@pytest.mark.parametrize(
    ("encoding", "plain"),
    [
        ("cp1252", "\\u0141ód\\u017a – “ü” ->".encode("cp1252")),
        ("cp437", '\\u0141\xf3d\\u017a - "ü" ->'.encode("cp437")),
        ("ascii", b'\\u0141\\xf3d\\u017a - "\\xfc" ->'),
        ("utf8", NAME.encode()),
    ],
)
def test_all_text_is_printed_and_data_is_utf_8(encoding, plain):
    (first, good, data), error = written(encoding, NAME)
    assert (first, error) == (plain, plain)
    assert plain in good and plain != good
    assert data == NAME.encode()


def test_a_console_that_is_utf_8_stays_unchanged(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="UTF8", errors="strict")
    monkeypatch.setattr(sys, "stdout", stream)
    console.write_any_text()
    assert stream.errors == "strict"


def test_entities_are_exported_as_utf_8_to_any_console(monkeypatch, tmp_path):
    from spacy_arbo_el.cli.kb_edit import export_command
    from spacy_arbo_el.kb.knowledge_base import ArboKB

    with ArboKB.create(tmp_path / "kb") as kb:
        kb.add({"id": "a", "title": NAME})
    data = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(data, encoding="cp437"))
    export_command(tmp_path / "kb", "-")
    assert json.loads(data.getvalue().decode("utf8")) == {"id": "a", "title": NAME}
