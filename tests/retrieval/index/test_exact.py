"""Exact search against sorting everything, the same in every batch, over rows that are added."""

import contextlib

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.kb.vectors import VectorRows
from spacy_arbo_el.retrieval.index import exact
from spacy_arbo_el.retrieval.index.exact import Flat, FlatIndex
from spacy_arbo_el.retrieval.similarity import Cosine, Dot, NegativeSquaredEuclidean


def slowly(queries, vectors, k, metric, allowed):
    result = []
    for i, q in enumerate(queries):
        scores = [float(q @ v) if metric == "ip" else -float((q - v) @ (q - v)) for v in vectors]
        order = sorted(range(len(vectors)), key=lambda r: (-scores[r], r))
        order = [r for r in order if allowed[i, r]][:k]
        result.append(order + [-1] * (min(k, len(vectors)) - len(order)))
    return result


@contextlib.contextmanager
def small_blocks(n, few):
    """Blocks of two queries, which are few or many."""
    before = exact.BLOCK["cpu"], exact.FEW_QUERIES
    exact.BLOCK["cpu"] = 2 * max(n, 1)
    exact.FEW_QUERIES = few
    try:
        yield
    finally:
        exact.BLOCK["cpu"], exact.FEW_QUERIES = before


@given(
    seed=st.integers(0, 10**6),
    sizes=st.tuples(st.integers(0, 6), st.integers(0, 8), st.integers(0, 10)),
    metric=st.sampled_from(["ip", "l2"]),
    left_out=st.sampled_from(["none", "rows", "pairs"]),
    few=st.integers(0, 2),
)
def test_nearest_leaves_out_what_is_forbidden(seed, sizes, metric, left_out, few):
    (m, n, k), rng = sizes, np.random.default_rng(seed)
    # Small whole numbers: ties, and no rounding.
    queries = rng.integers(-2, 3, (m, 3)).astype(np.float32)
    vectors = rng.integers(-2, 3, (n, 3)).astype(np.float32)
    mask = rng.random((m, n) if left_out == "pairs" else n) < 0.3 * (left_out != "none")
    pairs = rng.random((m, n)) < 0.3

    def forbid(scores, start):
        exact.forbid_mask(mask)(scores, start)
        exact.forbid_pairs(*np.nonzero(pairs))(scores, start)

    with small_blocks(n, few):
        nearest = exact.nearest(queries, torch.from_numpy(vectors), k, metric, forbid)
    check(nearest, queries, vectors, k, metric, mask | pairs)


def check(nearest, queries, vectors, k, metric, forbidden):
    """Compare a result with sorting everything."""
    values, rows = nearest.scores, nearest.ids
    expected = np.array(slowly(queries, vectors, k, metric, ~forbidden), dtype=np.int64)
    expected = expected.reshape(rows.shape)
    # At the border of the k nearest, either of two equals may be in.
    score = queries @ vectors.T if metric == "ip" else -((queries[:, None] - vectors) ** 2).sum(2)
    score[forbidden] = -np.inf
    score = np.concatenate([score, np.full((len(queries), 1), -np.inf)], axis=1)
    np.testing.assert_allclose(values, np.take_along_axis(score, expected, axis=1), atol=1e-5)
    np.testing.assert_allclose(values, np.take_along_axis(score, rows, axis=1), atol=1e-5)
    assert (np.isinf(values) == (rows < 0)).all()


SIMILARITIES = [Dot(), Cosine(), NegativeSquaredEuclidean()]


def clustered(rng, n, width=24):
    """Vectors of which many are equal, and many nearly so."""
    centres = rng.standard_normal((3, width)).astype(np.float32)
    vectors = centres[rng.integers(0, 3, n)]
    nearly = rng.random(n) < 0.5
    vectors[nearly] *= 1 + 3e-7 * rng.standard_normal((int(nearly.sum()), 1)).astype(np.float32)
    return vectors


@given(
    st.integers(0, 10**6), st.integers(1, 120), st.integers(1, 40), st.sampled_from(SIMILARITIES)
)
def test_a_query_has_the_same_result_in_every_batch(seed, n, k, similarity):
    rng = np.random.default_rng(seed)
    vectors = clustered(rng, n)
    index = FlatIndex(similarity.prepare(vectors), similarity)
    queries = similarity.prepare(clustered(rng, 40))
    together = index.search(queries, k)
    for size in (1, 3):
        for start in range(0, 9, size):
            part = index.search(queries[start : start + size], k)
            assert part.ids.tolist() == together.ids[start : start + size].tolist()
            assert part.scores.tolist() == together.scores[start : start + size].tolist()
    allowed = rng.random(n) < 0.7
    some = index.search(queries, k, allowed)
    alone = index.search(queries[5:6], k, allowed)
    assert alone.ids.tolist() == some.ids[5:6].tolist()
    assert allowed[some.ids[some.valid]].all()
    assert (some.valid.sum(axis=1) == min(k, int(allowed.sum()))).all()


def test_of_forty_equal_rows_the_first_are_taken(rng):
    """Forty entities of one name: which of them were candidates depended on the batch."""
    vectors = rng.standard_normal((500, 384)).astype(np.float32)
    vectors[100:140] = vectors[100]
    similarity = Cosine()
    index = FlatIndex(similarity.prepare(vectors), similarity)
    queries = similarity.prepare(vectors[100] + 0.1 * rng.standard_normal((50, 384), np.float32))
    for batch in (1, 7, 50):
        for start in range(0, 50, batch):
            nearest = index.search(queries[start : start + batch], 24)
            assert (nearest.ids == np.arange(100, 124)).all()


def with_rows(rows, vectors):
    """More rows at the end."""
    every = np.concatenate([rows.array(), vectors])
    return VectorRows(every, np.zeros(len(every), dtype=np.int64))


@given(st.integers(0, 10**6), st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_an_index_that_grows_is_the_one_that_is_built_at_once(seed, counts):
    rng = np.random.default_rng(seed)
    similarity = Cosine()
    rows, versions = VectorRows(np.zeros((0, 8), np.float32)), []
    index = None
    for count in counts:
        vectors = rng.standard_normal((count, 8)).astype(np.float32)
        rows = with_rows(rows, vectors)
        index = Flat()(rows, similarity, None, index)
        versions.append((index, index.vectors.copy()))
    for version, vectors in versions:
        assert version.vectors.tolist() == vectors.tolist()
    assert index.vectors.tolist() == similarity.prepare(rows.array()).tolist()
    queries = similarity.prepare(rng.standard_normal((4, 8)).astype(np.float32))
    whole = FlatIndex(similarity.prepare(rows.array()), similarity)
    assert index.search(queries, 5).ids.tolist() == whole.search(queries, 5).ids.tolist()
