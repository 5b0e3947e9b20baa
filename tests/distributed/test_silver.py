"""Silver mentions by workers: the same as in one process, and what is found is found once."""

import json
from dataclasses import replace

import pytest
import spacy

from spacy_arbo_el.corpora.names import Dictionary
from spacy_arbo_el.corpora.silver import SilverSettings, write_chosen
from spacy_arbo_el.distributed.silver import SilverJob, scanned_in_shards

from ..commands import run
from .silver_texts import ENTITIES, contents, write_dictionary, write_texts


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    return write_dictionary(tmp_path_factory.mktemp("dictionary") / "entities.jsonl")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return write_texts(tmp_path_factory.mktemp("texts"))


@pytest.mark.parametrize("options", [{}, {"format": "jsonl"}])
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
    arguments = ["--format", "jsonl"] if options.get("format") else []
    arguments += ["--per-name", 2, "--exclude", excluded]
    run("silver", given, "--kb", kb, "--output", tmp_path / "one.spacy", *arguments)
    nlp = spacy.blank("en")
    dictionary = Dictionary.build(nlp, ENTITIES)
    job = SilverJob.of([given], kb, tmp_path / "run", excluded, size=4, **options)
    scan = scanned_in_shards(job, dictionary)
    report = write_chosen(scan, tmp_path / "shards.spacy", SilverSettings(2))
    expected = contents(tmp_path / "one.spacy")
    assert contents(tmp_path / "shards.spacy") == expected and len(expected) > 3
    assert report.counts["surplus"] > 0 and report.counts["docs"] == len(expected)


def test_a_run_with_other_settings_or_texts_is_not_continued(tmp_path, texts, kb):
    dictionary = Dictionary.build(spacy.blank("en"), ENTITIES)
    job = SilverJob.of([texts], kb, tmp_path / "run", size=4)
    scanned_in_shards(job, dictionary)
    for other, difference in (
        (replace(job, seed=1), "seed"),
        (replace(job, texts=[str(texts / "a.txt")]), "corpus"),
        (replace(job, hidden=(1,)), "hidden"),
    ):
        with pytest.raises(ValueError, match=f"E890.*{difference}"):
            scanned_in_shards(other, dictionary)
