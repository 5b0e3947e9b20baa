"""What has changed between two outputs of ``arbo link``, and why."""

import csv

import pytest
import spacy

from spacy_arbo_el import ArboKB, Entity, find_linker, save_pipeline
from spacy_arbo_el.contrib.review.differences import Linked, differences
from spacy_arbo_el.corpora.docbin import write_docbin

from ... import commands
from ...linker.conftest import build
from ...linker.world import DEV, ENTITIES, docs_of
from .serve.world import documents


def kb_of(*ids):
    return ArboKB(spacy.blank("xx").vocab, [Entity(one, one) for one in ids])


def reason(was, now, old=None, new=None):
    before = {} if was is None else {("d", 0, 1): was}
    after = {} if now is None else {("d", 0, 1): now}
    found = differences(before, after, old, new)
    return [(one.kind, one.reason) for one in found]


def test_each_reason():
    a, b, nil = Linked("x", "A"), Linked("x", "B"), Linked("x", "NIL")
    taught = Linked("x", "B", evidence=("B", "f0:3:4", "0:1"))
    merged = kb_of("A", "B")
    merged.merge("A", "B")
    assert reason(a, a) == []
    assert reason(nil, None) == []
    assert reason(None, nil) == []
    assert reason(a, b) == [("changed", "probability moved")]
    assert reason(a, b, kb_of("A"), kb_of("A", "B")) == [("changed", "B added")]
    assert reason(a, nil, kb_of("A"), kb_of("B")) == [("went", "A removed")]
    assert reason(a, b, kb_of("A", "B"), merged) == [("changed", "A merged into B")]
    assert reason(a, taught, kb_of("A", "B"), kb_of("A", "B")) == [("changed", "exemplar")]
    assert reason(taught, a) == [("changed", "exemplar gone")]
    assert reason(nil, b) == [("appeared", "probability moved")]
    assert reason(None, b) == [("appeared", "mention found")]
    assert reason(b, None) == [("went", "mention not found")]


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Two pipelines, before and after a night's edits, and documents."""
    place, nlp = tmp_path_factory.mktemp("diff"), build(train=[])
    save_pipeline(nlp, place / "old")
    ArboKB(nlp.vocab, ENTITIES).to_disk(place / "kb_old")
    linker = find_linker(nlp)
    linker.kb.remove("metal")
    linker.kb.merge("shop", "river")
    linker.feedback.add_exemplars(docs_of(nlp, ["A Qux is a [zorblat|cat] here."]))
    save_pipeline(nlp, place / "new")
    linker.kb.to_disk(place / "kb_new")
    texts = [*DEV, "We saw a [zorblat|x] here.", "Some [quicksilver|metal] ran."]
    write_docbin(documents(nlp, texts), place / "docs.spacy")
    return place


def test_outputs_of_all_formats_tell_the_same(night, tmp_path):
    kbs = ("--old-kb", night / "kb_old", "--new-kb", night / "kb_new")
    found = []
    for kind in ("jsonl", "parquet", "spacy"):
        outputs = []
        for name in ("old", "new"):
            outputs.append(tmp_path / f"{name}_{kind}")
            command = ("scale", "link", night / name, night / "docs.spacy", "--format", kind)
            commands.run(*command, "--output", outputs[-1])
        printed = commands.run("diff", *outputs, *kbs, "-o", tmp_path / "diff.csv")
        with (tmp_path / "diff.csv").open(newline="") as file:
            found.append(list(csv.DictReader(file)))
        assert f"{len(found[0])} of 10 mentions are linked differently" in printed
    assert found[0] == found[1]
    assert found[1] == found[2]
    reasons = {row["reason"] for row in found[0]}
    assert {"metal removed", "shop merged into river", "exemplar"} <= reasons, found
    for name in ("links.csv", "links.jsonl"):
        output = tmp_path / name
        commands.run("link", night / "new", night / "docs.spacy", "--output", output)
        # As Excel saves it.
        (marked := tmp_path / f"marked.{name}").write_bytes(b"\xef\xbb\xbf" + output.read_bytes())
        assert "0 of 10 mentions" in commands.run("diff", output, marked)


def test_what_cannot_be_compared_is_said(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "arbo-E848" in commands.run("diff", tmp_path / "empty", tmp_path / "empty", code=1)
    assert "arbo-E101" in commands.run("diff", tmp_path / "no", tmp_path / "no", code=1)
    for name, text, error in (("a.csv", "id,title\n1,A\n", "E100"), ("a.jsonl", "{}", "E848")):
        (tmp_path / name).write_text(text)
        assert error in commands.run("diff", tmp_path / name, tmp_path / name, code=1)
    assert "arbo-E835" in commands.run("diff", tmp_path / "a", tmp_path / "b", "-o", "x", code=1)
