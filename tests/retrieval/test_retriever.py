"""Exemplars as neighbours: the nearest ones, and the nearest one of each further entity."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.encoders.inputs import SpanInputs
from spacy_arbo_el.kb.vectors import VectorRows
from spacy_arbo_el.mentions.record import MentionBatch
from spacy_arbo_el.retrieval import retriever as module
from spacy_arbo_el.retrieval.index.exact import FlatIndex
from spacy_arbo_el.retrieval.neighbours import AllowedEntities
from spacy_arbo_el.retrieval.retriever import EntitySearch, Retriever
from spacy_arbo_el.retrieval.similarity import Cosine, NegativeSquaredEuclidean

SIMILARITIES = [Cosine(), NegativeSquaredEuclidean()]


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
