"""Runs in shards without Ray: the same links as ``nlp.pipe``, parts, restarts, errors."""

import json
import sys
from dataclasses import replace

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_arbo_el import find_linker, links_to_dicts, load_pipeline, save_pipeline
from spacy_arbo_el.contrib.scale.identity import fingerprint
from spacy_arbo_el.contrib.scale.job import part_of, summed
from spacy_arbo_el.contrib.scale.runs import discover_in_shards, link_in_shards
from spacy_arbo_el.contrib.scale.shards import Shard
from spacy_arbo_el.contrib.scale.worker import ShardWorker
from spacy_arbo_el.corpora.read import read_documents
from spacy_arbo_el.show.frames import rows_of

from ...commands import run
from ...expecting import raises
from .conftest import N_DOCUMENTS, THRESHOLD, above, ordered, rows_in


@pytest.fixture(scope="module")
def expected(model, corpus):
    """The links of ``nlp.pipe``, as rows."""
    nlp = load_pipeline(model, config=above(THRESHOLD))
    docs = list(nlp.pipe(read_documents(corpus, nlp)))
    rows = ordered(rows_of(docs, find_linker(nlp).mentions.getter, "arbo"))
    assert any(row["kb_id"] == "NIL" for row in rows)
    assert any(row["title"] for row in rows)
    return rows


def test_shards_have_the_links_of_nlp_pipe(make_job, expected):
    job = make_job()
    reports = list(link_in_shards(job))
    assert rows_in(job.folder) == expected
    assert [report.shard for report in reports] == list(range(8))
    summary = json.loads((job.folder / "summary.json").read_text())
    linked = sum(row["kb_id"] != "NIL" for row in expected)
    counts = N_DOCUMENTS, len(expected), linked, len(expected) - linked, 0
    assert tuple(summary[n] for n in ("documents", "mentions", "linked", "nil", "errors")) == counts
    # A run that was killed before its summary.
    (job.folder / "summary.json").unlink()
    assert not list(link_in_shards(job)), "nothing is left to do"
    assert json.loads((job.folder / "summary.json").read_text()) == summary


def test_parquet_and_docbin_have_the_same_links(make_job, expected):
    pq = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    job = make_job("parquet", format="parquet")
    list(link_in_shards(job))
    rows = pq.read_table(job.folder / "links").to_pylist()
    assert ordered(rows) == expected
    job = make_job("spacy", format="spacy")
    list(link_in_shards(job))
    vocab = spacy.blank("xx").vocab
    files = sorted((job.folder / "links").iterdir())
    docs = [doc for file in files for doc in DocBin().from_disk(file).get_docs(vocab)]
    found = [(row["document"], row["start"], row["score"]) for row in links_to_dicts(docs)]
    assert sorted(found) == [(row["document"], row["start"], row["score"]) for row in expected]


def test_words_of_a_shard_are_forgotten_after_it(make_job):
    worker = ShardWorker(make_job())
    shards = worker.job.begin()
    worker(shards[0])
    strings = worker.pipeline.nlp.vocab.strings
    before = len(strings)
    worker(shards[1])
    assert worker.job.report_of(shards[1]).mentions
    assert len(strings) == before


def test_parts_are_disjoint_and_together_are_everything(make_job, expected):
    job = make_job()
    for number in (3, 1, 2):
        before = job.done()
        list(link_in_shards(job, part=f"{number}/3"))
        assert {shard % 3 for shard in job.done() - before} == {number - 1}
        assert (job.folder / "summary.json").is_file() == (number == 2)
    assert rows_in(job.folder) == expected
    for wrong in ("0/3", "4/3", "3", "a/b", "1/0"):
        with raises("E892"):
            part_of([], wrong)


def test_a_run_goes_on_where_it_stopped(make_job, expected):
    job = make_job()
    for report in link_in_shards(job):
        if report.shard == 3:
            break
    assert job.done() == {0, 1, 2, 3}
    assert not (job.folder / "summary.json").exists()
    # Links without the counts, which come last: the shard is not done.
    job.done_file(Shard(2, ("a",))).unlink()
    assert [report.shard for report in link_in_shards(job)] == [2, 4, 5, 6, 7]
    assert rows_in(job.folder) == expected


def test_errors_are_counted_and_written_with_their_reasons(make_job, records, tmp_path):
    texts = [json.dumps(one) for one in records[:4]]
    mention = {"start": 0, "end": 999, "label": "T"}
    texts.insert(1, json.dumps({"id": "bad", "text": "x", "mentions": [mention]}))
    texts.insert(3, "no JSON")
    (tmp_path / "c.jsonl").write_text("\n".join(texts))
    job = make_job(corpus=str(tmp_path / "c.jsonl"))
    reports = list(link_in_shards(job))
    assert summed(reports)["documents"] == 4
    assert summed(reports)["errors"] == 2
    files = sorted((job.folder / "errors").iterdir())
    reasons = [json.loads(line)["reason"] for file in files for line in file.open()]
    assert "line 2" in reasons[0]
    assert "line 4" in reasons[1]
    assert {row["document"] for row in rows_in(job.folder)} == {"d0", "d1", "d2", "d3"}


def test_a_document_that_cannot_be_linked_is_an_error_of_its_own(make_job, expected, monkeypatch):
    job = make_job()
    worker = ShardWorker(job)
    link = worker.pipeline.linker.predict

    def refuse(docs):
        if any(doc.user_data["doc_id"] == "d1" for doc in docs):
            raise ValueError("too long")
        return link(docs)

    monkeypatch.setattr(worker.pipeline.linker, "predict", refuse)
    (shard, *_) = job.begin()
    worker(shard)
    report = job.report_of(shard)
    assert (report.documents, report.errors) == (2, 1)
    assert rows_in(job.folder) == [r for r in expected if r["document"] in ("d0", "d2")]
    (line,) = job.file("errors", shard, ".jsonl").read_text().splitlines()
    assert json.loads(line) == {"document": "d1", "reason": "too long"}


def test_fingerprint_of_a_folder_is_that_of_its_contents(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").write_text("same")
    first = fingerprint(tmp_path / "a")
    assert first == fingerprint(tmp_path / "b")
    assert len(first) == 32
    (tmp_path / "b" / "write.lock").write_text("")
    assert first == fingerprint(tmp_path / "b"), "a lock is no content"
    (tmp_path / "b" / "deep" / "file").write_text("Same")
    assert first != fingerprint(tmp_path / "b")


def test_command_links_parts_and_sums_up(model, corpus, tmp_path, expected):
    arguments = ["scale", "link", model, corpus, "--output", tmp_path / "out", "--shard", 3]
    arguments += ["--format", "jsonl", "--components.arbo_linker.threshold", THRESHOLD]
    assert "4 shards, 12 documents" in run(*arguments, "--part", "1/2")
    assert "E892" in run(*arguments, "--part", "3/2", code=1)
    printed = run(*arguments)
    assert f"8 shards, {N_DOCUMENTS} documents, {len(expected)} mentions" in printed
    assert "documents a second" in printed
    assert rows_in(tmp_path / "out") == expected


def test_mentions_are_found_by_names(model, corpus, tmp_path):
    out = tmp_path / "out"
    arguments = ["scale", "link", model, corpus, "--output", out, "--format", "jsonl"]
    run(*arguments, "--find", "names")
    texts = {row["text"].lower() for row in rows_in(out)}
    assert {"mercury", "amazon", "jaguar"} <= texts
    nlp = load_pipeline(model)
    nlp.add_pipe("arbo_names", first=True)
    save_pipeline(nlp, tmp_path / "named")
    run("scale", "link", tmp_path / "named", *arguments[3:5], tmp_path / "more", *arguments[6:])
    found = {row["document"] for row in rows_in(tmp_path / "more")}
    assert {"d9", "d10", "d11"} <= found, "those without mentions"


def test_ray_is_not_imported_without_its_option(model, corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    options = ["--output", tmp_path / "out", "--format", "jsonl"]
    assert f"{N_DOCUMENTS} documents" in run("scale", "link", model, corpus, *options)


@pytest.mark.parametrize("module, code", [("ray", "E893"), ("pyarrow", "E895")])
def test_what_is_not_installed_is_named(model, corpus, tmp_path, monkeypatch, module, code):
    monkeypatch.setitem(sys.modules, module, None)
    arguments = ["scale", "link", model, corpus, "--output", tmp_path / "out"]
    if module == "ray":
        arguments += ["--format", "jsonl", "--ray", "local"]
    printed = run(*arguments, code=1)
    assert code in printed
    assert "spacy_arbo_el[ray]" in printed.replace(" ", "")


def test_discover_with_ray_goes_on_from_the_mentions_of_a_run(make_job, model, corpus, tmp_path):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    # All workers and the reducer are done, so that no cluster is needed any more.
    job = make_job("new.run", one_graph=True)
    expected = [one.to_dict() for one in discover_in_shards(job)]
    options = ["--output", tmp_path / "new.jsonl", "--shard", 3, "--ray", "local"]
    options += ["--components.arbo_linker.threshold", THRESHOLD]
    printed = run("scale", "discover", model, corpus, *options)
    assert f"{len(expected)} new entities" in printed
    lines = (tmp_path / "new.jsonl").read_text(encoding="utf8").splitlines()
    assert [json.loads(line) for line in lines] == expected
    assert expected
    assert (tmp_path / "new.html").is_file()
    assert not job.folder.exists()


def test_other_settings_pipelines_and_documents_are_noticed(make_job, corpus, tmp_path):
    job = make_job()
    job.begin()
    for change in ({"overrides": above(0.5)}, {"pipeline": "0" * 32}, {"format": "spacy"}):
        with raises(f"E890.*{next(iter(change))}"):
            replace(job, **change).begin()
    for other, difference in (
        (replace(job, pipeline="0" * 32), "pipeline"),
        (replace(job, versions={**job.versions, "torch": "0.1"}), "torch"),
    ):
        with raises(f"E891.*{difference}"):
            ShardWorker(other)
    for code, settings in (
        ("E901", {"name": "l.CSV"}),
        ("E894", {"format": "csv"}),
        ("E900", {"size": 0}),
    ):
        with raises(code):
            make_job(**settings).begin()
    with raises("E896"):
        list(link_in_shards(make_job("new", one_graph=True), part="1/2"))
