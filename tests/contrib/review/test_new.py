"""``arbo new``: decisions on saved new entities, from a table."""

import csv
import hashlib
import re
import shutil
from functools import partial

import pytest
import spacy

import spacy_arbo_el.pipelines
from spacy_arbo_el import edit_pipeline, find_linker, load_pipeline
from spacy_arbo_el.contrib.review.commands.new import read_new_entities

from ... import commands
from ...cases import cases

run = partial(commands.run, "new")


@pytest.fixture(scope="module")
def saved(saved_tiny, tmp_path_factory):
    """A pipeline with at least two new entities."""
    folder = shutil.copytree(saved_tiny, tmp_path_factory.mktemp("new") / "model")
    with edit_pipeline(folder) as nlp:
        kept = find_linker(nlp).new_entities
        if len(kept) == 1:
            kept.split(kept.ids[0], [0])
    return folder


@pytest.fixture
def model(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


def ids_in(model):
    return read_new_entities(model).ids


def hashes(model):
    files = [file for file in model.rglob("*") if file.suffix != ".lock" and file.is_file()]
    return {
        str(file.relative_to(model)): hashlib.sha1(file.read_bytes()).hexdigest() for file in files
    }


def write(path, *rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def test_new_entities_are_listed_without_the_pipeline(model, monkeypatch):
    monkeypatch.setattr(spacy_arbo_el.pipelines, "load_pipeline", None)
    ids = ids_in(model)
    listed = run("list", model)
    assert len(ids) >= 2
    assert all(id_ in listed for id_ in ids)


def test_table_is_written_filled_in_and_applied(model, tmp_path):
    table = tmp_path / "decisions.csv"
    run("list", model, "--output", table)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ids_in(model)
    assert "no decisions" in run("apply", model, table)
    rows[0].update(decision="Accept", kb_id="Q7", title="Quorn")
    rows[1].update(decision="reject")
    write(table, list(rows[0]), *(row.values() for row in rows))
    assert "1 accept, 1 reject" in run("apply", model, table)
    linker = find_linker(load_pipeline(model))
    assert linker.kb.get("Q7").title == "Quorn"
    assert not {rows[0]["id"], rows[1]["id"]} & set(linker.new_entities.ids)


def test_merges_and_splits_of_a_table(model, tmp_path):
    first, second, *_ = ids_in(model)
    table = write(
        tmp_path / "d.csv",
        ("id", "decision", "into", "members"),
        (second, "merge", first, ""),
        (first, "split", "", "0"),
    )
    assert "1 merge, 1 split" in run("apply", model, table)
    assert len(ids_in(model)) == 2


@pytest.mark.parametrize("row, problem", cases("wrong_decisions"))
def test_a_table_is_applied_as_a_whole_or_not_at_all(model, tmp_path, row, problem):
    ids = ids_in(model)
    cells = [cell.format(*ids) for cell in row]
    header = ("id", "decision", "into", "members")
    table = write(tmp_path / "d.csv", header, (ids[1], "reject", "", ""), cells)
    before = hashes(model)
    assert re.search(problem, run("apply", model, table, code=1))
    assert hashes(model) == before


def test_what_is_no_pipeline_or_has_no_linker_is_said(tmp_path):
    assert "does not exist" in run("list", tmp_path / "none", code=1)
    (tmp_path / "c.spacy").write_bytes(b"x")
    assert "not a pipeline" in run("list", tmp_path / "c.spacy", code=1)
    spacy.blank("xx").to_disk(tmp_path / "blank")
    assert "no arbo_linker" in run("list", tmp_path / "blank", code=1)
