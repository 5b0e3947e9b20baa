"""One graph over all documents, in steps over shards: the links and ids of one process."""

import json

import pytest

from spacy_arbo_el import find_linker, load_pipeline
from spacy_arbo_el.contrib.scale import one_graph
from spacy_arbo_el.contrib.scale.corpus_files import (
    read_decisions,
    read_mentions,
    write_decisions,
    write_mentions,
)
from spacy_arbo_el.contrib.scale.job import Job
from spacy_arbo_el.contrib.scale.runs import discover_in_shards, link_in_shards
from spacy_arbo_el.corpora.read import read_documents
from spacy_arbo_el.retrieval import mention_search
from spacy_arbo_el.show.frames import rows_of

from ...linking.test_coverage import NAMES, pipeline
from .conftest import THRESHOLD, above, ordered, rows_in


def linked(nlp, corpus):
    """The links of one process as rows."""
    linker = find_linker(nlp)
    docs = linker.corpus.link(list(read_documents(corpus, nlp)))
    return ordered(rows_of(docs, linker.mentions.getter, "arbo"))


@pytest.fixture(scope="module")
def in_one_graph(model, corpus):
    """The links of ``link_corpus`` as rows, and the new entities of ``discover``."""
    nlp = load_pipeline(model, config=above(THRESHOLD))
    rows = linked(nlp, corpus)
    assert {bool(row["new_entity"]) for row in rows} == {False, True}
    return rows, find_linker(nlp).corpus.discover(list(read_documents(corpus, nlp)))


def test_one_graph_in_shards_has_the_links_and_ids_of_one_process(make_job, in_one_graph):
    rows, new_entities = in_one_graph
    job = make_job(one_graph=True)
    found = discover_in_shards(job)
    assert [one.to_dict() for one in found] == [one.to_dict() for one in new_entities]
    # Their mentions too, with what the encoder reads of them.
    assert found.to_bytes() == new_entities.to_bytes()
    assert not (job.folder / "links").exists()
    assert [report.shard for report in link_in_shards(job)] == list(range(8))
    assert rows_in(job.folder) == rows
    left = {path.name for path in job.folder.iterdir()}
    assert not {"mentions", "decided"} & left
    assert "summary.json" in left


def test_coverage_is_estimated_from_the_mentions_of_all_shards(tmp_path):
    nlp = pipeline()
    names = [*NAMES, *NAMES, *NAMES, *NAMES, "zorbix"]
    lines = []
    for number, name in enumerate(names):
        text = f"We saw {name} there, as number {number}."
        mention = {"start": 7, "end": 7 + len(name), "label": "NAME"}
        lines.append(json.dumps({"id": f"d{number}", "text": text, "mentions": [mention]}))
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(lines), encoding="utf8")
    nlp.to_disk(tmp_path / "model")
    plain = linked(nlp, corpus)
    find_linker(nlp).coverage = "estimate"
    rows = linked(nlp, corpus)
    assert rows != plain
    settings = {"one_graph": True, "format": "jsonl", "size": 3}
    overrides = {"components.arbo_linker.coverage": "estimate"}
    out = tmp_path / "out"
    job = Job.of(tmp_path / "model", corpus, out, overrides=overrides, **settings)
    list(link_in_shards(job))
    assert rows_in(job.folder) == rows


def test_one_graph_goes_on_in_each_of_its_steps(make_job, in_one_graph, monkeypatch):
    job = make_job(one_graph=True)
    done = []

    def stop_before(name, count):
        """Have a step do so much before the run is killed."""
        step = getattr(one_graph, name)

        def work(*arguments):
            if count == sum(one == name for one in done):
                raise KeyboardInterrupt
            done.append(name)
            return step(*arguments)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            if isinstance(step, type):
                step = step.__call__
                patch.setattr(getattr(one_graph, name), "__call__", work)
            else:
                patch.setattr(one_graph, name, work)
            list(link_in_shards(job))

    stop_before("MentionWorker", 3)
    stop_before("arrange_mentions", 0)
    stop_before("SearchWorker", 2)
    stop_before("reduce_mentions", 0)
    stop_before("WritingWorker", 4)
    for name in ("MentionWorker", "SearchWorker"):
        monkeypatch.setattr(getattr(one_graph, name), "__call__", None)
    for name in ("arrange_mentions", "reduce_mentions"):
        monkeypatch.setattr(one_graph, name, None)
    assert [report.shard for report in link_in_shards(job)] == [4, 5, 6, 7]
    assert done == ["MentionWorker"] * 3 + ["SearchWorker"] * 2 + ["WritingWorker"] * 4
    assert rows_in(job.folder) == in_one_graph[0]


def test_errors_of_the_first_pass_are_kept(make_job, records, tmp_path):
    lines = [json.dumps(one) for one in records[:4]]
    (tmp_path / "c.jsonl").write_text("\n".join([*lines, "no JSON"]))
    job = make_job(corpus=str(tmp_path / "c.jsonl"), one_graph=True)
    assert [report.errors for report in link_in_shards(job)] == [0, 1]
    assert {row["document"] for row in rows_in(job.folder)} == {"d0", "d1", "d2", "d3"}


def test_neighbours_in_cells_are_those_of_one_process(make_job, model, corpus, monkeypatch):
    monkeypatch.setattr(mention_search, "MAX_EXACT", 20)
    expected = linked(load_pipeline(model, config=above(THRESHOLD)), corpus)
    job = make_job(one_graph=True)
    list(link_in_shards(job))
    assert rows_in(job.folder) == expected


def test_a_corpus_without_mentions_is_written_too(model, tmp_path):
    linker = find_linker(load_pipeline(model)).corpus
    write_mentions(tmp_path / "corpus", lambda: [linker.gather_part([])])
    mentions = read_mentions(tmp_path / "corpus")
    assert len(mentions.places) == 0
    assert len(mentions.documents) == 0
    assert linker.search(mentions) is None
    decided, new_entities = linker.decide(mentions, 0.5)
    write_decisions(tmp_path / "decided", decided)
    assert len(read_decisions(tmp_path / "decided").decisions.entities) == 0
    assert not len(new_entities)
