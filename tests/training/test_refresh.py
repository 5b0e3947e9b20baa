"""Refreshes in training: what is encoded again, and when all is."""

from types import SimpleNamespace

import numpy as np
from scipy.sparse import csr_matrix

from spacy_arbo_el.retrieval.similarity import Cosine
from spacy_arbo_el.training.cache import EmbeddingCache
from spacy_arbo_el.training.refresh import refresh_texts

TEXTS, MENTIONS, WIDTH = 4000, 6, 16


def refreshed(change):
    """Refresh after the vectors of texts and mentions have changed. RETURNS: What was encoded."""
    rng = np.random.default_rng(0)
    texts = rng.standard_normal((TEXTS, WIDTH)).astype(np.float32)
    mentions = texts[:MENTIONS] + np.float32(0.1)
    gold = csr_matrix((np.ones(MENTIONS), (range(MENTIONS), range(MENTIONS))), (MENTIONS, TEXTS))
    cluster = np.arange(MENTIONS)
    cluster[-1] = -1
    table = SimpleNamespace(n_texts=TEXTS, cluster=cluster, mention_texts=gold)
    cache, encoded = EmbeddingCache(Cosine(), texts, mentions), []

    def encode(rows):
        encoded.append(rows)
        return change(texts)[rows]

    count = refresh_texts(cache, table, change(mentions), encode, np.random.default_rng(1))
    rows = np.concatenate(encoded)
    assert count == len(rows) == len(np.unique(rows)), "nothing is encoded twice"
    expected = Cosine().prepare(change(texts))
    np.testing.assert_array_equal(cache.texts[rows], expected[rows])
    np.testing.assert_array_equal(cache.mentions, Cosine().prepare(change(mentions)))
    nearest = np.argsort(-cache.mentions[:-1] @ expected.T, axis=1)[:, :10]
    return rows, nearest


def test_texts_near_mentions_and_some_others_are_encoded_again():
    rows, nearest = refreshed(lambda vectors: vectors * np.float32(1.01) + np.float32(0.01))
    assert np.isin(nearest, rows).all() and np.isin(np.arange(MENTIONS), rows).all()
    assert 100 < len(rows) < TEXTS / 3


def test_all_texts_are_encoded_where_others_are_near_mentions_now():
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0].astype(np.float32)
    rows, _ = refreshed(lambda vectors: np.abs(vectors @ turn))
    assert len(rows) == TEXTS
