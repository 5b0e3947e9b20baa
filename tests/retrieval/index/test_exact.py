"""Exact search, in torch and in NumPy, against sorting everything."""

import contextlib

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.retrieval.index import exact


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
    m = len(queries)
    values, rows = nearest.scores, nearest.ids
    expected = np.array(slowly(queries, vectors, k, metric, ~forbidden), dtype=np.int64)
    expected = expected.reshape(rows.shape)
    # At the border of the k nearest, either of two equals may be in.
    score = queries @ vectors.T if metric == "ip" else -((queries[:, None] - vectors) ** 2).sum(2)
    score = np.concatenate([score, np.full((m, 1), -np.inf)], axis=1)
    np.testing.assert_allclose(values, np.take_along_axis(score, expected, axis=1), atol=1e-5)
    np.testing.assert_allclose(values, np.take_along_axis(score, rows, axis=1), atol=1e-5)
    assert not (
        np.concatenate([forbidden, np.zeros((m, 1), bool)], axis=1)[np.arange(m)[:, None], rows]
    ).any()
