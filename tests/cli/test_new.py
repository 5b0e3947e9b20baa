"""``arbo new``: decisions on saved new entities, one by one and from a table."""

import csv
import hashlib
import re
from functools import partial

import pytest
import spacy

import spacy_arbo_el.pipelines
from spacy_arbo_el import load_pipeline, save_pipeline
from spacy_arbo_el.cli.saved_new_entities import read_new_entities
from spacy_arbo_el.linker import find_linker

from .. import commands
from ..linker.saved import tiny_pipeline

run = partial(commands.run, "new")


@pytest.fixture(scope="module")
def nlp(tiny_bert):
    nlp = tiny_pipeline(tiny_bert)
    kept = find_linker(nlp).new_entities
    if len(kept) == 1:
        kept.split(kept.ids[0], [0])
    return nlp


@pytest.fixture
def model(nlp, tmp_path):
    save_pipeline(nlp, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def no_pipeline_is_loaded(monkeypatch):
    def load(*_, **__):
        raise AssertionError("the pipeline was loaded")

    monkeypatch.setattr(spacy_arbo_el.pipelines, "load_pipeline", load)


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


def test_decisions_read_and_write_one_file_without_the_pipeline(model, no_pipeline_is_loaded):
    before = hashes(model)
    ids = ids_in(model)
    assert len(ids) >= 2
    assert ids[0] in run("list", model) and "cohesion" in run("show", model, ids[0])
    run("merge", model, ids[0], ids[1])
    assert len(ids_in(model)) == len(ids) - 1
    assert "merge" in run("undo", model)
    assert sorted(ids_in(model)) == sorted(ids)
    run("reject", model, ids[1])
    assert ids[1] not in ids_in(model)
    assert "no new entity 'NEW-x'" in run("reject", model, "NEW-x", code=1)
    changed = {name for name, value in hashes(model).items() if before.get(name) != value}
    changed -= {"write.lock", "arbo_linker/write.lock", "arbo_linker/kb/write.lock"}
    assert changed == {"arbo_linker/new_entities", "arbo_linker/manifest.json"}


def test_a_pipeline_with_decisions_loads_and_an_acceptance_can_be_undone(model):
    first, second, *_ = ids_in(model)
    run("reject", model, second)
    assert "accepted as Q1" in run("accept", model, first, "--id", "Q1")
    linker = find_linker(load_pipeline(model))
    assert "Q1" in linker.kb and not {first, second} & set(linker.new_entities.ids)
    assert "accept" in run("undo", model)
    linker = find_linker(load_pipeline(model))
    assert "Q1" not in linker.kb and first in linker.new_entities.ids


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


def test_merges_and_splits_of_a_table_need_no_pipeline(model, tmp_path, no_pipeline_is_loaded):
    first, second, *_ = ids_in(model)
    table = write(
        tmp_path / "d.csv",
        ("id", "decision", "into", "members"),
        (second, "merge", first, ""),
        (first, "split", "", "0"),
    )
    assert "1 merge, 1 split" in run("apply", model, table)
    assert len(ids_in(model)) == 2


@pytest.mark.parametrize(
    "row, problem",
    [
        (("NEW-x", "reject", "", ""), "line 3.*no new entity 'NEW-x'"),
        (("{0}", "merge", "", ""), "line 3.*needs the column 'into'"),
        (("{0}", "split", "", "a"), "line 3.*must be numbers"),
        (("{0}", "keep", "", ""), "line 3.*no decision 'keep'"),
        (("NEW-x", "accept", "", ""), "line 3.*no new entity 'NEW-x'"),
    ],
)
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
    spacy.blank("en").to_disk(tmp_path / "blank")
    assert "no arbo_linker" in run("list", tmp_path / "blank", code=1)
