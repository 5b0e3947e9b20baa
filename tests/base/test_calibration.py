"""Probabilities from scores: they sum to at most 1, and equals share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spacy_arbo_el.base.calibration import (
    MAX_TEMPERATURE,
    fit_presence,
    fit_temperature,
    log_odds_of,
    log_softmax,
    probability,
)

numbers = st.floats(-50, 50)


@given(
    arrays(np.float64, (3, 4), elements=numbers),
    arrays(bool, (3, 4)),
    arrays(np.float64, 3, elements=numbers),
)
def test_they_are_a_share_of_the_probability_that_any_is_right(scores, valid, any_):
    logits = log_odds_of(log_softmax(scores, valid), any_)
    assert (np.isfinite(logits) == valid).all()
    p = np.where(valid, probability(logits.astype(np.float64)), 0)
    expected = probability(any_) * valid.any(axis=1)
    np.testing.assert_allclose(p.sum(axis=1), expected, atol=1e-5)
    for row, own in zip(scores, logits):
        order = np.argsort(row, kind="stable")
        finite = own[order][np.isfinite(own[order])]
        assert (np.diff(finite) >= 0).all(), "the order is that of the scores"


@pytest.mark.parametrize("count", [1, 2, 8])
def test_candidates_that_cannot_be_told_apart_share_it(count):
    shares = log_softmax(np.ones((1, count)), np.ones((1, count), bool))
    logits = log_odds_of(shares, np.array([2.0]))
    assert probability(logits) == pytest.approx(probability(np.array(2.0)) / count, abs=1e-5)


def test_the_temperature_of_scores_is_found():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4000, 5))
    correct = np.eye(5, dtype=bool)[(2.5 * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]
    assert fit_temperature(scores, correct, np.ones(4000))[0] == pytest.approx(2.5, abs=0.2)
    certain = np.eye(5, dtype=bool)[scores.argmax(axis=1)]
    assert 0 < fit_temperature(scores, certain, np.ones(4000))[0] <= MAX_TEMPERATURE


def test_evidence_that_any_candidate_is_right_is_found():
    rng = np.random.default_rng(0)
    evidence = rng.normal(size=(8000, 2)) * [1.0, 100.0]
    present = rng.random(8000) < probability(2 * evidence[:, 0] + 0.5)
    first, second, offset = fit_presence(evidence, present, np.ones(8000), (1, 1))
    assert (first, offset) == (pytest.approx(2, abs=0.2), pytest.approx(0.5, abs=0.1))
    assert 0 <= second < 0.001
    against = fit_presence(-evidence, present, np.ones(8000), (1, 1))
    assert against[0] == 0, "evidence never speaks against"
    for sign in (-1, 0):
        against = fit_presence(-evidence, present, np.ones(8000), (sign, 0))
        assert against[0] == pytest.approx(-2, abs=0.2)
    assert fit_presence(evidence, np.ones(8000, bool), np.ones(8000), (1, 1)) is None
    # A few mentions hardly move what is started from, and many do.
    start = np.array([1.0, 0.01, -1.0])
    few = fit_presence(evidence[:4], np.arange(4) < 2, np.ones(4), (1, 1), start)
    assert few == pytest.approx(start, abs=0.7)
    many = fit_presence(evidence, present, np.ones(8000), (1, 1), start)
    assert many == pytest.approx([first, second, offset], abs=0.05)
