"""The nearest mentions of mentions, against comparing all of them."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.base.devices import on_gpu
from spacy_arbo_el.contrib.scale.corpus_files import read_search, write_search
from spacy_arbo_el.retrieval import mention_search
from spacy_arbo_el.retrieval.mention_search import (
    CorpusSearch,
    nearest_in_corpus,
    nearest_in_document,
)
from spacy_arbo_el.retrieval.similarity import Cosine, Dot, NegativeSquaredEuclidean

SIMILARITIES = [Cosine(), NegativeSquaredEuclidean()]
each_similarity = pytest.mark.parametrize("similarity", [*SIMILARITIES, Dot()])


def by_hand(vectors, count, similarity):
    """The nearest others of each mention, by comparing all pairs: of equal ones the first."""
    every = np.repeat(vectors[None], len(vectors), axis=0)
    scores = similarity.paired(vectors, every)
    np.fill_diagonal(scores, -np.inf)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return order, np.take_along_axis(scores, order, axis=1)


def prepared(seed, count, similarity, distinct=0):
    """Random vectors. distinct: How many different ones; 0 for all."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((distinct or count, 6)).astype(np.float32)
    if distinct:
        vectors = vectors[rng.integers(0, distinct, count)]
    return similarity.prepare(vectors)


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
        assert len(actual) == len(best)
        assert set(actual) <= set(others)
        assert nearest.scores[i][: len(best)] == pytest.approx([scores[j] for j in best], abs=1e-5)
        assert [scores[j] for j in actual] == pytest.approx([scores[j] for j in best], abs=1e-5)


@each_similarity
@pytest.mark.parametrize("distinct", [0, 3, 30])
def test_many_mentions_are_compared_as_those_of_a_corpus(monkeypatch, similarity, distinct):
    rng = np.random.default_rng(distinct)
    vectors = rng.standard_normal((distinct or 300, 48)).astype(np.float32)
    vectors = similarity.prepare(vectors[rng.permutation(300) % len(vectors)])
    documents = np.zeros(300, dtype=np.int64)
    monkeypatch.setattr(mention_search, "MAX_COMPARED", 10)
    ids, scores = by_hand(vectors, 5, similarity)
    alone = nearest_in_document(vectors, documents, 5, similarity)
    assert (alone.ids == ids).all()
    np.testing.assert_allclose(alone.scores, scores, rtol=1e-5)
    # Among other documents too, and a mention that came later.
    around = np.concatenate([vectors[:7], vectors, vectors[:2]])
    numbers = np.repeat([0, 1, 2], [7, 300, 2])
    nearest = nearest_in_document(around, numbers, 5, similarity)
    assert (nearest.ids[7:307] == ids + 7).all()
    assert (nearest.scores[7:307] == alone.scores).all()


@each_similarity
def test_of_equal_mentions_the_first_are_nearest_however_many(similarity):
    vectors = np.random.default_rng(2).standard_normal((9, 384)).astype(np.float32)
    vectors = similarity.prepare(vectors)[np.arange(180) % 9]
    expected = [[j for j in range(i % 9, 180, 9) if j != i][:4] for i in range(180)]
    assert nearest_in_corpus(vectors, 4, similarity).ids.tolist() == expected


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
@each_similarity
def test_mentions_without_a_vector_have_no_neighbours_and_are_none(monkeypatch, bad, similarity):
    vectors = prepared(3, 40, similarity)
    vectors[[0, 7, 39]] = bad
    documents = np.zeros(40, dtype=np.int64)
    monkeypatch.setattr(mention_search, "MAX_COMPARED", 50)
    results = [nearest_in_document(vectors, documents, 4, similarity)]
    monkeypatch.setattr(mention_search, "MAX_COMPARED", 5)
    results.append(nearest_in_document(vectors, documents, 4, similarity))
    results.append(nearest_in_corpus(vectors, 4, similarity))
    for nearest in results:
        assert not np.isin(nearest.ids, [0, 7, 39]).any()
        assert nearest.valid.sum() == 4 * 37
        assert np.isfinite(nearest.scores[nearest.valid]).all()
    nothing = np.full((3, 6), bad, dtype=np.float32)
    assert not nearest_in_corpus(nothing, 4, similarity).valid.any()
    assert nearest_in_corpus(nothing[:0], 4, similarity).ids.size == 0


def test_neighbours_that_cells_do_not_find_are_none(monkeypatch):
    monkeypatch.setattr(mention_search, "MAX_COMPARED", 10)
    monkeypatch.setattr(mention_search, "MAX_EXACT", 20)
    vectors = prepared(5, 30, Cosine())
    nearest = nearest_in_document(vectors, np.zeros(30, dtype=np.int64), 8, Cosine())
    assert (nearest.valid == np.isfinite(nearest.scores)).all()
    assert not nearest.valid.all()


def test_a_document_of_many_mentions_needs_little_memory():
    vectors = Cosine().prepare(np.random.default_rng(4).standard_normal((6000, 16))).astype("f4")
    tracemalloc.start()
    nearest = nearest_in_document(vectors, np.zeros(6000, dtype=np.int64), 4, Cosine())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert nearest.valid.all(), "all pairs would be 144 MB, twice"
    assert peak < 100e6


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_search_in_cells_misses_few_neighbours(monkeypatch, similarity, rng):
    centres = rng.standard_normal((40, 16))
    vectors = centres[rng.integers(0, 40, 3000)] + 0.3 * rng.standard_normal((3000, 16))
    vectors = similarity.prepare(vectors.astype(np.float32))
    exact = nearest_in_corpus(vectors, 4, similarity)
    monkeypatch.setattr(mention_search, "MAX_EXACT", 100)
    actual = nearest_in_corpus(vectors, 4, similarity)
    assert actual.ids.shape == (3000, 4)
    assert (actual.ids != np.arange(3000)[:, None]).all()
    assert (actual.columns_of(exact.ids) >= 0).mean() >= 0.95
    same = actual.ids == exact.ids
    assert actual.scores[same] == pytest.approx(exact.scores[same], abs=1e-5)


def clustered(seed, count, similarity):
    """Vectors round a few centres, some of them equal and some without a vector."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((9, 24))[rng.integers(0, 9, count)]
    vectors = similarity.prepare((vectors + 0.2 * rng.standard_normal((count, 24))).astype("f4"))
    copied = rng.integers(0, count, count // 4)
    vectors[rng.integers(0, count, len(copied))] = vectors[copied]
    vectors[rng.integers(0, count, 3)] = 0
    return vectors


@given(
    seed=st.integers(0, 99),
    similarity=st.sampled_from([*SIMILARITIES, Dot()]),
    limit=st.sampled_from([50, 10_000]),
    size=st.sampled_from([1, 7, 64, 1000]),
)
def test_neighbours_do_not_depend_on_what_is_searched_for_together(
    tmp_path_factory, seed, similarity, limit, size
):
    vectors = clustered(seed, 300, similarity)
    folder = tmp_path_factory.mktemp("search")
    np.save(folder / "vectors.npy", vectors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mention_search, "MAX_EXACT", limit)
        expected = nearest_in_corpus(vectors, 4, similarity)
        write_search(folder, CorpusSearch.build(vectors, 4, similarity))
    mapped = np.load(folder / "vectors.npy", mmap_mode="c")
    saved = read_search(folder, mapped)
    assert (folder / "cells.faiss").is_file() == (limit == 50 and not on_gpu())
    order = np.random.default_rng(seed).permutation(300)
    for part in np.array_split(order, -(-300 // size)):
        found = saved.nearest(part)
        assert (found.ids == expected.ids[part]).all()
        assert (found.scores == expected.scores[part]).all()
