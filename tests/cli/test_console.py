"""Commands on consoles that are not UTF-8."""

import io
import json
import sys
import warnings

import pytest
from wasabi import msg, util

from spacy_arbo_el.cli import console

NAME = "Łódź – “ü”"


@pytest.mark.parametrize(
    ("encoding", "plain"),
    [
        ("cp1252", "\\u0141ód\\u017a – “ü”".encode("cp1252")),
        ("ascii", b"\\u0141\\xf3d\\u017a \\u2013 \\u201c\\xfc\\u201d"),
        ("utf8", NAME.encode()),
    ],
)
def test_all_text_is_printed(encoding, plain, monkeypatch):
    streams = [io.TextIOWrapper(io.BytesIO(), encoding, write_through=True) for _ in range(2)]
    monkeypatch.setattr(util, "ENCODING", util.ENCODING)
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    with monkeypatch.context() as patch:
        for name, stream in zip(("stdout", "stderr"), streams):
            patch.setattr(sys, name, stream)
        console.prepare_console()
        print(NAME)
        msg.good(NAME)
        print(NAME, file=sys.stderr)
    out, error = (stream.buffer.getvalue() for stream in streams)
    first, good = out.splitlines()
    assert (first, error.strip()) == (plain, plain)
    assert plain in good and plain != good


def test_entities_are_exported_as_utf_8_to_any_console(monkeypatch, tmp_path):
    from spacy_arbo_el.cli.kb import export_command
    from spacy_arbo_el.kb.knowledge_base import ArboKB

    with ArboKB.create(tmp_path / "kb") as kb:
        kb.add({"id": "a", "title": NAME})
    data = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(data, encoding="cp437", write_through=True))
    export_command(tmp_path / "kb", "-")
    assert json.loads(data.getvalue().decode("utf8")) == {"id": "a", "title": NAME}
