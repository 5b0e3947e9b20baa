"""``arbo kb`` on hostile names, in the wrong place, and over what is there."""

import json
from functools import partial

import pytest

from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.loaders import build

from .. import commands

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


def test_build_leaves_a_folder_of_something_else_as_it_was(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thesis.txt").write_text("all of it")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for place in (".", tmp_path, source):
        for replace in ((), ("--replace",)):
            output = run("build", "entities.jsonl", place, *replace, code=1)
            assert "Choose a new or an empty folder" in output
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_build_replaces_a_knowledge_base_only_when_told_to(source, tmp_path):
    kb = tmp_path / "kb"
    run("build", source, kb)
    (tmp_path / "more.jsonl").write_text('{"id": "by hand"}\n')
    run("add", kb, tmp_path / "more.jsonl")
    assert "--replace" in run("build", source, kb, code=1)
    assert "7" in run("info", kb)
    assert "6 entities" in run("build", source, kb, "--replace")


def test_paths_without_a_knowledge_base_are_named(source, tmp_path):
    for options in ((), ("--verify",)):
        output = run("info", tmp_path / "none", *options, code=1)
        assert "none does not exist" in output and "save again" not in output
    (tmp_path / "empty").mkdir()
    assert "incomplete" in run("info", tmp_path / "empty", code=1)
    assert "is a file" in run("info", source, code=1)


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
    assert "1 merged ids of the replaced knowledge base dropped: the entity" in output
    assert "1 merged ids of the replaced knowledge base dropped: they are" in output
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
