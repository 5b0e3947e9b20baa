"""Probabilities from scores, and the estimate of coverage from log-odds without labels."""

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
    log_probability,
    log_softmax,
    probability,
    with_presence,
)
from spacy_arbo_el.linking.coverage import PRIOR_MENTIONS, estimate_share, shift_between

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


def test_the_temperature_of_scores_is_found(rng):
    scores = rng.normal(size=(4000, 5))
    correct = np.eye(5, dtype=bool)[(2.5 * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]
    assert fit_temperature(scores, correct, np.ones(4000))[0] == pytest.approx(2.5, abs=0.2)
    certain = np.eye(5, dtype=bool)[scores.argmax(axis=1)]
    assert 0 < fit_temperature(scores, certain, np.ones(4000))[0] <= MAX_TEMPERATURE


def test_evidence_that_any_candidate_is_right_is_found(rng):
    evidence = rng.normal(size=(8000, 2)) * [1.0, 100.0]
    present = rng.random(8000) < probability(2 * evidence[:, 0] + 0.5)
    first, second, offset = fit_presence(evidence, present, np.ones(8000), (1, 1))
    assert (first, offset) == (pytest.approx(2, abs=0.2), pytest.approx(0.5, abs=0.1))
    assert second >= 0
    assert second < 0.001
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


FITTED = 0.4


def made_log_odds(share, count, seed):
    """Log-odds as a ranker gives them that was fitted where a share of 0.4 was present, and which
    mentions are present: the evidence is normal, with a mean of 1 or of -1."""
    rng = np.random.default_rng(seed)
    present = rng.random(count) < share
    evidence = rng.normal(np.where(present, 1.0, -1.0), 1.0)
    # The log of the ratio of the two densities is twice the evidence.
    return 2 * evidence + np.log(FITTED / (1 - FITTED)), present


def log_posterior(share, log_odds):
    """What the estimate maximizes, written plainly."""
    ratios = np.exp(log_odds - np.log(FITTED / (1 - FITTED)))
    likelihood = np.log(share * ratios + 1 - share).sum()
    return float(likelihood + PRIOR_MENTIONS / 2 * (np.log(share) + np.log(1 - share)))


@given(st.floats(0.1, 0.9), st.integers(30, 300), st.integers(0, 10))
def test_the_estimate_is_where_the_posterior_is_largest(share, count, seed):
    log_odds, _ = made_log_odds(share, count, seed)
    found = estimate_share(log_odds, FITTED, np.arange(count)).share
    grid = np.linspace(0.001, 0.999, 999)
    best = grid[np.argmax([log_posterior(one, log_odds) for one in grid])]
    assert found == pytest.approx(best, abs=0.002)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_share_is_found_within_its_standard_error(share):
    found = [made_log_odds(share, 400, seed) for seed in range(20)]
    estimates = [estimate_share(log_odds, FITTED, np.arange(400)) for log_odds, _ in found]
    errors = np.array([one.share - share for one in estimates])
    stated = np.mean([one.standard_error for one in estimates])
    assert abs(errors.mean()) < 0.02
    assert 0.5 < errors.std() / stated < 2.0


def test_mentions_of_one_document_say_less_than_as_many_of_several():
    log_odds, _ = made_log_odds(0.5, 100, 0)
    log_odds = np.repeat(log_odds, 5)
    each = estimate_share(log_odds, FITTED, np.arange(500))
    together = estimate_share(log_odds, FITTED, np.repeat(np.arange(100), 5))
    assert each.share == together.share
    assert together.standard_error > 1.8 * each.standard_error


@given(st.integers(1, 40), st.sampled_from([-1e4, -40.0, 40.0, 1e4]))
def test_no_evidence_brings_the_share_to_its_ends(count, value):
    found = estimate_share(np.full(count, value), FITTED, np.arange(count))
    assert found.share > 0.0
    assert found.share < 1.0
    assert np.isfinite(found.standard_error)


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_shifts_add_up(one, other, third):
    there = shift_between(one, other) + shift_between(other, third)
    assert there == pytest.approx(shift_between(one, third), abs=1e-9)


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=6), st.floats(-30, 10), st.floats(-30, 10))
def test_another_presence_leaves_the_shares(scores, before, after):
    log_shares = log_softmax(np.array([scores]), np.ones((1, len(scores)), dtype=bool))
    logits = log_odds_of(log_shares, np.array([before]))
    moved = with_presence(logits, np.array([before]), np.array([after]))
    wanted = log_odds_of(log_shares, np.array([after]))
    assert np.allclose(moved, wanted, rtol=1e-3, atol=1e-3)
    total = np.exp(np.logaddexp.reduce(log_probability(moved), axis=1))
    assert total == pytest.approx(1 / (1 + np.exp(-after)), rel=1e-3)
