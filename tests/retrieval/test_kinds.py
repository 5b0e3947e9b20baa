"""Every kind of index against exact search over the same rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.kb.vectors import VectorRows
from spacy_arbo_el.retrieval import approximate
from spacy_arbo_el.retrieval.approximate import ApproximateIndex
from spacy_arbo_el.retrieval.index import FlatIndex
from spacy_arbo_el.retrieval.kinds import hnsw, ivf
from spacy_arbo_el.retrieval.similarity import cosine, dot, negative_squared_euclidean

SIMILARITIES = [dot(), cosine(), negative_squared_euclidean()]
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


def same(found, expected):
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)
    for left, right, value in zip(found[1], expected[1], expected[0]):
        finite = np.where(np.isfinite(value), value, -1e9 - np.arange(len(value)))
        clear = np.abs(np.subtract.outer(finite, finite)) + np.eye(len(value)) > 1e-5
        sure = clear.all(axis=1)
        np.testing.assert_array_equal(left[sure], right[sure])


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("codes", ["float32", "float16", "sq8", "pq8", "pq4"])
def test_all_probed_and_all_ranked_again_is_exact(similarity, codes):
    rows = rows_of(1200)
    queries = similarity.prepare(rows_of(50, seed=1).array())
    index = ivf(lists=8, probes=8, codes=codes, refine=1000)(rows, similarity)
    assert isinstance(index, ApproximateIndex)
    same(index.search(queries, 20), exact(rows, similarity, queries, 20))


@given(seed=st.integers(0, 99), share=st.floats(0.0, 1.0), late=st.integers(0, 30))
def test_rows_that_came_later_and_rows_that_are_not_allowed(seed, share, late):
    similarity = cosine()
    rows = rows_of(300, seed)
    index = ivf(lists=4, probes=4, codes="float32", refine=100)(rows, similarity)
    rng = np.random.default_rng(seed)
    rows.append(rng.standard_normal((late, WIDTH)).astype(np.float32), np.arange(late))
    index = ivf(lists=4, probes=4, codes="float32", refine=100)(rows, similarity, index.attached)
    assert index.index.ntotal == 300 and len(index) == 300 + late
    allowed = rng.random(len(rows)) < share
    queries = similarity.prepare(rows_of(5, seed + 1).array())
    same(index.search(queries, 7, allowed), exact(rows, similarity, queries, 7, allowed))


def test_many_late_rows_go_into_the_index(monkeypatch):
    rows = rows_of(300)
    build = ivf(lists=4, probes=4, codes="float32")
    index = build(rows, dot())
    more = rows_of(25, seed=5)
    rows.append(more.array(), more.owners)
    monkeypatch.setattr(approximate, "TAIL", 20)
    index = build(rows, dot(), index.attached)
    assert index.index.ntotal == 325
    same(index.search(more.array(), 5), exact(rows, dot(), more.array(), 5))


@pytest.mark.parametrize("codes", ["float32", "sq8", "pq8", "pq4"])
@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_recall_of_the_defaults(kind, codes):
    rows, similarity = rows_of(12_000), cosine()
    queries = similarity.prepare(rows_of(12_000).array()[::100] + np.float32(0.01))
    build = {"ivf": ivf, "hnsw": hnsw}[kind](codes=codes)
    index = build(rows, similarity)
    assert isinstance(index, ApproximateIndex)
    found, expected = index.search(queries, 10)[1], exact(rows, similarity, queries, 10)[1]
    recall = np.mean([len({*a} & {*b}) / 10 for a, b in zip(found.tolist(), expected.tolist())])
    assert recall > 0.9


def test_few_rows_are_searched_exactly():
    assert isinstance(ivf()(rows_of(500), dot()), FlatIndex)
    assert isinstance(hnsw()(rows_of(500), dot()), FlatIndex)
    empty = ivf(lists=4)(VectorRows(), dot())
    assert empty.search(np.zeros((2, 0), np.float32), 3)[1].shape == (2, 0)


def test_kept_indexes_are_used_only_where_they_fit(tmp_path):
    rows, similarity = rows_of(400, dtype="float16"), cosine()
    index = ivf(lists=4)(rows, similarity)
    index.attached.write(tmp_path / "index.faiss")
    kept = type(index.attached)(index.attached.about, tmp_path / "index.faiss")
    again = ivf(lists=4)(rows, similarity, kept)
    queries = similarity.prepare(rows_of(9, seed=2).array())
    np.testing.assert_array_equal(again.search(queries, 5)[1], index.search(queries, 5)[1])
    (tmp_path / "index.faiss").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="index.faiss can't be read.*spacy arbo index"):
        ivf(lists=4)(rows, similarity, kept)
    # Of another kind or another metric: built anew, the file is not looked at.
    assert len(ivf(lists=8)(rows, similarity, kept)) == 400
    assert len(ivf(lists=4)(rows, dot(), kept)) == 400


def test_bad_settings_and_queries():
    with pytest.raises(ValueError, match="no codes 'zip'.*pq4"):
        ivf(codes="zip")
    index = ivf(lists=4)(rows_of(300), dot())
    with pytest.raises(ValueError, match="16 wide for vectors 3 wide"):
        index.search(np.zeros((1, 3), np.float32), 2)
