"""The nearest mentions of mentions, against comparing all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.retrieval import mention_search
from spacy_arbo_el.retrieval.mention_search import (
    nearest_earlier,
    nearest_in_corpus,
    nearest_in_document,
)
from spacy_arbo_el.retrieval.similarity import Cosine, NegativeSquaredEuclidean

SIMILARITIES = [Cosine(), NegativeSquaredEuclidean()]


def prepared(seed, count, similarity, distinct=0):
    """Random vectors. distinct: How many different ones; 0 for all."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((distinct or count, 6)).astype(np.float32)
    if distinct:
        vectors = vectors[rng.integers(0, distinct, count)]
    return similarity.prepare(vectors)


@given(
    st.integers(0, 1000),
    st.integers(0, 40),
    st.integers(1, 20),
    st.sampled_from(SIMILARITIES),
    st.sampled_from([0, 1, 3]),
)
def test_nearest_earlier_mentions(seed, n_earlier, n_new, similarity, distinct):
    vectors = prepared(seed, n_earlier + n_new, similarity, distinct)
    nearest = nearest_earlier(vectors[:n_earlier], vectors[n_earlier:], 3, similarity, block=7)
    for i in range(n_new):
        before = n_earlier + i
        expected = similarity.paired(vectors[before][None], vectors[None, :before])[0]
        order = np.lexsort((np.arange(before), -expected))[:3]
        valid = nearest.valid[i]
        assert valid.sum() == min(3, before) and (nearest.scores[i][~valid] == -np.inf).all()
        assert nearest.scores[i][valid] == pytest.approx(expected[order], abs=1e-5)
        if distinct:
            # Of equal vectors the first ones, however many there are.
            assert nearest.ids[i][valid].tolist() == order.tolist()
    # The result does not depend on how many mentions come at once.
    for cut in (n_earlier + 1, n_earlier + n_new // 2):
        rest = nearest_earlier(vectors[:cut], vectors[cut:], 3, similarity)
        assert (rest.ids == nearest.ids[cut - n_earlier :]).all()
        assert rest.scores == pytest.approx(nearest.scores[cut - n_earlier :], abs=1e-6)


@given(
    st.integers(0, 1000),
    st.lists(st.integers(0, 4), max_size=12).map(sorted),
    st.integers(0, 4),
    st.sampled_from(SIMILARITIES),
)
def test_nearest_in_document_compares_mentions_of_one_document(seed, documents, count, similarity):
    vectors = prepared(seed, len(documents), similarity)
    documents = np.array(documents, dtype=np.int64)
    nearest = nearest_in_document(vectors, documents, count, similarity)
    assert nearest.ids.shape == (len(documents), count)
    for i, document in enumerate(documents):
        others = [j for j in np.flatnonzero(documents == document).tolist() if j != i]
        values = similarity.paired(vectors[i][None], vectors[None, others])[0].tolist()
        scores = dict(zip(others, values))
        best = sorted(others, key=lambda j: -scores[j])[:count]
        actual = nearest.ids[i][nearest.valid[i]].tolist()
        assert len(actual) == len(best) and set(actual) <= set(others)
        assert nearest.scores[i][: len(best)] == pytest.approx([scores[j] for j in best], abs=1e-5)
        assert [scores[j] for j in actual] == pytest.approx([scores[j] for j in best], abs=1e-5)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_search_in_cells_misses_few_neighbours(monkeypatch, similarity):
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((40, 16))
    vectors = centres[rng.integers(0, 40, 3000)] + 0.3 * rng.standard_normal((3000, 16))
    vectors = similarity.prepare(vectors.astype(np.float32))
    exact = nearest_in_corpus(vectors, 4, similarity)
    monkeypatch.setattr(mention_search, "MAX_EXACT", 100)
    actual = nearest_in_corpus(vectors, 4, similarity)
    assert actual.ids.shape == (3000, 4) and (actual.ids != np.arange(3000)[:, None]).all()
    assert (actual.columns_of(exact.ids) >= 0).mean() >= 0.95
    same = actual.ids == exact.ids
    assert actual.scores[same] == pytest.approx(exact.scores[same], abs=1e-5)
