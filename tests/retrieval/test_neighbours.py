"""Mentions that are near mentions, against comparing all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.retrieval import neighbours
from spacy_arbo_el.retrieval.neighbours import nearest_earlier, nearest_in_corpus
from spacy_arbo_el.retrieval.similarity import cosine, negative_squared_euclidean

KINDS = [cosine(), negative_squared_euclidean()]


def prepared(seed, count, similarity, distinct=0):
    """Random vectors; only so many different ones, where that is given."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((distinct or count, 6)).astype(np.float32)
    if distinct:
        vectors = vectors[rng.integers(0, distinct, count)]
    return similarity.prepare(vectors)


@given(
    st.integers(0, 1000),
    st.integers(0, 40),
    st.integers(1, 20),
    st.sampled_from(KINDS),
    st.sampled_from([0, 1, 3]),
)
def test_the_nearest_of_those_that_came_before(seed, known, new, similarity, distinct):
    vectors = prepared(seed, known + new, similarity, distinct)
    found, values = nearest_earlier(vectors[:known], vectors[known:], 3, similarity, block=7)
    for i in range(new):
        before = known + i
        expected = similarity.paired(vectors[before][None], vectors[None, :before])[0]
        order = np.lexsort((np.arange(before), -expected))[:3]
        there = found[i] >= 0
        assert there.sum() == min(3, before) and (values[i][~there] == -np.inf).all()
        assert values[i][there] == pytest.approx(expected[order], abs=1e-5)
        if distinct:
            # Of those that are the very same, the first ones, however many there are.
            assert found[i][there].tolist() == order.tolist()
    # However many come at once.
    for cut in (known + 1, known + new // 2):
        rest, near = nearest_earlier(vectors[:cut], vectors[cut:], 3, similarity)
        assert (rest == found[cut - known :]).all()
        assert near == pytest.approx(values[cut - known :], abs=1e-6)


@pytest.mark.parametrize("similarity", KINDS)
def test_cells_miss_few(monkeypatch, similarity):
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((40, 16))
    vectors = centres[rng.integers(0, 40, 3000)] + 0.3 * rng.standard_normal((3000, 16))
    vectors = similarity.prepare(vectors.astype(np.float32))
    exact, near = nearest_in_corpus(vectors, 4, similarity)
    monkeypatch.setattr(neighbours, "EXACT", 100)
    found, values = nearest_in_corpus(vectors, 4, similarity)
    assert found.shape == (3000, 4) and (found != np.arange(3000)[:, None]).all()
    assert (found[:, :, None] == exact[:, None, :]).any(axis=2).mean() >= 0.95
    same = found == exact
    assert values[same] == pytest.approx(near[same], abs=1e-5)
