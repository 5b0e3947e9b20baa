"""Silver mentions by workers: the same as in one process, and what is found is found once."""

import json
import re
import sys

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_arbo_el.corpora.names import Dictionary
from spacy_arbo_el.corpora.reader import read_docs
from spacy_arbo_el.corpora.silver import SilverSettings, write_chosen
from spacy_arbo_el.distributed.silver import SilverJob, SilverWorker, scanned_in_shards
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import write_entities_jsonl

from .test_serial import run

ENTITIES = [
    Entity("flu", "influenza", aliases=["grippe", "flu virus"], types=["Disease"]),
    Entity("cold", "common cold", aliases=["rhinitis"], types=["Disease"]),
    Entity("asthma", "asthma", aliases=["reactive airway"]),
    Entity("gout", "gout", aliases=["podagra"]),
    Entity("x", "rhinitis"),
]
NAMES = ["influenza", "grippe", "common cold", "asthma", "podagra", "gout", "rhinitis", "fever"]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    path = tmp_path_factory.mktemp("dictionary") / "entities.jsonl"
    write_entities_jsonl(ENTITIES, path)
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Files of each kind that is cut into shards, and one that is not."""
    folder = tmp_path_factory.mktemp("texts")
    lines = [f"Case {n} had {NAMES[n % 8]}. Then {NAMES[n * n % 7]} came." for n in range(40)]
    (folder / "a.txt").write_text("\n".join(lines[:12] + ["", *lines[12:17]]), encoding="utf8")
    records = [
        {"id": f"j{n}", "text": text} if n % 3 else {"text": text}
        for n, text in enumerate(lines[17:28])
    ]
    (folder / "b.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    nlp = spacy.blank("en")
    docs = [nlp(text) for text in lines[28:36]]
    for number, doc in enumerate(docs):
        doc.user_data["doc_id"] = f"s{number}"
    DocBin(docs=docs, store_user_data=True).to_disk(folder / "c.spacy")
    rows = "".join(f"{text}\n" for text in lines[36:])
    (folder / "d.csv").write_text("text\n" + rows)
    return folder


def contents(path):
    return [
        (doc.user_data["doc_id"], doc.text, [(e.start, e.end, e.kb_id_) for e in doc.ents])
        for doc in read_docs(path, spacy.blank("en").vocab)
    ]


def command(texts, kb, output, *options):
    return run("silver", texts, "--kb", kb, "--output", output, *options)


@pytest.mark.parametrize("options", [{}, {"one": True}, {"format": "jsonl"}])
def test_mentions_of_shards_are_those_of_one_process(tmp_path, texts, kb, options):
    given = texts / "b.jsonl" if options.get("format") else texts
    if options.get("format"):
        lines = [
            json.dumps({"mentions": [], **json.loads(line), "id": f"i{number}"}) + "\n"
            for number, line in enumerate(given.open())
        ]
        given = tmp_path / "with_ids"
        given.write_text("".join(lines))
    excluded = tmp_path / "ids"
    excluded.write_text("j1\ns3\na.txt:2\n")
    arguments = ["--one"] if options.get("one") else []
    arguments += ["--format", "jsonl"] if options.get("format") else []
    command(given, kb, tmp_path / "one.spacy", "--per-name", 2, "--exclude", excluded, *arguments)
    nlp = spacy.blank("en")
    dictionary = Dictionary.build(nlp, ENTITIES)
    job = SilverJob.of([given], kb, tmp_path / "run", excluded, size=4, **options)
    scan = scanned_in_shards(job, dictionary)
    report = write_chosen(scan, tmp_path / "shards.spacy", SilverSettings(2))
    expected = contents(tmp_path / "one.spacy")
    assert contents(tmp_path / "shards.spacy") == expected and len(expected) > 3
    assert report.counts["surplus"] > 0 and report.counts["docs"] == len(expected)


def test_shards_that_are_done_are_not_read_again(tmp_path, texts, kb, monkeypatch):
    dictionary = Dictionary.build(spacy.blank("en"), ENTITIES)
    job, done, work = SilverJob.of([texts], kb, tmp_path / "run", size=4), [], SilverWorker.__call__

    def stop_at_three(self, shard):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(shard.number)
        return work(self, shard)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(SilverWorker, "__call__", stop_at_three)
        scanned_in_shards(job, dictionary)
    monkeypatch.setattr(
        SilverWorker, "__call__", lambda self, s: done.append(s.number) or work(self, s)
    )
    scanned_in_shards(job, dictionary)
    assert done == list(range(len(done))) and len(done) > 8
    with pytest.raises(ValueError, match="E903.*one"):
        scanned_in_shards(SilverJob.of([texts], kb, job.folder, one=True, size=4), dictionary)
    with pytest.raises(ValueError, match="E903.*texts"):
        few = SilverJob.of([texts / "a.txt"], kb, job.folder, size=4)
        scanned_in_shards(few, dictionary)
    with pytest.raises(ValueError, match="E903.*hidden"):
        scanned_in_shards(job, dictionary, hidden=[1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Ray on Windows is beta")
def test_command_finds_names_with_two_workers_of_ray(tmp_path, texts, kb):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    results = []
    for name, options in (("one", []), ("ray", ["--ray", "local", "--workers", 2, "--shard", 5])):
        out = tmp_path / name
        out.mkdir()
        held_out = ["--dev", out / "dev.spacy", "--hidden-kb", out / "kb", "--dev-share", 0.5]
        printed = command(texts, kb, out / "silver.spacy", "--per-name", 3, *held_out, *options)
        files = contents(out / "silver.spacy"), contents(out / "dev.spacy")
        counts = re.findall(r"\d+ (?:documents|mentions|hidden names|entities|names)\b", printed)
        results.append((files, counts))
        assert {p.name for p in out.iterdir()} == {"silver.spacy", "dev.spacy", "kb"}
    assert results[0] == results[1] and all(results[0]) and len(results[0][1]) > 5
