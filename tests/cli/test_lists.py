"""Linking raw text to a list from the command line, without a saved pipeline."""

import csv

import pytest

from spacy_arbo_el.pipelines import load_pipeline, pipeline_from_list

from ..commands import run

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


@pytest.mark.bundled
def test_mentions_that_a_document_has_are_linked_alone(files):
    given = files / "given.jsonl"
    mention = '{"start": 28, "end": 38, "label": "X"}'
    given.write_text(f'{{"text": "{TEXTS["a.txt"]}", "mentions": [{mention}]}}\n')
    run("link", files / "entities.csv", given, "--output", files / "out.csv")
    assert links(files / "out.csv") == NAMES[1:]


def test_a_pipeline_of_a_list_is_saved_with_its_settings(files):
    config = {"arbo_names": {"forms": "exact"}, "arbo_linker": {"threshold": 0.5}}
    nlp = pipeline_from_list(files / "entities.csv", "de", config)
    nlp.to_disk(files / "MODEL")
    loaded = load_pipeline(files / "MODEL")
    assert loaded.lang == "de" and loaded.get_pipe("arbo_names").forms == "exact"
    assert loaded.get_pipe("arbo_linker").threshold == 0.5
    assert len(loaded.get_pipe("arbo_linker").kb) == 2
