"""The nearest mentions in a corpus: exact and in cells, at once and some at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.base.devices import on_gpu
from spacy_arbo_el.contrib.scale.corpus_files import read_search, write_search
from spacy_arbo_el.retrieval import mention_search
from spacy_arbo_el.retrieval.mention_search import CorpusSearch, nearest_in_corpus
from spacy_arbo_el.retrieval.similarity import Cosine, Dot, NegativeSquaredEuclidean

SIMILARITIES = [Cosine(), NegativeSquaredEuclidean()]


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


def test_a_search_of_nothing_is_saved_too(tmp_path):
    search = CorpusSearch.build(np.zeros((0, 4), dtype=np.float32), 4, Cosine())
    write_search(tmp_path, search)
    saved = read_search(tmp_path, search.vectors)
    assert saved.nearest(np.zeros(0, dtype=np.int64)).ids.shape == (0, 0)
