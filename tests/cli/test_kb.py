"""``arbo kb`` on hostile names, in the wrong place, and over what is there."""

import json
from functools import partial

import pytest
import spacy

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.kb.importers import write_entities_jsonl
from spacy_arbo_el.kb.loaders import build
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.retrieval.index import faiss_index
from spacy_arbo_el.retrieval.similarity import Cosine

from .. import commands
from ..devices import needs_index
from ..linker.world import ENTITIES

NAMES = ["benzo[a]pyrene", "[/bold]", "[red]x", "\x1b[2Jwiped", "a\x07b\r\nc", "\u202edesrever"]

run = partial(commands.run, "kb")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "entities.jsonl"
    lines = [
        {"id": f"{n}[b]{name}", "title": name, "aliases": [name[:3]], "types": [name]}
        | {"description": f"about {name}"}
        for n, name in enumerate(NAMES)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_names_are_neither_markup_nor_commands_to_the_terminal(source, tmp_path):
    kb = tmp_path / "kb"
    run("build", source, kb)
    for name in NAMES:
        run("search", kb, name)
    assert "0[b]benzo[a]pyrene" in run("search", kb, "benzo[a]pyrene")
    assert "[/bold]" in run("search", kb, "[/bold]")
    assert r"\x1b[2Jwiped" in run("search", kb, NAMES[3])
    assert r"\x1b[2Jwiped (1)" in run("info", kb)
    (kb / "\x1b[2J").write_text("")
    assert r"\x1b[2J does not belong" in run("info", kb, "--verify", code=1)


def test_build_replaces_a_knowledge_base_only_when_told_to(source, tmp_path):
    kb = tmp_path / "kb"
    run("build", source, kb)
    (tmp_path / "more.jsonl").write_text('{"id": "by hand"}\n')
    run("add", kb, tmp_path / "more.jsonl")
    assert "--replace" in run("build", source, kb, code=1)
    assert "7" in run("info", kb)
    assert "6 entities" in run("build", source, kb, "--replace")


def test_a_pipeline_that_was_never_used_encodes_a_knowledge_base(source, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("arbo_linker").set_kb([{"id": "a", "title": "a"}])
    nlp.to_disk(tmp_path / "model")
    assert "0 vectors" not in run("build", source, tmp_path / "kb", "--model", tmp_path / "model")


def test_replacing_keeps_merged_ids_and_counts_those_it_drops(tmp_path):
    path = tmp_path / "kb"
    with ArboKB.create(path) as kb:
        kb.add(Entity(one, f"name {one}") for one in "abcdef")
        for old, new in ("ab", "cd", "ef"):
            kb.merge(old, new)
    again = [{"id": "x", "title": "name x", "alt_ids": ["b"]}, {"id": "c"}, {"id": "d"}]
    (tmp_path / "list.jsonl").write_text("\n".join(map(json.dumps, again)))
    output = run("build", tmp_path / "list.jsonl", path, "--replace")
    assert "1 merged ids of the replaced knowledge base kept" in output
    assert "2 merged ids of the replaced knowledge base dropped" in output
    assert ArboKB.for_reading(path).entities.redirects() == {"a": "x", "b": "x"}
    run("export", path, tmp_path / "again.jsonl")
    run("build", tmp_path / "again.jsonl", tmp_path / "copy")
    assert ArboKB.for_reading(tmp_path / "copy").entities.redirects() == {"a": "x", "b": "x"}


def test_replacing_a_damaged_knowledge_base_warns_of_merged_ids(source, tmp_path):
    run("build", source, tmp_path / "kb")
    database = tmp_path / "kb" / "entities.sqlite"
    database.write_bytes(database.read_bytes()[:4096])
    with pytest.warns(UserWarning, match="W108"):
        build(tmp_path / "kb", source, overwrite=True)


# ``arbo kb …`` on a knowledge base that a pipeline encodes.


fail = partial(run, code=1)


@pytest.fixture
def model(saved_nlp):
    return saved_nlp


@pytest.fixture
def kb(tmp_path):
    write_entities_jsonl(ENTITIES, tmp_path / "kb.jsonl")
    run("build", tmp_path / "kb.jsonl", tmp_path / "kb")
    return tmp_path / "kb"


def test_kb_commands_build_encode_edit_search_and_verify(kb, model, tmp_path):
    assert "does not exist" in fail("info", tmp_path / "none")
    (tmp_path / "more.jsonl").write_text('{"id": "tree", "title": "maple"}\n')
    output = run("add", kb, tmp_path / "more.jsonl", "--model", model)
    assert "1 added, 9 entities, 9 texts encoded" in output
    info = run("info", kb)
    assert "9, 32 wide, float32" in info
    assert "COMPANY (3)" in info
    assert "'tree' occurs twice" in fail("add", kb, tmp_path / "more.jsonl")
    assert "1 added, 9 entities" in run("add", kb, tmp_path / "more.jsonl", "--replace")

    assert "planet" in run("search", kb, "MERCURY")
    assert "river" in run("search", kb, "river"), "an id"
    assert "similar name" in run("search", kb, "Amazzon river")
    results = run("search", kb, "sweet fruit", "--model", model, "--type", "FOOD")
    assert "vector" in results
    assert "apple" in results
    assert "COMPANY" not in results

    run("export", kb, tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf8").split("\n")
    assert [json.loads(line) for line in lines if line] == [
        json.loads(line) for line in commands.output("kb", "export", kb, "-").splitlines()
    ]
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [*(entity.id for entity in ENTITIES), "tree"]
    assert "is undamaged" in run("info", kb, "--verify")
    (vectors,) = kb.glob("vectors-*.bin")
    vectors.write_bytes(b"x")
    assert vectors.name in fail("info", kb, "--verify")


def test_the_list_of_a_pipeline_comes_back_as_a_table(model, tmp_path):
    assert "8 entities" in run("export", model, tmp_path / "out.csv", "--changed")
    header, *lines = (tmp_path / "out.csv").read_text().splitlines()
    assert header.startswith("id,title,")
    assert len(lines) == 8
    assert "E835" in fail("export", model, tmp_path / "out.xlsx")


def test_build_options_of_tables_and_wikidata(tmp_path):
    (tmp_path / "c.csv").write_text("Key,Name,Other\nc1,Acme,The Acme;ACME Inc.\n")
    output = run(
        *("build", tmp_path / "c.csv", tmp_path / "kb", "--format", "table"),
        *("--column", "id=Key", "--column", "title=Name", "--column", "aliases=Other"),
        *("--option", "separator=;", "--option", "where=Name=Acme", "--dtype", "float16"),
    )
    assert "1 entities, 3 names" in output
    assert "no column 'Nam'" in fail(
        *("build", tmp_path / "c.csv", tmp_path / "kb", "--format", "table"),
        *("--column", "id=Nam", "--replace"),
    )
    (tmp_path / "d.json").write_text('{"type": "property"}\n')
    output = fail("build", tmp_path / "d.json", tmp_path / "d", "--format", "wikidata")
    assert "has no entity (1 a property, not an item)" in " ".join(output.split())
    assert "no format 'zip'" in fail("build", "x", tmp_path / "zip", "--format", "zip")


@needs_index
def test_info_tells_of_a_stored_index(tmp_path, monkeypatch, rng):
    monkeypatch.setattr(faiss_index, "MIN_ROWS", 300)
    with ArboKB.create(tmp_path / "many") as many:
        many.add(Entity(f"e{i}", f"name {i}") for i in range(300))
        many.encode_missing(Names(), lambda t: rng.standard_normal((len(t), 16)), "x")
        many.vectors.keep_index(faiss_index.FaissIndex("HNSW4", "")(many.rows, Cosine()).attached)
    assert "HNSW4 over 300 vectors" in run("info", tmp_path / "many")
