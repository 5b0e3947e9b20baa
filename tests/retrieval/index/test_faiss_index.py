"""Indexes of FAISS against exact search over the same rows."""

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.kb.vectors import VectorRows
from spacy_arbo_el.retrieval.index import approximate, faiss_index
from spacy_arbo_el.retrieval.index.approximate import ApproximateIndex
from spacy_arbo_el.retrieval.index.exact import Flat, FlatIndex
from spacy_arbo_el.retrieval.index.faiss_index import FaissIndex
from spacy_arbo_el.retrieval.similarity import Cosine, Dot

from ...cases import cases
from ...devices import needs_index
from ...expecting import raises
from .test_exact import SIMILARITIES, with_rows

WIDTH = 16
pytestmark = needs_index
LISTS = FaissIndex("IVF4,Flat", "nprobe=4", rescore=100)


def rows_of(count, seed=0, dtype="float32"):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(count // 30, 1), WIDTH))
    vectors = centres[rng.integers(0, len(centres), count)] + 0.3 * rng.standard_normal(
        (count, WIDTH)
    )
    return VectorRows(vectors.astype(dtype), np.arange(count))


def exact(rows, similarity, queries, k, allowed=None):
    flat = FlatIndex(similarity.prepare(rows.array()), similarity)
    return flat.search(queries, k, allowed)


def assert_same(actual, expected):
    """Equal scores, and equal rows but for those with nearly equal scores."""
    np.testing.assert_allclose(actual.scores, expected.scores, rtol=1e-4, atol=1e-5)
    for left, right, value in zip(actual.ids, expected.ids, expected.scores):
        finite = np.where(np.isfinite(value), value, -1e9 - np.arange(len(value)))
        clear = np.abs(np.subtract.outer(finite, finite)) + np.eye(len(value)) > 1e-5
        sure = clear.all(axis=1)
        np.testing.assert_array_equal(left[sure], right[sure])


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("factory, search", cases("faiss_kinds"))
def test_kinds_that_are_searched_exhaustively_with_rows_that_are_not_allowed(
    factory, search, similarity, monkeypatch
):
    monkeypatch.setattr(faiss_index, "MIN_ROWS", 300)
    rows = rows_of(400)
    index = FaissIndex(factory, search, rescore=100)(rows, similarity)
    assert isinstance(index, ApproximateIndex)
    queries = similarity.prepare(rows_of(20, seed=1).array())
    for allowed in (None, np.arange(400) % 3 > 0, np.arange(400) < 4):
        expected = exact(rows, similarity, queries, 8, allowed)
        assert_same(index.search(queries, 8, allowed), expected)


@given(seed=st.integers(0, 99), share=st.floats(0.0, 1.0), late=st.integers(0, 30))
def test_rows_added_later_and_rows_that_are_not_allowed(seed, share, late):
    similarity = Cosine()
    rows = rows_of(300, seed)
    index = LISTS(rows, similarity)
    rng = np.random.default_rng(seed)
    rows = with_rows(rows, rng.standard_normal((late, WIDTH)).astype(np.float32))
    index = LISTS(rows, similarity, index.attached)
    assert index.index.ntotal == 300
    assert len(index) == 300 + late
    allowed = rng.random(len(rows)) < share
    queries = similarity.prepare(rows_of(5, seed + 1).array())
    assert_same(index.search(queries, 7, allowed), exact(rows, similarity, queries, 7, allowed))


def test_many_rows_added_later_are_added_to_the_index(monkeypatch):
    rows = rows_of(300)
    index = LISTS(rows, Dot())
    more = rows_of(25, seed=5)
    rows = with_rows(rows, more.array())
    monkeypatch.setattr(approximate, "MAX_TAIL", 20)
    index = LISTS(rows, Dot(), index.attached)
    assert index.index.ntotal == 325
    assert_same(index.search(more.array(), 5), exact(rows, Dot(), more.array(), 5))


def test_few_rows_are_searched_exactly():
    for build in (Flat(), FaissIndex("IVF64,SQ8", "nprobe=8"), FaissIndex("HNSW32", "efSearch=9")):
        assert isinstance(build(rows_of(500), Dot()), FlatIndex)
    assert LISTS(VectorRows(), Dot()).search(np.zeros((2, 0), np.float32), 3).ids.shape == (2, 0)


def test_a_saved_index_is_used_only_for_the_same_kind_and_metric(tmp_path):
    rows, similarity = rows_of(400, dtype="float16"), Cosine()
    build = FaissIndex("IVF4,PQ4x4fs", "nprobe=2")
    index = build(rows, similarity)
    index.attached.source(tmp_path / "index.faiss")
    saved = type(index.attached)(index.attached.about, tmp_path / "index.faiss")
    again = build(rows, similarity, saved)
    queries = similarity.prepare(rows_of(9, seed=2).array())
    np.testing.assert_array_equal(again.search(queries, 5).ids, index.search(queries, 5).ids)
    (tmp_path / "index.faiss").write_bytes(b"nonsense")
    with raises("Can't read.*index.faiss.*keep_index"):
        build(rows, similarity, saved)
    # Of another kind or another metric: built again, without reading the file.
    assert len(FaissIndex("IVF8,SQ8", "nprobe=2")(rows, similarity, saved)) == 400
    assert len(build(rows, Dot(), saved)) == 400


def test_an_index_is_the_same_each_time_it_is_built():
    build = FaissIndex("OPQ4_8,IVF8,PQ4x4fs", "nprobe=2")
    files = [faiss.serialize_index(build(rows_of(400), Dot()).index) for _ in range(2)]
    np.testing.assert_array_equal(*files)


@pytest.mark.parametrize("factory, search, problem", cases("faiss_refusals"))
def test_strings_that_faiss_refuses_are_errors_with_its_reason(factory, search, problem):
    with raises(f"E305.*{factory!r}.*{search!r}: .*{problem}.*IVF2048"):
        FaissIndex(factory, search)


def test_vectors_that_codes_do_not_divide_and_queries_of_another_width_are_errors():
    with raises("E305.*should be a multiple"):
        FaissIndex("IVF4,PQ5", "nprobe=2")(rows_of(300), Dot())
    with raises("3 wide, but the searched vectors are 16 wide"):
        LISTS(rows_of(300), Dot()).search(np.zeros((1, 3), np.float32), 2)
