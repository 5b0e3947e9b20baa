"""Every kind of index against exact search over the same rows."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.kb.vectors import VectorRows
from spacy_arbo_el.retrieval.index import approximate
from spacy_arbo_el.retrieval.index.approximate import ApproximateIndex
from spacy_arbo_el.retrieval.index.flat import Flat, FlatIndex
from spacy_arbo_el.retrieval.index.quantizers import HNSW, IVF
from spacy_arbo_el.retrieval.similarity import Cosine, Dot, NegativeSquaredEuclidean

SIMILARITIES = [Dot(), Cosine(), NegativeSquaredEuclidean()]
WIDTH = 16


def rows_of(count, seed=0, dtype="float32"):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(count // 30, 1), WIDTH))
    vectors = centres[rng.integers(0, len(centres), count)] + 0.3 * rng.standard_normal(
        (count, WIDTH)
    )
    return VectorRows(vectors.astype(dtype), np.arange(count), dtype)


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
@pytest.mark.parametrize("codes", ["float32", "float16", "sq8", "pq8", "pq4"])
def test_search_is_exact_where_all_lists_are_searched_and_all_candidates_rescored(
    similarity, codes
):
    rows = rows_of(1200)
    queries = similarity.prepare(rows_of(50, seed=1).array())
    index = IVF(n_lists=8, n_probes=8, codes=codes, rescore_factor=1000)(rows, similarity)
    assert isinstance(index, ApproximateIndex)
    assert_same(index.search(queries, 20), exact(rows, similarity, queries, 20))


@given(seed=st.integers(0, 99), share=st.floats(0.0, 1.0), late=st.integers(0, 30))
def test_rows_added_later_and_rows_that_are_not_allowed(seed, share, late):
    similarity = Cosine()
    rows = rows_of(300, seed)
    index = IVF(n_lists=4, n_probes=4, codes="float32", rescore_factor=100)(rows, similarity)
    rng = np.random.default_rng(seed)
    rows.append(rng.standard_normal((late, WIDTH)).astype(np.float32), np.arange(late))
    index = IVF(n_lists=4, n_probes=4, codes="float32", rescore_factor=100)(
        rows, similarity, index.attached
    )
    assert index.index.ntotal == 300 and len(index) == 300 + late
    allowed = rng.random(len(rows)) < share
    queries = similarity.prepare(rows_of(5, seed + 1).array())
    assert_same(index.search(queries, 7, allowed), exact(rows, similarity, queries, 7, allowed))


def test_many_rows_added_later_are_added_to_the_index(monkeypatch):
    rows = rows_of(300)
    build = IVF(n_lists=4, n_probes=4, codes="float32")
    index = build(rows, Dot())
    more = rows_of(25, seed=5)
    rows.append(more.array(), more.owners)
    monkeypatch.setattr(approximate, "MAX_TAIL", 20)
    index = build(rows, Dot(), index.attached)
    assert index.index.ntotal == 325
    assert_same(index.search(more.array(), 5), exact(rows, Dot(), more.array(), 5))


@pytest.mark.parametrize("codes", ["float32", "sq8", "pq8", "pq4"])
@pytest.mark.parametrize("kind", [IVF, HNSW])
def test_recall_of_the_default_settings(kind, codes):
    rows, similarity = rows_of(12_000), Cosine()
    queries = similarity.prepare(rows_of(12_000).array()[::100] + np.float32(0.01))
    index = kind(codes=codes)(rows, similarity)
    assert isinstance(index, ApproximateIndex)
    actual, expected = index.search(queries, 10).ids, exact(rows, similarity, queries, 10).ids
    recall = np.mean([len({*a} & {*b}) / 10 for a, b in zip(actual.tolist(), expected.tolist())])
    assert recall > 0.9


def test_few_rows_are_searched_exactly():
    for build in (Flat(), IVF(), HNSW()):
        assert isinstance(build(rows_of(500), Dot()), FlatIndex)
    empty = IVF(n_lists=4)(VectorRows(), Dot())
    assert empty.search(np.zeros((2, 0), np.float32), 3).ids.shape == (2, 0)


def test_a_saved_index_is_used_only_for_the_same_kind_and_metric(tmp_path):
    rows, similarity = rows_of(400, dtype="float16"), Cosine()
    index = IVF(n_lists=4)(rows, similarity)
    index.attached.write(tmp_path / "index.faiss")
    saved = type(index.attached)(index.attached.about, tmp_path / "index.faiss")
    again = IVF(n_lists=4)(rows, similarity, saved)
    queries = similarity.prepare(rows_of(9, seed=2).array())
    np.testing.assert_array_equal(again.search(queries, 5).ids, index.search(queries, 5).ids)
    (tmp_path / "index.faiss").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="Can't read.*index.faiss.*spacy arbo index"):
        IVF(n_lists=4)(rows, similarity, saved)
    # Of another kind or another metric: built again, without reading the file.
    assert len(IVF(n_lists=8)(rows, similarity, saved)) == 400
    assert len(IVF(n_lists=4)(rows, Dot(), saved)) == 400


def test_unknown_codes_and_queries_of_another_width_are_errors():
    with pytest.raises(ValueError, match="can't have the codes 'zip'.*pq4"):
        IVF(codes="zip")
    index = IVF(n_lists=4)(rows_of(300), Dot())
    with pytest.raises(ValueError, match="3 wide, but the searched vectors are 16 wide"):
        index.search(np.zeros((1, 3), np.float32), 2)


def test_builders_pickle_and_their_repr_names_all_settings():
    for build in (Flat(), IVF(n_lists=8, codes="sq8"), HNSW(ef_search=64)):
        assert pickle.loads(pickle.dumps(build)) == build
    assert repr(IVF(n_lists=8)) == "IVF(n_lists=8, n_probes=0, codes='pq4', rescore_factor=4.0)"
