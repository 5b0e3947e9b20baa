"""Exemplars that vote, against counting by hand."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.inference.calibration import Calibration
from spacy_arbo_el.inference.vote import exemplar_vote
from spacy_arbo_el.retrieval.neighbours import Neighbours


def neighbours(owners, similarity, decided=None):
    count = len(owners)
    none, never = np.zeros((count, 0), np.int64), np.zeros((count, 0), np.float32)
    rows = np.where(owners >= 0, np.arange(owners.size).reshape(owners.shape), -1)
    return Neighbours(
        np.zeros(count, np.int64), none, never, rows, similarity, owners, none, never, None, decided
    )


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=5))
def test_the_most_frequent_of_equals_the_nearest(lists):
    width = max(map(len, lists))
    owners = np.array([row + [-1] * (width - len(row)) for row in lists], dtype=np.int64)
    owners = owners.reshape(len(lists), width)
    similarity = np.where(owners >= 0, 0.9 - 0.1 * np.arange(width), -np.inf).astype(np.float32)
    found = exemplar_vote(width or 1)(neighbours(owners, similarity), Calibration(), -np.inf)
    for i, row in enumerate(lists):
        if not row:
            assert found.entity[i] == -1 and found.paths[i] == []
            continue
        counts = Counter(row)
        most = max(counts.values())
        expected = next(entity for entity in row if counts[entity] == most)
        assert found.entity[i] == expected
        nearest = similarity[i, row.index(expected)]
        assert np.isclose(found.logit[i], Calibration().logits("exemplar", nearest))
        entity, exemplar, mention = found.paths[i]
        assert (entity.ref, exemplar.ref, mention.ref) == (
            expected,
            i * width + row.index(expected),
            i,
        )


def test_votes_by_similarity_and_the_threshold():
    owners = np.array([[0, 1, 1]])
    similarity = np.array([[0.9, 0.5, 0.5]], dtype=np.float32)
    near = neighbours(owners, similarity)
    assert exemplar_vote(3)(near, Calibration(), -np.inf).entity.tolist() == [1]
    assert exemplar_vote(3, temperature=0.1)(near, Calibration(), -np.inf).entity.tolist() == [0]
    assert exemplar_vote(3)(near, Calibration(), 5.0).entity.tolist() == [-1]
    said = neighbours(owners, similarity, decided=np.array([True]))
    found = exemplar_vote(3)(said, Calibration(), 5.0)
    assert found.entity.tolist() == [0] and found.logit[0] > 5


def test_without_exemplars():
    none = neighbours(np.zeros((2, 0), np.int64), np.zeros((2, 0), np.float32))
    assert exemplar_vote()(none, Calibration(), -np.inf).entity.tolist() == [-1, -1]
