"""Texts of a knowledge base that workers encode: the same vectors as in one process."""

import shutil

import numpy as np
import pytest

from spacy_arbo_el import ArboKB, Entity, find_linker, load_pipeline
from spacy_arbo_el.cli.kb_edit import encode_with
from spacy_arbo_el.distributed import texts
from spacy_arbo_el.distributed.texts import TextWorker, encode_in_shards
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.retrieval import entity_texts

from ..linker.world import ENTITIES
from .conftest import make_kb, vectors

MORE = [Entity("more", "mercury", "liquid toxic metal"), Entity("new", "ore", "a rock", ["rocks"])]


@pytest.fixture(scope="module")
def linker(model):
    return find_linker(load_pipeline(model))


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(entity_texts, "MIN_LOGGED", 2)
    monkeypatch.setattr(entity_texts, "TEXTS_PER_STEP", 3)


@pytest.mark.parametrize("state", ["new", "edited", "of another encoder"])
def test_vectors_of_shards_are_those_of_one_process(tmp_path, linker, model, small_batches, state):
    for name in ("one", "shards"):
        with ArboKB.open(make_kb(tmp_path / name)) as kb:
            if state == "edited":
                encode_with(linker, kb)
            elif state == "of another encoder":
                kb.sync(Names(), lambda texts: np.ones((len(texts), 16)), "another")
            if state != "new":
                kb.upsert([*MORE, Entity(ENTITIES[0].id, "changed", "as well")])
    with ArboKB.open(tmp_path / "one") as kb:
        expected = encode_with(linker, kb)
    with ArboKB.open(tmp_path / "shards") as kb:
        assert encode_in_shards(kb, linker, model, tmp_path / "shards.run") == expected
    assert vectors(tmp_path / "one") == vectors(tmp_path / "shards")
    assert not (tmp_path / "shards.run").exists()


def test_batches_that_are_encoded_are_not_encoded_again(
    tmp_path, linker, model, small_batches, monkeypatch
):
    path, done = make_kb(tmp_path / "kb"), []
    work = TextWorker.__call__

    def stop_at_two(self, shard):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(shard.number)
        return work(self, shard)

    with monkeypatch.context() as patch, ArboKB.open(path) as kb:
        patch.setattr(TextWorker, "__call__", stop_at_two)
        with pytest.raises(KeyboardInterrupt):
            encode_in_shards(kb, linker, model, tmp_path / "kb.run")
    with ArboKB.open(path) as kb:
        kb.add(MORE)
        monkeypatch.setattr(
            TextWorker, "__call__", lambda self, s: done.append(s.number) or work(self, s)
        )
        monkeypatch.setattr(texts, "encode_texts", None)
        encode_in_shards(kb, linker, model, tmp_path / "kb.run")
    assert sorted(done) == list(range(len(done))) and len(done) > 3
    with ArboKB.open(make_kb(tmp_path / "other")) as kb:
        kb.add(MORE)
        encode_with(linker, kb)
    # The entities that came later were encoded in batches of their own.
    found, expected = (ArboKB.for_reading(p).rows.array() for p in (path, tmp_path / "other"))
    assert np.allclose(found, expected, atol=1e-6)


def test_what_another_pipeline_has_left_is_not_used(tmp_path, linker, model, monkeypatch):
    monkeypatch.setattr(TextWorker, "__call__", lambda self, shard: 1 / 0)
    with ArboKB.open(make_kb(tmp_path / "kb")) as kb:
        with pytest.raises(ZeroDivisionError):
            encode_in_shards(kb, linker, model, tmp_path / "kb.run")
        shutil.copytree(model, tmp_path / "model")
        (tmp_path / "model" / "more").write_text("another pipeline")
        with pytest.raises(ValueError, match="E890.*pipeline"):
            encode_in_shards(kb, linker, tmp_path / "model", tmp_path / "kb.run")
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "own.txt").write_text("mine")
        with pytest.raises(ValueError, match="E902.*own.txt"):
            encode_in_shards(kb, linker, model, tmp_path / "mine")
