"""``arbo link``: what it reads, how mentions are found, what it writes, and what it says."""

import csv
import json
import re
import shutil

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_arbo_el import find_linker, load_pipeline, save_pipeline
from spacy_arbo_el.corpora.docbin import write_docbin
from spacy_arbo_el.pipelines import pipeline_from_list
from spacy_arbo_el.show import frames

from ..commands import run
from ..linker.world import DEV
from ..linking.test_coverage import documents, pipeline

TEXT = "The probe circles the planet Mercury at dawn. Quicksilver is a metal."
COUNTS = r"(\d+) documents, (\d+) mentions, (\d+) linked to (\d+) entities, (\d+) NIL"


def counts(output):
    return list(map(int, re.search(COUNTS, output).groups()))


@pytest.fixture(scope="module")
def folder(app, tmp_path_factory):
    """A pipeline, raw documents of all kinds, and a dev set."""
    place = shutil.copytree(app, tmp_path_factory.mktemp("link") / "app")
    texts = place / "texts"
    (texts / "deep").mkdir(parents=True)
    (texts / "a.txt").write_text(TEXT)
    (texts / "deep" / "b.jsonl").write_text(json.dumps({"text": TEXT}) + "\n")
    (texts / "c.csv").write_text(f"text\n{TEXT}\n")
    (texts / "notes.md").write_text("no document")
    return place


def test_raw_text_of_a_folder_is_linked_by_the_names_of_the_kb(folder, tmp_path):
    output = run(
        *("link", folder / "model", folder / "texts"),
        *("--find", "names", "--output", tmp_path / "links.csv"),
    )
    documents, mentions, linked, entities, nil = counts(output)
    assert documents == 3
    assert mentions == 6
    assert linked + nil == 6
    assert entities >= 1
    with (tmp_path / "links.csv").open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["document"] for row in rows[::2]] == ["a.txt", "c.csv:2", "deep/b.jsonl:1"]
    assert {row["text"] for row in rows} == {"planet Mercury", "Quicksilver"}
    assert all(TEXT[int(r["start"]) : int(r["end"])] == r["text"] for r in rows)
    columns = (*frames.LINK, "sentence")
    assert tuple(rows[0]) == columns, "those of shards and of links_to_dicts, and the sentence"
    assert all(row["text"] in row["sentence"] for row in rows)
    assert all(float(row["presence"]) >= float(row["score"]) > 0 for row in rows)
    assert sum(row["kb_id"] != "NIL" for row in rows) == linked
    assert all(bool(row["title"]) == (row["kb_id"] != "NIL") for row in rows)


def test_other_encodings_and_invalid_files(folder, tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.txt").write_bytes(f"Café. {TEXT}".encode("cp1252"))
    (texts / "b.csv").write_text(f"id;text\n1;{TEXT}\n2\n", encoding="utf8")
    (texts / "c.jsonl").write_text(json.dumps({"text": TEXT}) + "\n{\n", encoding="utf8")
    command = ("link", folder / "model", texts, "--find", "names", "--output", tmp_path / "l.jsonl")
    message = run(*command, code=1)
    assert "a.txt" in message
    assert "--encoding cp1252" in message
    printed = run(*command, "--skip-bad")
    assert counts(printed)[:2] == [2, 4]
    assert "3 bad lines or files left out" in printed
    assert "c.jsonl, line 2: JSON" in printed
    printed = run(*command, "--skip-bad", "--encoding", "cp1252")
    assert counts(printed)[:2] == [3, 6]
    assert "2 bad lines or files left out" in printed
    assert "Café. The probe" in (tmp_path / "l.jsonl").read_text(encoding="utf8")
    assert "E108" in run(*command, "--encoding", "no", code=1)


@pytest.mark.parametrize("name", ["links.jsonl", "links.spacy", "folder"])
def test_the_suffix_of_the_output_chooses_its_format(folder, tmp_path, name):
    out = tmp_path / name
    printed = run("link", folder / "model", folder / "dev.spacy", "--output", out)
    assert counts(printed)[:2] == [len(DEV), len(DEV)]
    if name == "links.jsonl":
        records = [json.loads(line) for line in out.read_text(encoding="utf8").splitlines()]
        ids = [record["mentions"][0]["kb_id"] for record in records]
    else:
        (file,) = [out] if out.is_file() else out.iterdir()
        docs = DocBin().from_disk(file).get_docs(spacy.blank("xx").vocab)
        ids = [doc.ents[0].kb_id_ for doc in docs]
    assert len(ids) == len(DEV)
    assert counts(printed)[2] == sum(i != "NIL" for i in ids)


def test_mentions_are_found_by_another_pipeline(folder, tmp_path):
    other = spacy.blank("xx")
    ruler = other.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "THING", "pattern": "Mercury"}])
    other.to_disk(tmp_path / "ruler")
    arguments = ("link", folder / "model", folder / "texts" / "a.txt", "-o", tmp_path / "o.jsonl")
    assert counts(run(*arguments, "--find", tmp_path / "ruler"))[:2] == [1, 1]
    (record,) = map(json.loads, (tmp_path / "o.jsonl").read_text().splitlines())
    assert record["id"] == "a.txt"
    assert record["mentions"][0]["text"] == "Mercury"
    assert "No component before the linker" in run(*arguments, "--find", "pipeline", code=1)
    nlp = spacy.load(folder / "model")
    nlp.add_pipe("entity_ruler", source=other, first=True)
    save_pipeline(nlp, tmp_path / "both")
    arguments = ("link", tmp_path / "both", *arguments[2:], "--find", "pipeline")
    assert counts(run(*arguments))[:2] == [1, 1]


def test_documents_without_mentions_are_an_error_that_says_how_to_find_them(folder, tmp_path):
    for number, docs in enumerate(([], [spacy.blank("xx")("Nothing here.")])):
        DocBin(docs=docs).to_disk(dev := tmp_path / f"dev{number}.spacy")
        assert "no annotated mention" in run("evaluate", folder / "model", dev, code=1)
    out = tmp_path / "o.csv"
    output = run("link", folder / "model", folder / "texts", "--output", out, code=1)
    assert "--find names" in output
    assert not out.exists()
    (tmp_path / "empty").mkdir()
    output = run("link", folder / "model", tmp_path / "empty", "--output", out, code=1)
    assert "nothing to read" in output
    output = run("link", folder / "model", folder / "texts/notes.md", "--output", out, code=1)
    assert "nothing to read" in output


def test_model_and_data_in_the_wrong_order_are_recognised(folder, tmp_path):
    model, dev, out = folder / "model", folder / "dev.spacy", tmp_path / "o.jsonl"
    for command in ("link", "discover"):
        output = run(command, dev, model, "--output", out, code=1)
        assert "is a pipeline, not documents" in output or "not a pipeline" in output
        assert "arbo COMMAND MODEL DATA" in output
    for command in ("evaluate", "fit", "fit --thresholds"):
        words = command.split()
        assert "not a pipeline. The pipeline comes first" in run(*words, dev, model, code=1)
        assert "is a pipeline, not documents" in run(*words, model, model, code=1)
        texts = folder / "texts" / "deep" / "b.jsonl"
        assert "arbo convert" in run(*words, model, texts, code=1)
    assert "not a pipeline" in run("show", dev, "--text", "A text.", code=1)


def test_hints_where_nothing_can_be_linked(folder, tmp_path):
    nlp = spacy.load(folder / "model")
    linker = find_linker(nlp)
    linker.set_kb([])
    save_pipeline(nlp, tmp_path / "empty")
    dev, out = folder / "dev.spacy", tmp_path / "o.jsonl"
    assert "knowledge base is empty" in run("link", tmp_path / "empty", dev, "--output", out)


# Linking raw text to a list from the command line, without a saved pipeline.


TABLE = "id,title,description\nE1,Alder Instruments Ltd.,maker of clocks\nE2,Velmo City,a town\n"
TEXTS = {"a.txt": "Alder Instruments opened in Velmo city.", "b.txt": "Nothing here."}
NAMES = [("Alder Instruments", "E1"), ("Velmo city", "E2")]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "texts").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "texts" / name).write_text(text)
    (tmp_path / "entities.csv").write_text(TABLE)
    return tmp_path


def links(path):
    with path.open() as file:
        return [(row["text"], row["kb_id"]) for row in csv.DictReader(file)]


@pytest.mark.bundled
def test_a_list_links_as_the_pipeline_that_is_made_of_it(files):
    entities, texts, model = (files / name for name in ("entities.csv", "texts", "MODEL"))
    run("link", entities, texts, "--output", files / "one.csv")
    assert links(files / "one.csv") == NAMES
    run("init", entities, model)
    run("link", model, texts, "--output", files / "two.csv")
    assert links(files / "two.csv") == NAMES
    exact = ["--components.arbo_names.forms", "exact"]
    run("link", entities, texts, "--output", files / "three.csv", *exact)
    assert links(files / "three.csv") == NAMES[1:]
    assert "already exists" in run("init", entities, model, code=1)


def test_a_pipeline_of_a_list_is_saved_with_its_settings(files):
    config = {"arbo_names": {"forms": "exact"}, "arbo_linker": {"threshold": 0.5}}
    nlp = pipeline_from_list(files / "entities.csv", "de", config)
    nlp.to_disk(files / "MODEL")
    loaded = load_pipeline(files / "MODEL")
    assert loaded.lang == "de"
    assert loaded.get_pipe("arbo_names").forms == "exact"
    assert find_linker(loaded).threshold == 0.5
    assert len(find_linker(loaded).kb) == 2


@pytest.fixture
def corpus_and_model(tmp_path):
    nlp = pipeline()
    nlp.to_disk(tmp_path / "model")
    write_docbin(documents(nlp, 32, 12), tmp_path / "docs.spacy")
    return tmp_path / "docs.spacy", tmp_path / "model"


@pytest.mark.parametrize("command", ["link", "discover"])
def test_coverage_is_estimated_from_given_mentions_unless_a_setting_says_no(
    corpus_and_model, tmp_path, command
):
    corpus, model = corpus_and_model
    arguments = (command, model, corpus, "--output", tmp_path / "out.jsonl")
    printed = run(*arguments)
    assert "estimated from 44 mentions: NIL" in printed
    option = "--components.arbo_linker.coverage"
    assert f"{option} null leaves it out" in printed
    assert "estimated from" not in run(*arguments, option, "null")


def test_coverage_is_not_estimated_where_names_of_the_list_were_found(tmp_path, corpus_and_model):
    corpus, model = corpus_and_model
    options = ["--find", "names", "--output", tmp_path / "out.jsonl"]
    assert "estimated from" not in run("link", model, corpus, *options)
