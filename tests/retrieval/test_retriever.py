"""The nearest entities and exemplars of mentions, against comparing all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import MentionBatch, SpanInputs
from spacy_arbo_el.kb.vectors import VectorRows
from spacy_arbo_el.retrieval import retriever as module
from spacy_arbo_el.retrieval.index.exact import FlatIndex
from spacy_arbo_el.retrieval.neighbours import AllowedEntities
from spacy_arbo_el.retrieval.retriever import EntitySearch, Retriever
from spacy_arbo_el.retrieval.similarity import NegativeSquaredEuclidean

from .index.test_exact import SIMILARITIES


def batch_of(vectors):
    numbers = np.arange(len(vectors))
    labels = np.zeros(len(vectors), dtype=np.uint64)
    records = [None] * len(vectors)
    return MentionBatch(records, SpanInputs.empty(), numbers, labels, len(vectors), vectors)


def retriever_of(vectors, owners, similarity, n_entities):
    none = np.zeros((0, vectors.shape[1]), dtype=np.float32)
    rows = VectorRows(none, np.arange(0))
    texts = EntitySearch(rows, FlatIndex(none, similarity), similarity)
    index = FlatIndex(vectors, similarity)
    return Retriever(texts, index, 100 + np.arange(len(vectors)), owners, similarity, n_entities)


def naive(scores, owners, usable, count, n_entities):
    """The rows of one mention, from its similarities to all exemplars."""
    order = sorted(np.flatnonzero(usable).tolist(), key=lambda row: (-scores[row], row))
    taken, seen = [], set()
    for place, row in enumerate(order):
        is_first = owners[row] not in seen and len(seen) < n_entities
        seen |= {owners[row]} if is_first else set()
        if place < count or is_first:
            taken.append(row)
    return taken


@given(
    st.integers(0, 10_000),
    st.integers(0, 40),
    st.integers(0, 6),
    st.integers(1, 9),
    st.sampled_from(SIMILARITIES),
    st.booleans(),
)
def test_further_entities_equal_the_oracle(seed, n, count, n_entities, similarity, by_label):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, 3)).astype(np.float32)
    # Some exemplars are equal, and most are of one entity.
    vectors[n // 2 :] = vectors[: n - n // 2]
    vectors = similarity.prepare(vectors)
    owners = rng.choice(8, n, p=[0.65, *[0.05] * 7]).astype(np.int64)
    queries = similarity.prepare(rng.normal(size=(5, 3)).astype(np.float32))
    allowed = None
    if by_label:
        allowed = AllowedEntities(rng.integers(0, 2, 5), rng.random((2, 8)) < 0.6)
    retriever = retriever_of(vectors, owners, similarity, n_entities)
    got = retriever.neighbours(batch_of(queries), 1, count, 0, allowed)
    for i in range(5):
        scores = similarity.paired(queries[i : i + 1], vectors[None])[0]
        usable = np.ones(n, dtype=bool)
        if allowed is not None:
            usable = allowed.masks[allowed.label_numbers[i]][owners]
        expected = naive(scores, owners, usable, count, n_entities) if count else []
        valid = got.exemplars.valid[i]
        rows = got.exemplars.ids[i][valid] - 100
        assert rows.tolist() == expected
        assert got.exemplar_entities[i][valid].tolist() == owners[expected].tolist()
        np.testing.assert_allclose(
            got.exemplars.scores[i][: len(rows)], scores[expected], atol=1e-5
        )


def test_at_most_so_many_exemplars_are_searched(monkeypatch):
    """An entity whose exemplars are nearest in thousands hides others."""
    monkeypatch.setattr(module, "MAX_SEARCHED", 16)
    similarity = NegativeSquaredEuclidean()
    vectors = np.arange(60, dtype=np.float32)[:, None]
    owners = np.where(np.arange(60) < 15, 0, np.arange(60))
    retriever = retriever_of(vectors, owners, similarity, 4)
    got = retriever.neighbours(batch_of(np.array([[-1.0]], dtype=np.float32)), 1, 2, 0)
    assert (got.exemplars.ids[0] - 100).tolist()[:4] == [0, 1, 15, -101]


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
