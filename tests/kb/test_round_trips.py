"""Whatever entities can be added, saving and loading gives them back."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.kb.entity import DEEPEST
from spacy_arbo_el.kb.importers import EntityJsonlReader, ImportReport, write_entities_jsonl
from spacy_arbo_el.kb.loaders import load_kb
from spacy_arbo_el.kb.verification import verify

from ..expecting import raises
from .encoding import kb_of, sync

# The first ones are what the bundled encoder can't read.
ODD = [
    "ソニーグループ",
    "🍎",
    "አዲስ አበባ",
    "☢",
    "",
    " ",
    "é" * 10_000,
    "\r",
    "\x85",
    "\u2028",
    "\ufeff",
    "İ",
]
TEXTS = st.text(max_size=6).filter(lambda text: "\0" not in text) | st.sampled_from(ODD)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
ENTITIES = st.builds(
    Entity,
    TEXTS.filter(lambda text: text.strip() and "|" not in text and text != "NIL"),
    TEXTS,
    TEXTS,
    st.lists(TEXTS, max_size=3),
    st.lists(TEXTS, max_size=3),
    st.floats(0, 1e299) | st.integers(0, 10**299) | st.just(-0.0),
    st.dictionaries(TEXTS, PLAIN | st.lists(PLAIN, max_size=2), max_size=2),
)
SOME = st.lists(ENTITIES, max_size=4, unique_by=lambda entity: entity.id)


def encode(texts):
    """Vectors that are zeros for texts in other scripts, as those of an encoder."""
    readable = [name.isascii() and name.strip() != "" for name, _ in texts]
    return np.array([[len(name) * r, r] for r, (name, _) in zip(readable, texts)], np.float32)


def addable(entities, dtype="float32"):
    """A knowledge base of those entities that can be added."""
    kb, added = ArboKB(Vocab(), dtype=dtype), []
    for entity in entities:
        try:
            kb.add(entity)
            added.append(entity)
        except ValueError as error:
            # An infinite number in ``meta``.
            assert "E039" in str(error)
    return kb, added


@given(SOME, st.sampled_from(["float32", "float16"]), st.booleans())
@example([Entity("a", ODD[0])], "float32", True)
@example([Entity("a", "Sony", "", ODD), Entity("b", types=ODD, frequency=-0.0)], "float16", True)
def test_entities_come_back_from_folders_bytes_and_jsonl(
    tmp_path_factory, entities, dtype, is_encoded
):
    folder = tmp_path_factory.mktemp("saved")
    kb, added = addable(entities, dtype)
    assert list(kb) == added
    if is_encoded:
        sync(kb, "x", encode)
    kb.to_disk(folder / "kb")
    assert verify(folder / "kb") == []
    write_entities_jsonl(kb, folder / "kb.jsonl")
    assert list(EntityJsonlReader().read(folder / "kb.jsonl", ImportReport())) == added
    for again in (ArboKB.for_reading(folder / "kb"), ArboKB(Vocab()).from_bytes(kb.to_bytes())):
        assert list(again) == added
        assert again.in_sync == kb.in_sync
        assert np.array_equal(again.rows.owners, kb.rows.owners)
        assert np.array_equal(again.rows.array(), kb.rows.array())
        if is_encoded:
            assert again.fingerprint in ("x", "x" if len(kb.rows) else "")
            assert sync(again, "x", encode) == 0


def test_a_meta_that_could_not_be_read_is_not_written(tmp_path):
    deep = []
    for _ in range(DEEPEST):
        deep = [deep]
    with raises("E039.*nested"):
        kb_of(Entity("a", meta={"k": deep}))
    with raises("E039"):
        write_entities_jsonl([Entity("a", meta={"k": float("inf")})], tmp_path / "kb.jsonl")
    assert not (tmp_path / "kb.jsonl").exists()


@pytest.mark.parametrize("number", [np.int64(3), np.float32(3), np.uint8(3), 3, 3.0])
def test_numbers_of_numpy_are_frequencies(number):
    kb = kb_of(Entity("a", frequency=number), {"id": "b", "frequency": number})
    assert [type(e.frequency) for e in kb] == [float, float]
    assert [e.frequency for e in kb] == [3.0, 3.0]


IDS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")), max_size=4)


@given(IDS)
def test_merged_ids_come_back_from_jsonl_and_dicts(tmp_path_factory, merges):
    path = tmp_path_factory.mktemp("merged") / "kb.jsonl"
    kb = kb_of(*(Entity(id_, f"name {id_}") for id_ in "abcd"))
    for old, new in merges:
        if kb.get(old).id != kb.get(new).id:
            kb.merge(old, new)
    write_entities_jsonl(kb, path)
    records = [json.loads(line) for line in path.read_text("utf8").splitlines()]
    for again in (load_kb(path, Vocab()), ArboKB(Vocab(), records)):
        assert list(again) == list(kb)
        assert again.entities.redirects() == kb.entities.redirects()


def test_alternative_ids_that_are_no_list_of_strings_stay_in_meta():
    kb = ArboKB(Vocab(), {"id": "a", "title": "A", "alt_ids": {"mesh": "D1"}})
    assert kb.get("a").meta == {"alt_ids": {"mesh": "D1"}}
    kb.upsert({"id": "b", "title": "B", "alt_ids": ["a", "c"]})
    assert (kb.get("a").id, kb.get("c").id) == ("a", "b"), "an entity's own id stays its own"
