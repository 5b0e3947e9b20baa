"""Probabilities of candidates, which sum to at most 1. They are computed from scores, for each
mention.

The probability of a candidate is the probability that any candidate is right, times the candidate's
share by softmax. So candidates that cannot be told apart share it, and the rest is NIL.
"""

from collections.abc import Sequence

import numpy as np

# The softmax must tell candidates apart.
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 20.0
# Weight of the penalty for moving away from a start, and of the penalty without one; they count as
# so many mentions.
PRIOR, NO_PRIOR = 8.0, 0.005
# The largest log-odds that a candidate can have.
MOST = 20.0


def log_odds_of(scores: np.ndarray, valid: np.ndarray, presence: np.ndarray) -> np.ndarray:
    """Log-odds that each candidate is right.

    scores: (m, c) float, whose softmax is the share of each candidate.
    valid: (m, c) bool, where there is a candidate.
    presence: (m,) float, log-odds that any candidate is right.
    RETURNS: (m, c) float32, -inf for no candidate.
    """
    log_share = log_softmax(scores, valid)
    log_p = log_share - np.logaddexp(0, -presence.astype(np.float64))[:, None]
    log_p = np.minimum(log_p, -np.logaddexp(0, -MOST))
    return (log_p - np.log1p(-np.exp(log_p))).astype(np.float32)


def fit_temperature(
    scores: np.ndarray, correct: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Find the temperature with most likely correct shares. Their likelihood is returned too.

    scores: (n, c) float, -inf for none.
    correct: (n, c) bool, at least one for each mention.
    weights: (n,) float, how much each mention counts.
    RETURNS: The temperature, and the weighted sum of the shares' logarithms.
    """
    from scipy.optimize import minimize_scalar

    def loss(log_temperature: float) -> float:
        log_share = log_softmax(np.exp(log_temperature) * scores, np.isfinite(scores))
        return -float(weights @ np.logaddexp.reduce(np.where(correct, log_share, -np.inf), axis=1))

    bounds = np.log(MIN_TEMPERATURE), np.log(MAX_TEMPERATURE)
    best = minimize_scalar(loss, bounds=bounds, method="bounded")
    return float(np.exp(best.x)), -float(best.fun)


def fit_presence(
    evidence: np.ndarray,
    present: np.ndarray,
    weights: np.ndarray,
    signs: Sequence[int],
    start: np.ndarray | None = None,
) -> np.ndarray | None:
    """Weights of evidence and an offset. The log-odds that any candidate is right.

    evidence: (n, f) float, of the best candidate of each mention.
    present: (n,) bool, whether a right candidate is among those of the mention.
    weights: (n,) float, how much each mention counts.
    signs: For each evidence whether its weight may be positive (1), negative (-1) or both (0):
        more of what speaks for a candidate never makes it less likely.
    start: (f + 1,) float, what few mentions change little; None to begin with nothing.
    RETURNS: (f + 1,) float, the offset last; None where all mentions are alike.
    """
    from scipy.optimize import minimize

    if present.all() or not present.any():
        return None
    spread = np.maximum(evidence.std(axis=0), 1e-6)
    measured = np.column_stack([evidence / spread, np.ones(len(evidence))])
    side, shares = np.where(present, 1.0, -1.0), weights / weights.sum()
    centre, prior = np.zeros(evidence.shape[1] + 1), NO_PRIOR
    if start is not None:
        centre, prior = start * np.append(spread, 1.0), PRIOR
    penalty = prior / weights.sum()

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin, moved = side * (measured @ w), w - centre
        wrong = 1.0 / (1.0 + np.exp(np.clip(margin, -80, 80)))
        gradient = -(shares * side * wrong) @ measured + 2 * penalty * moved
        return shares @ np.logaddexp(0, -margin) + penalty * moved @ moved, gradient

    bounds = [(None if sign < 1 else 0.0, None if sign > -1 else 0.0) for sign in (*signs, 0)]
    zeros = np.zeros(len(bounds))
    fitted = minimize(loss, zeros, jac=True, bounds=bounds, method="L-BFGS-B").x
    return np.append(fitted[:-1] / spread, fitted[-1])


def log_softmax(scores: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """The logarithm of each candidate's share: (m, c) float64, -inf for no candidate."""
    scores = np.where(valid, scores.astype(np.float64), -np.inf)
    top = scores.max(axis=1, keepdims=True, initial=-np.inf)
    scores = scores - np.where(np.isfinite(top), top, 0.0)
    total = np.exp(scores).sum(axis=1, keepdims=True)
    return scores - np.log(np.maximum(total, np.finfo(float).tiny))
