"""The nearest entities of mentions, against comparing all rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.kb.vectors import VectorRows
from spacy_arbo_el.retrieval.index.exact import FlatIndex
from spacy_arbo_el.retrieval.neighbours import AllowedEntities
from spacy_arbo_el.retrieval.retriever import EntitySearch
from spacy_arbo_el.retrieval.similarity import Cosine, Dot, NegativeSquaredEuclidean

SIMILARITIES = [Dot(), Cosine(), NegativeSquaredEuclidean()]
POSITIONS = 5


def slowly(similarity, vector, rows, owners, is_allowed):
    """The best similarity of each allowed entity that has a row."""
    scores = similarity.paired(vector[None], similarity.prepare(rows)[None])[0].tolist()
    best = {}
    for owner, score in zip(owners.tolist(), scores):
        if owner >= 0 and is_allowed[owner]:
            best[owner] = max(best.get(owner, -np.inf), score)
    return best


@given(
    st.integers(0, 1000),
    st.lists(st.integers(-1, POSITIONS - 1), min_size=1, max_size=12),
    st.integers(1, 4),
    st.sampled_from(SIMILARITIES),
    st.booleans(),
)
def test_nearest_entities(seed, owners, count, similarity, use_labels):
    rng = np.random.default_rng(seed)
    owners = np.array(owners, dtype=np.int64)
    vectors = rng.standard_normal((len(owners), 6)).astype(np.float32)
    queries = similarity.prepare(rng.standard_normal((4, 6)).astype(np.float32))
    masks = rng.random((2, POSITIONS)) < 0.6 if use_labels else np.ones((2, POSITIONS), dtype=bool)
    labels = np.array([0, 1, 1, 0])
    allowed = AllowedEntities(labels, masks) if use_labels else None
    rows = VectorRows(vectors, owners)
    index = FlatIndex(similarity.prepare(vectors), similarity)
    search = EntitySearch(rows, index, similarity, oversampling=len(owners))
    nearest = search.nearest(queries, count, allowed)
    assert nearest.ids.shape == (4, count)
    for i, query in enumerate(queries):
        best = slowly(similarity, query, vectors, owners, masks[labels[i]])
        expected = sorted(best, key=lambda entity: -best[entity])[:count]
        actual = nearest.ids[i][nearest.valid[i]].tolist()
        assert actual == expected
        scores = nearest.scores[i][nearest.valid[i]]
        assert scores == pytest.approx([best[entity] for entity in expected], abs=1e-5)
        best = slowly(similarity, query, vectors, owners, np.ones(POSITIONS, dtype=bool))
        for entity in range(POSITIONS + 1):
            expected = pytest.approx(best.get(entity, -np.inf), abs=1e-5)
            assert search.similarity_of(query, entity) == expected


def test_the_knowledge_base_may_be_empty():
    rows, index = VectorRows(), FlatIndex(np.zeros((0, 0), np.float32), Cosine())
    search = EntitySearch(rows, index, Cosine())
    queries = np.ones((2, 6), dtype=np.float32)
    nearest = search.nearest(queries, 3, named=np.array([[0], [1]]))
    assert nearest.ids.shape == (2, 3) and not nearest.valid.any()
    assert search.similarity_of(queries[0], 0) == -np.inf


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_mention_without_a_vector_has_its_named_entities_alone(similarity):
    rows = VectorRows(np.array([[1, 0], [0, 2], [1, 1]], np.float32), np.array([0, -1, 2]))
    index = FlatIndex(similarity.prepare(rows.array()), similarity)
    search = EntitySearch(rows, index, similarity)
    queries = np.array([[0, 0], [0.6, 0.8], [0, 0]], np.float32)
    named = np.array([[-1, 2], [-1, -1], [1, -1]])
    nearest = search.nearest(queries, 3, None, named)
    assert nearest.ids[0].tolist() == [2, -1, -1]
    assert nearest.ids[1, :2].tolist() == [2, 0]
    assert nearest.ids[2].tolist() == [1, -1, -1]
    assert np.isfinite(nearest.scores[nearest.valid]).all()
    prepared = similarity.prepare(rows.array())[2:]
    assert nearest.scores[0, 0] == pytest.approx(similarity.of_equals(prepared)[0])
    assert search.nearest(queries, 1, None, named).ids.tolist() == [[2], [2], [1]]
    assert not search.nearest(queries, 3).valid[[0, 2]].any()
