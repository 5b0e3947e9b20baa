"""``arbo kb …`` on a knowledge base that a pipeline encodes."""

import json
from functools import partial

import numpy as np
import pytest
import spacy

from spacy_arbo_el.encoders.dual import DualEncoder
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.importers import write_entities_jsonl
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.linker import find_linker

from .. import commands
from ..commands import run as succeed
from ..linker.world import ENTITIES

fail = partial(succeed, code=1)


@pytest.fixture
def model(saved_nlp):
    return saved_nlp


@pytest.fixture
def kb(tmp_path):
    write_entities_jsonl(ENTITIES, tmp_path / "kb.jsonl")
    succeed("kb", "build", tmp_path / "kb.jsonl", tmp_path / "kb")
    return tmp_path / "kb"


def test_kb_commands_build_encode_edit_search_and_verify(kb, model, tmp_path):
    assert "does not exist" in fail("kb", "info", tmp_path / "none")
    assert f"{len(ENTITIES)} texts encoded" in succeed("kb", "encode", kb, model)
    info = succeed("kb", "info", kb)
    assert "8, 32 wide, float32" in info and "COMPANY (3)" in info

    (tmp_path / "more.jsonl").write_text('{"id": "tree", "title": "maple"}\n')
    output = succeed("kb", "add", kb, tmp_path / "more.jsonl", "--model", model)
    assert "1 added, 9 entities, 1 texts encoded" in output
    output = succeed("kb", "add", kb, "--id", "ore", "--title", "cinnabar", "--type", "MATTER")
    assert "1 added, 10 entities, 0 texts encoded" in output
    assert "'tree' occurs twice" in fail("kb", "add", kb, tmp_path / "more.jsonl")
    assert "1 added, 10 entities" in succeed("kb", "add", kb, tmp_path / "more.jsonl", "--replace")
    assert "Give either a file" in fail("kb", "add", kb)

    assert "planet" in succeed("kb", "search", kb, "MERCURY")
    assert "river" in succeed("kb", "search", kb, "river"), "an id"
    assert "similar name" in succeed("kb", "search", kb, "Amazzon river")
    results = succeed("kb", "search", kb, "sweet fruit", "--model", model, "--type", "FOOD")
    assert "vector" in results and "apple" in results and "COMPANY" not in results

    assert "ore leads to metal (mercury; quicksilver; Hg; cinnabar)" in succeed(
        "kb", "merge", kb, "ore", "metal"
    )
    assert "1 removed, 8 entities" in succeed("kb", "remove", kb, "tree")
    assert "no entity 'tree'" in fail("kb", "remove", kb, "tree")
    succeed("kb", "export", kb, tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf8").split("\n")
    assert [json.loads(line) for line in lines if line] == [
        json.loads(line) for line in commands.output("kb", "export", kb, "-").splitlines()
    ]
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [entity.id for entity in ENTITIES]
    assert "is undamaged" in succeed("kb", "verify", kb)
    (vectors,) = kb.glob("vectors-*.bin")
    vectors.write_bytes(b"x")
    assert vectors.name in fail("kb", "verify", kb)


def test_vectors_of_several_encoders_stay_beside_each_other(kb, model):
    with ArboKB.open(kb) as opened:
        opened.sync(Names(), lambda texts: np.ones((len(texts), 384)), "another")
    assert "8 texts encoded" in succeed("kb", "encode", kb, model)
    assert "1 texts encoded" in succeed("kb", "add", kb, "--id", "x", "--model", model)
    with ArboKB.open(kb) as opened:
        assert opened.sync(Names(), lambda texts: np.ones((len(texts), 384)), "another") == 1
    assert "0 texts encoded" in succeed("kb", "encode", kb, model)
    assert "Encoders with vectors" in succeed("kb", "info", kb)


def test_install_gives_a_pipeline_another_knowledge_base(kb, model, tmp_path, monkeypatch):
    before = find_linker(spacy.load(model))
    succeed("kb", "add", kb, "--id", "ore", "--title", "cinnabar")
    encoded = []
    original = DualEncoder.encode_texts
    monkeypatch.setattr(
        DualEncoder,
        "encode_texts",
        lambda *args: (encoded.append(len(args[1])), original(*args))[1],
    )
    output = succeed("kb", "install", kb, model, "--output", tmp_path / "installed")
    # The others have their vectors from the present knowledge base.
    assert encoded == [1]
    assert f"{len(ENTITIES) + 1} entities" in output
    linker = find_linker(spacy.load(tmp_path / "installed"))
    assert "ore" in linker.kb and len(linker.kb.rows) == len(ENTITIES) + 1
    assert linker.calibration == before.calibration and linker.threshold == before.threshold
    assert list(linker.exemplars.records) == list(before.exemplars.records)
    assert "does not exist" in fail("kb", "install", tmp_path / "none", model)


def test_build_options_of_tables_and_wikidata(tmp_path):
    (tmp_path / "c.csv").write_text("Key,Name,Other\nc1,Acme,The Acme;ACME Inc.\n")
    output = succeed(
        *("kb", "build", tmp_path / "c.csv", tmp_path / "kb", "--format", "table"),
        *("--column", "id=Key", "--column", "title=Name", "--column", "aliases=Other"),
        *("--separator", ";", "--dtype", "float16"),
    )
    assert "1 entities, 3 names" in output
    assert "no column 'Nam'" in fail(
        *("kb", "build", tmp_path / "c.csv", tmp_path / "kb", "--format", "table"),
        *("--column", "id=Nam", "--replace"),
    )
    (tmp_path / "d.json").write_text('{"type": "property"}\n')
    output = fail("kb", "build", tmp_path / "d.json", tmp_path / "d", "--format", "wikidata")
    assert "has no entity (1 a property, not an item)" in " ".join(output.split())
    assert "no format 'zip'" in fail("kb", "build", "x", tmp_path / "zip", "--format", "zip")


def test_kb_index_stores_a_search_index(kb, model, tmp_path):
    lists = "IVF256,PQ4x4fs nprobe=2"
    assert "E306" in fail("kb", "index", kb, lists)
    succeed("kb", "encode", kb, model)
    assert "Exact search is best" in succeed("kb", "index", kb, lists, "--model", model)
    rng = np.random.default_rng(0)
    with ArboKB.create(tmp_path / "many") as many:
        many.add(Entity(f"e{i}", f"name {i}") for i in range(12_000))
        many.sync(Names(), lambda t: rng.standard_normal((len(t), 16)), "x")
        many.remove(["e5", "e7"])
    assert "over 12000 vectors" in succeed("kb", "index", tmp_path / "many", lists)
    stored = ArboKB.for_reading(tmp_path / "many").vectors.index
    assert stored.about["rows"] == 12_000 and stored.source.suffix == ".faiss"
    succeed("kb", "index", tmp_path / "many", "HNSW32 ")
    assert len(list((tmp_path / "many").glob("index-*.faiss"))) == 1
    assert "HNSW32 over 12000 vectors" in succeed("kb", "info", tmp_path / "many")
    assert "could not parse" in fail("kb", "index", tmp_path / "many", "zip")
