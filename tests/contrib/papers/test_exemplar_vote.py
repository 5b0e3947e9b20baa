"""Votes of exemplars, compared with counting by hand."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import Calibration, TopK
from spacy_arbo_el.base.calibration import probability
from spacy_arbo_el.contrib.papers.exemplar_vote import ExemplarVote

from ...ranking.examples import decide, neighbours_of, nothing, top_k

CALIBRATION = Calibration()


def vote(owners, similarity, min_logit=-np.inf, **settings):
    """Exemplars are numbered row by row."""
    rows = np.where(owners >= 0, np.arange(owners.size).reshape(owners.shape), -1)
    neighbours = neighbours_of(nothing(len(owners)), TopK(rows, similarity), owners)
    inference = ExemplarVote(max(owners.shape[1], 1), **settings)
    return decide(inference, neighbours, CALIBRATION, min_logit)


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=5))
def test_vote_links_to_the_most_frequent_entity_and_of_equals_to_the_nearest(lists):
    width = max(map(len, lists))
    owners = np.array([row + [-1] * (width - len(row)) for row in lists], dtype=np.int64)
    owners = owners.reshape(len(lists), width)
    similarity = np.where(owners >= 0, 0.9 - 0.1 * np.arange(width), -np.inf).astype(np.float32)
    decisions = vote(owners, similarity)
    for i, row in enumerate(lists):
        if not row:
            assert decisions.entities[i] == -1
            assert decisions.paths[i] == []
            continue
        counts = Counter(row)
        most = max(counts.values())
        expected = next(entity for entity in row if counts[entity] == most)
        assert decisions.entities[i] == expected
        nearest = similarity[i, row.index(expected)]
        assert np.isclose(decisions.logits[i], CALIBRATION.logits("exemplar", nearest))
        entity, exemplar, mention = decisions.paths[i]
        place = i * width + row.index(expected)
        assert (entity.ref, exemplar.ref, mention.ref) == (expected, place, i)


def test_vote_weighs_by_temperature_and_obeys_the_threshold():
    owners = np.array([[0, 1, 1]])
    # Odds of 1 : 2 and of 3 : 2 for the two entities, at a temperature of 1.
    log_odds = np.log([[1.0, 0.5, 0.5]]) + 2
    more = np.log([[1.0, 1 / 3, 1 / 3]]) + 2
    slope, offset = CALIBRATION.exemplar
    for odds, expected in ((log_odds - 0.01 * np.array([[1, 0, 0]]), 1), (more, 0)):
        similarity = ((odds - offset) / slope).astype(np.float32)
        assert vote(owners, similarity).entities.tolist() == [1]
        assert vote(owners, similarity, temperature=1.0).entities.tolist() == [expected]
    similarity = np.array([[0.9, 0.5, 0.5]], dtype=np.float32)
    assert vote(owners, similarity, temperature=1.0).entities.tolist() == [0]
    assert vote(owners, similarity, 5.0).entities.tolist() == [-1]


@pytest.mark.parametrize("temperature", [None, 0.1])
def test_vote_of_a_certain_exemplar_links_with_probability_one(temperature):
    owners = np.array([[3, -1, -1], [0, 1, 1]])
    similarity = np.array([[np.inf, -np.inf, -np.inf], [0.9, 0.5, 0.5]], dtype=np.float32)
    with np.errstate(all="raise", under="ignore"):
        decisions = vote(owners, similarity, 5.0, temperature=temperature)
    assert decisions.entities[0] == 3
    assert probability(decisions.logits[0]) == 1.0
    with_others = np.array([[3, 1, 2]])
    similarity = np.array([[np.inf, 0.9, np.inf]], dtype=np.float32)
    assert vote(with_others, similarity, temperature=0.1).entities.tolist() == [3]


def test_texts_vote_as_the_exemplars_do():
    """Two texts of entity 1 and one exemplar are nearer than two exemplars of entity 0."""
    exemplars = top_k([[7, 8, 9]], [[0.8, 0.7, 0.2]])
    texts = top_k([[1, 2]], [[0.9, 0.1]])
    neighbours = neighbours_of(texts, exemplars, [[1, 0, 0]])
    without, three, four = (
        decide(ExemplarVote(count, texts=texts_vote), neighbours, CALIBRATION, -np.inf)
        for count, texts_vote in ((3, False), (3, True), (4, True))
    )
    assert [d.entities.tolist() for d in (without, three, four)] == [[0], [1], [1]]
    # Of equal numbers of votes the nearest counts, which is a text.
    assert [step.kind for step in four.paths[0]] == ["entity", "mention"]
    assert np.isclose(four.logits[0], CALIBRATION.logits("entity", np.float32(0.9)))


def test_texts_and_exemplars_are_compared_by_their_log_odds():
    """The exemplar is more similar, the text more probably right."""
    exemplars = top_k([[7]], [[0.8]])
    texts = top_k([[1]], [[0.7]])
    neighbours = neighbours_of(texts, exemplars, [[0]])
    for calibration, expected in ((CALIBRATION, 0), (Calibration(entity=(12.0, -4.0)), 1)):
        for count in (1, 2):
            found = decide(ExemplarVote(count, texts=True), neighbours, calibration, -np.inf)
            assert found.entities.tolist() == [expected]


def test_only_the_nearest_exemplars_vote_where_more_are_neighbours():
    """With ``n_exemplar_entities``, further exemplars stand behind the nearest."""
    exemplars = top_k([[3, 4, 5]], [[0.8, 0.7, 0.6]])
    neighbours = neighbours_of(nothing(1), exemplars, [[0, 1, 1]])
    assert decide(ExemplarVote(1), neighbours, CALIBRATION, -np.inf).entities.tolist() == [0]
    assert decide(ExemplarVote(3), neighbours, CALIBRATION, -np.inf).entities.tolist() == [1]
