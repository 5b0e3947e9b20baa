"""Vectors by text: several threads, processes, encoders and places; nothing is encoded twice."""

import os
import shutil
import time
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.vocab import Vocab

from spacy_arbo_el import ArboKB, Entity
from spacy_arbo_el.kb import vector_caches, vector_files
from spacy_arbo_el.kb.vector_cache import VectorCache
from spacy_arbo_el.kb.vector_files import VectorFolder, VectorKind
from spacy_arbo_el.kb.verbalizations import Names
from spacy_arbo_el.kb.verification import verify

from ..threads import forked, run_in_threads, wait_until
from .encoding import encode, kb_of, sync
from .test_folder import build

KIND = VectorKind("encoder")


def vectors_of(keys):
    return np.stack([np.arange(4) + key for key in keys]).astype(np.float32)


@given(
    actions=st.lists(
        st.tuples(
            st.sampled_from(["put", "get", "open"]),
            st.integers(0, 2),
            st.lists(st.integers(-20, 20), min_size=1, max_size=6),
        ),
        max_size=12,
    ),
    is_in_folder=st.booleans(),
    dtype=st.sampled_from(["float32", "float16"]),
)
def test_caches_of_one_folder_are_a_dict(tmp_path_factory, actions, is_in_folder, dtype):
    """Each of three programs finds what any has put. In memory there is one program."""
    about = VectorKind("encoder", "names", dtype)
    folder = VectorFolder(tmp_path_factory.mktemp("cache")) if is_in_folder else None
    caches, known = [VectorCache(about, folder) for _ in range(3)], set()
    for action, number, keys in actions:
        keys = np.array(keys)
        cache = caches[number if is_in_folder else 0]
        if action == "put":
            cache.put(keys, vectors_of(keys))
            known.update(keys.tolist())
        elif action == "open" and is_in_folder:
            caches[number] = VectorCache(about, folder)
        else:
            found, vectors = cache.get(keys)
            assert found.tolist() == [key in known for key in keys.tolist()]
            assert vectors.dtype == np.float32
            if found.any():
                np.testing.assert_array_equal(vectors, vectors_of(keys[found]))
    assert all(not cache.damage for cache in caches)


def test_what_is_mapped_stays_when_files_are_replaced_or_removed(tmp_path):
    folder, keys = VectorFolder(tmp_path), np.arange(5)
    one, two = VectorCache(KIND, folder), VectorCache(KIND, folder)
    one.put(keys, vectors_of(keys))
    mapped, rows, _ = one.locate(keys)
    data = (tmp_path / f"{KIND.name}.bin").read_bytes()
    (tmp_path / "other").write_bytes(
        data[: vector_files.HEADER] + data[: vector_files.HEADER - 1 : -1]
    )
    os.replace(tmp_path / "other", tmp_path / f"{KIND.name}.bin")
    with pytest.warns(UserWarning, match=r"W504.*checksum"):
        assert not two.has(keys).any()
    two.put(keys[:2], -vectors_of(keys[:2]))
    np.testing.assert_array_equal(mapped[rows], vectors_of(keys))
    one.put(keys + 100, vectors_of(keys + 100))
    np.testing.assert_array_equal(mapped[rows], vectors_of(keys))
    found, vectors = one.get(np.array([0, 3, 100]))
    assert found.tolist() == [True, False, True], "it follows the new files"
    np.testing.assert_array_equal(vectors[0], -np.arange(4))
    folder.remove(KIND.name)
    np.testing.assert_array_equal(mapped[rows], vectors_of(keys))
    one.put(keys, vectors_of(keys))
    assert VectorCache(KIND, folder).has(keys).all()


def test_threads_put_and_get_at_the_same_time(tmp_path):
    caches = [VectorCache(KIND, VectorFolder(tmp_path)) for _ in range(2)]

    def work(number):
        rng = np.random.default_rng(number)
        for _ in range(15):
            cache, keys = caches[rng.integers(2)], rng.integers(0, 60, size=8)
            cache.put(keys, vectors_of(keys))
            found, vectors = cache.get(keys)
            assert found.all()
            np.testing.assert_array_equal(vectors, vectors_of(keys))

    run_in_threads(*(partial(work, number) for number in range(4)))
    assert len(VectorCache(KIND, VectorFolder(tmp_path))) <= 60, "no text has two rows"


def next_tick(probe):
    """Wait until a file that is written has a later time than those which are there.

    probe: The path of a file that is written for that.
    """

    def now():
        probe.touch()
        return probe.stat().st_mtime_ns

    before = now()
    wait_until(lambda: now() > before, "the clock of the file system")


def test_a_folder_keeps_the_encoders_that_were_used_last(tmp_path):
    path = build(tmp_path / "kb")
    for number in range(6):
        kb = ArboKB.for_reading(path)
        assert sync(kb, f"encoder {number}") > 0
        assert sync(kb, "encoder 0") == 0, "it is in use"
        next_tick(tmp_path / "clock")
    kept = ArboKB.for_reading(path).vectors.encoders()
    assert len(kept) == 4
    assert {"encoder 0", "encoder 5", "encoder 4"} <= set(kept)
    kb = ArboKB.for_reading(path)
    kb.vectors.caches.of("descriptions", "x").put(np.arange(3), np.ones((3, 2)))
    assert len(kb.vectors.encoders()) == 4, "each kind has its own"
    assert verify(path) == []


def kept_by(kb, encoder="x", kind="descriptions", **settings):
    """The vectors that a knowledge base keeps of texts of a kind."""
    return kb.vectors.caches.of(kind, encoder, **settings)


def test_vectors_of_another_kind_in_all_places(tmp_path, monkeypatch):
    path, keys = build(tmp_path / "kb"), np.arange(10)
    for kb in (ArboKB.for_reading(path), kb_of(Entity("a", "A"))):
        cache = kept_by(kb)
        assert not cache.get(keys)[0].any()
        cache.put(keys, vectors_of(keys))
        assert kept_by(kb).has(keys).all()
        assert not kept_by(kb, "y").has(keys).any()
        assert not kept_by(kb, kind="names").has(keys).any()
        in_training = kept_by(kb, persist=False)
        assert in_training.has(keys).all(), "its weights are the same"
        assert not kept_by(kb, "y", persist=False).has(keys).any()
    assert kept_by(ArboKB.for_reading(path)).has(keys).all()
    monkeypatch.setattr(VectorFolder, "is_writable", False)
    monkeypatch.setattr(VectorCache, "_write", _refuse)
    kb = ArboKB.for_reading(path)
    more = np.arange(20)
    kept_by(kb).put(more, vectors_of(more))
    found, vectors = kept_by(kb).get(more)
    assert found.all()
    np.testing.assert_array_equal(vectors, vectors_of(more))


def _refuse(*_):
    raise PermissionError("read-only")


MANY = [{"id": f"e{i}", "title": f"name {i}"} for i in range(vector_caches.FEW + 1)]


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ARBO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def count(source, fingerprint="x"):
    """How many texts a new program encodes."""
    kb = source if isinstance(source, ArboKB) else ArboKB(Vocab(), source)
    return sync(kb, fingerprint)


def test_lists_of_many_names_have_their_vectors_in_the_users_cache(cache_folder, monkeypatch):
    assert count(MANY) == len(MANY)
    assert count(MANY) == 0
    assert count(MANY[:500]) == 500, "few names are encoded again"
    assert count([*MANY, {"id": "new", "title": "new"}]) == 1
    monkeypatch.setenv("ARBO_CACHE", "")
    assert count(MANY) == len(MANY)


def test_a_folder_that_cannot_be_written_has_vectors_in_the_users_cache(
    tmp_path, cache_folder, monkeypatch
):
    with monkeypatch.context() as patched:
        patched.setenv("ARBO_CACHE", "")
        kb = kb_of(*MANY)
        sync(kb, "its own")
        kb.to_disk(tmp_path / "kb")
    is_writable = property(lambda folder: folder.path == cache_folder)
    monkeypatch.setattr(VectorFolder, "is_writable", is_writable)
    files = sorted(path.name for path in (tmp_path / "kb").iterdir())
    assert count(ArboKB.for_reading(tmp_path / "kb"), "its own") == 0
    assert not list(cache_folder.glob("*.bin")), "they need not be copied"
    assert count(ArboKB.for_reading(tmp_path / "kb"), "x") == len(MANY)
    assert count(ArboKB.for_reading(tmp_path / "kb"), "x") == 0
    assert sorted(path.name for path in (tmp_path / "kb").iterdir()) == files


def test_the_users_cache_is_bounded(tmp_path, cache_folder, monkeypatch):
    size = len(MANY) * (3 * 4 + 9) + 2 * vector_files.HEADER
    monkeypatch.setattr(vector_files, "CACHE_BYTES", int(2.5 * size))
    for fingerprint in ("a", "b", "a", "c"):
        count(MANY, fingerprint)
        next_tick(tmp_path / "clock")
    assert count(MANY, "a") == 0
    assert count(MANY, "c") == 0
    assert sum(path.stat().st_size for path in cache_folder.iterdir()) < vector_files.CACHE_BYTES
    monkeypatch.setattr(vector_files, "CACHE_BYTES", size // 2)
    kb = kb_of(*MANY)
    assert sync(kb, "d") == len(MANY), "what has no room is kept in memory"
    np.testing.assert_array_equal(kb.get_vector("e3"), encode([("name 3", "")])[0])


def test_an_encoder_in_training_leaves_no_vectors(tmp_path):
    path = build(tmp_path / "kb")
    files = sorted(file.name for file in path.iterdir())
    kb = ArboKB.for_reading(path)
    for step in range(3):
        assert sync(kb, f"step {step}", persist=False) > 0
        assert sync(kb, f"step {step}", persist=False) == 0
    assert sorted(file.name for file in path.iterdir()) == files
    assert sync(kb) == 0


def test_programs_that_start_together_encode_each_text_once_for_each_encoder(tmp_path):
    with ArboKB.create(tmp_path / "kb") as kb:
        kb.add(Entity(f"e{i}", f"name {i}") for i in range(40))
    log = tmp_path / "encoded"

    def encode_all(fingerprint):
        def slow(texts):
            with log.open("a") as file:
                file.write("".join(f"{fingerprint} {title}\n" for title, _ in texts))
            time.sleep(0.05)
            return encode(texts)

        with patch("spacy_arbo_el.kb.texts.CHUNK", 10):
            kb = ArboKB.for_reading(tmp_path / "kb")
            sync(kb, fingerprint, slow)
        expected = encode([text for entity in kb for text in Names()(entity)])
        return np.array_equal(kb.rows.array(), expected)

    assert forked(*(partial(encode_all, fingerprint) for fingerprint in "xyxyxy"))
    encoded = log.read_text().splitlines()
    assert len(encoded) == 80
    assert len(set(encoded)) == 80


def test_a_forked_process_puts_vectors_where_its_parent_has_put_some(tmp_path):
    cache = VectorCache(KIND, VectorFolder(tmp_path))
    cache.put(np.array([1]), vectors_of([1]))

    def put():
        cache.put(np.array([2]), vectors_of([2]))
        return cache.has(np.array([1, 2])).all()

    assert forked(put)
    assert cache.has(np.array([1, 2])).all()


def test_a_folder_that_is_replaced_keeps_the_vectors_of_all_encoders(tmp_path):
    path = build(tmp_path / "kb", 20)
    other = ArboKB.for_reading(path)
    sync(other, "other")
    kb = ArboKB.for_reading(path)
    kb.add(Entity("new", "new"))
    assert sync(kb) == 1
    kb.to_disk(path)
    again = ArboKB.for_reading(path)
    assert sync(again, "other") == 1
    assert sync(again) == 0
    assert verify(path) == []
    np.testing.assert_array_equal(other.get_vector("e3"), encode([("name 3", "")])[0])


@pytest.mark.parametrize("times", [1, 99])
def test_a_replacement_while_names_are_encoded_leaves_no_row_without_a_vector(tmp_path, times):
    """The vectors that were found before are encoded again, not taken for zeros."""
    path, other = build(tmp_path / "kb", 6), build(tmp_path / "other", 2)
    sync(ArboKB.for_reading(other))
    kb = ArboKB.for_reading(path)
    sync(kb)
    kb.add(Entity("new", "new"))

    passes = []

    def replaced(texts):
        passes.append(texts)
        if len(passes) <= times:
            for file in path.glob("vectors-*.*"):
                file.unlink()
            for file in other.glob("vectors-*.*"):
                shutil.copy(file, path)
        return encode(texts)

    assert sync(kb, "x", replaced) > 1
    expected = encode([text for entity in kb for text in Names()(entity)])
    np.testing.assert_array_equal(kb.rows.array(), expected)
    assert np.abs(kb.rows.array()).sum(axis=1).all()
