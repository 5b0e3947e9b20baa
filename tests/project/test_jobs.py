"""Each job of ``examples/jobs``, from the user's file to the user's file."""

import csv
import shlex
import shutil
from pathlib import Path

import pytest

from spacy_arbo_el.encoders.dual import DualEncoder
from spacy_arbo_el.kb import vector_caches

from ..commands import output, run_script

JOBS = Path(__file__).parents[2] / "examples" / "jobs"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of a job, in which it runs."""
    shutil.copytree(JOBS, tmp_path / "jobs")
    monkeypatch.chdir(tmp_path / "jobs")


def run_job(name):
    """Run each command of a job's script. RETURNS: What each of them prints."""
    lines = Path(name).read_text("utf8").splitlines()
    printed = []
    for command in (shlex.split(line) for line in lines if line[0] != "#" and line != "set -e"):
        if command[:4] == ["python", "-m", "spacy", "arbo"]:
            printed.append(output(*command[4:]))
        else:
            python, script, *arguments = command
            assert python == "python"
            printed.append(run_script(Path(script), *arguments))
    return printed


def table(name):
    with Path(name).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_a_list_and_texts_become_a_table_of_links():
    run_job("list_to_table.sh")
    ids = {(row["text"], row["kb_id"]) for row in table("links.csv")}
    assert ids == {("Halix", "H1"), ("Halix", "H2"), ("Velmora Rail", "V1"), ("Nordane", "N1")}


def test_labels_of_another_vocabulary_teach_an_ontology():
    *_, converted, fitted, _ = run_job("ontology.sh")
    for printed in (converted, fitted):
        assert "The list lacks 1 of 4 gold ids (1 mention): D999" in " ".join(printed.split())
    ids = {(row["text"], row["kb_id"]) for row in table("diseases.csv")}
    assert ids == {
        ("Grey fever", "DOID:2"),
        ("swamp cough", "DOID:1"),
        ("ash fever", "DOID:2"),
        ("River blindness", "DOID:3"),
    }


def test_an_app_links_learns_and_keeps_what_it_learned():
    texts = ("Erwtensoep", "Caesar salad", "snert")
    printed = run_script(Path("app.py"), "model")
    assert [printed.count(f"'text': '{text}'") for text in texts] == [1, 1, 1]
    assert "'snert', 'id': 'D4'" in run_script(Path("app.py"), "model")


def test_a_curators_list_comes_back_with_the_decided_rows():
    run_job("curator.sh")
    of_names = output("discover", "firms_model", "news", "--output", "names.jsonl")
    assert "All mentions are names of the list" in of_names
    before = Path("firms.csv").read_text("utf8")
    assert Path("firms_new.csv").read_text("utf8") == f"{before}T1,Tarnow Labs,,,ORG,\n"


COMMANDS = """link diseases.obo abstracts --output links.csv
init diseases.obo model
link model abstracts --output links.csv
convert labelled.pubtator labelled.spacy --concepts diseases.obo --option xrefs=MESH
fit model labelled.spacy --output fitted
discover fitted labelled.spacy --output new.jsonl --keep decided
kb build diseases.obo kb
kb build diseases.obo kb --replace --model fitted
link kb abstracts --output links.csv"""


def test_texts_of_a_list_are_encoded_by_the_first_command_alone(monkeypatch):
    sizes = []
    predict = DualEncoder._predict

    def counting(encoder, tower, inputs):
        sizes.append(len(inputs) * (tower == "entity"))
        return predict(encoder, tower, inputs)

    monkeypatch.setattr(DualEncoder, "_predict", counting)
    monkeypatch.setattr(vector_caches, "FEW", 1)
    monkeypatch.setenv("ARBO_CACHE", "cache")
    first, *further = COMMANDS.splitlines()
    output(*first.split())
    assert sum(sizes) > 0
    sizes.clear()
    for command in further:
        output(*command.split())
        assert sum(sizes) == 0, command
