"""The estimate of a share from log-odds without labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.base.calibration import log_odds_of, log_probability, log_softmax, with_presence
from spacy_arbo_el.base.coverage import PRIOR_MENTIONS, estimate_share, shift_between

FITTED = 0.4


def made_log_odds(share: float, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds as a ranker gives them that was fitted where a share of 0.4 was present, and which
    mentions are present: the evidence is normal, with a mean of 1 or of -1."""
    rng = np.random.default_rng(seed)
    present = rng.random(count) < share
    evidence = rng.normal(np.where(present, 1.0, -1.0), 1.0)
    # The log of the ratio of the two densities is twice the evidence.
    return 2 * evidence + np.log(FITTED / (1 - FITTED)), present


def log_posterior(share: float, log_odds: np.ndarray) -> float:
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
    assert 0.0 < found.share < 1.0
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
