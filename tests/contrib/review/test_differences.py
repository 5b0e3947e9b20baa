"""What has changed between two outputs of ``arbo link``, and why."""

import csv
import json

import pytest
import spacy

from spacy_arbo_el import save_pipeline
from spacy_arbo_el.contrib.review.differences import Linked, differences
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.linker import find_linker

from ... import commands
from ...linker.conftest import build
from ...linker.world import DEV, ENTITIES, annotated, docs_of, without_links


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
    assert reason(a, a) == reason(nil, None) == reason(None, nil) == []
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
    docs = [without_links(annotated(nlp, text)) for text in texts]
    for number, doc in enumerate(docs):
        doc.user_data["doc_id"] = f"doc{number}"
    write_docbin(docs, place / "docs.spacy")
    return place


def test_two_pipelines_and_their_outputs_tell_the_same(night, tmp_path):
    """In every format, where the evidence says whether an exemplar has led to the link."""
    files = ("-o", tmp_path / "diff.csv", "-o", tmp_path / "diff.html")
    pipelines = night / "old", night / "new"
    printed = commands.run("diff", *pipelines, "--texts", night / "docs.spacy", *files)
    with (tmp_path / "diff.csv").open(newline="") as file:
        expected = list(csv.DictReader(file))
    reasons = {row["reason"] for row in expected}
    assert {"metal removed", "shop merged into river", "exemplar"} <= reasons, expected
    assert f"{len(expected)} of 10 mentions are linked differently" in printed
    page = (tmp_path / "diff.html").read_text()
    assert page.count("metal removed") == 1 and "changed: entity removed" in page
    for kind in ("jsonl", "parquet", "spacy"):
        outputs = []
        for name in ("old", "new"):
            outputs.append(tmp_path / f"{name}_{kind}")
            command = ("scale", "link", night / name, night / "docs.spacy", "--format", kind)
            commands.run(*command, "--output", outputs[-1])
        kbs = ("--old-kb", night / "kb_old", "--new-kb", night / "kb_new")
        commands.run("diff", *outputs, *kbs, "-o", tmp_path / "again.csv")
        with (tmp_path / "again.csv").open(newline="") as file:
            assert list(csv.DictReader(file)) == expected, kind


def test_files_of_documents_and_tables(night, tmp_path):
    for suffix in ("csv", "jsonl"):
        outputs = [tmp_path / f"{name}.{suffix}" for name in ("old", "new")]
        for output in outputs:
            commands.run("link", night / output.stem, night / "docs.spacy", "--output", output)
        kbs = ("--old-kb", night / "kb_old", "--new-kb", night / "kb_new")
        printed = commands.run("diff", *outputs, *kbs)
        assert "changed: entity removed" in printed or "went: entity removed" in printed
    records = [json.loads(line) for line in outputs[0].read_text().splitlines()]
    assert [record["id"] for record in records][:2] == ["doc0", "doc1"]
    assert "0 of 10 mentions" in commands.run("diff", outputs[0], outputs[0])


def test_what_cannot_be_compared_is_said(night, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "arbo-E848" in commands.run("diff", tmp_path / "empty", tmp_path / "empty", code=1)
    assert "arbo-E849" in commands.run("diff", night / "old", night / "new", code=1)
    assert "arbo-E101" in commands.run("diff", tmp_path / "no", tmp_path / "no", code=1)
    assert "arbo-E835" in commands.run("diff", tmp_path / "a", tmp_path / "b", "-o", "x", code=1)
