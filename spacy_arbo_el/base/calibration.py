"""Curves that bring different similarities to one scale (Platt scaling).

Each kind of edge has its own scale: the similarity of a mention to the text of an entity says
something else than its similarity to another mention. A logistic curve for each kind, fitted on
annotated data, turns both into log-odds. The graph's weights, the threshold and the scores that
people see are on that scale.

The probabilities of a mention's candidates by a ranker's scores sum to at most 1. That of a
candidate is the probability that any candidate is right, times the candidate's share by softmax. So
candidates that cannot be told apart share it, and the rest is NIL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import Errors

# Slope and offset.
Curve = tuple[float, float]
# Fewer points are too few to learn from.
MIN_POINTS = 10
# Log-odds beyond those of any share that is fitted.
MOST = 40.0
# The softmax must tell candidates apart.
MIN_TEMPERATURE = 0.05
MAX_TEMPERATURE = 20.0
# Weight of the penalty for moving away from a start, and of the penalty without one; they count as
# so many mentions.
PRIOR = 8.0
NO_PRIOR = 0.005
# The largest log-odds that a candidate can have.
MOST_CERTAIN = 20.0
# A (slope, offset) by kind, as configs hold them.
CurveSettings = Mapping[str, Sequence[float]]
KINDS = ("entity", "exemplar", "mention", "same_new_entity")


@dataclass(frozen=True)
class Calibration:
    """Logistic curves, one (slope, offset) for each kind of similarity.

    ``probability = sigmoid(slope * similarity + offset)``.

    The defaults are a guess that suits cosine similarity. ``arbo fit`` and the callback
    ``Calibrate.v1`` fit them on annotated documents.

    entity: That a mention is the entity with this text.
    exemplar: That a mention is the entity of this exemplar.
    mention: That a mention is the entity of another mention of the document.
    same_new_entity: That two mentions that no entity fits are one new entity, by what
        ``Discovery`` compares.
    """

    entity: Curve = (12.0, -6.0)
    exemplar: Curve = (12.0, -6.0)
    mention: Curve = (12.0, -8.0)
    same_new_entity: Curve = (12.0, -9.0)

    @classmethod
    def from_config(cls, curves: CurveSettings | None) -> "Calibration":
        """The calibration that a config holds; None for the defaults."""
        curve_of = {
            name: tuple(float(x) for x in curve)
            for name, curve in (curves or {}).items()
        }
        for name, curve in curve_of.items():
            fits = len(curve) == 2 and bool(np.isfinite(curve).all())
            if name not in KINDS or not fits or curve[0] <= 0:
                raise Errors.E401(name=name, curve=curve, known=list(KINDS))
        return cls(**curve_of)  # type: ignore[arg-type]

    def to_config(self) -> dict[str, list[float]]:
        return {kind: list(getattr(self, kind)) for kind in KINDS}

    def times(self, weight: float) -> "Calibration":
        """The calibration with all log-odds multiplied by a positive number."""
        curves = (getattr(self, kind) for kind in KINDS)
        return Calibration(
            *((weight * slope, weight * offset) for slope, offset in curves)
        )

    def logits(self, kind: str, similarity: np.ndarray) -> np.ndarray:
        """The log-odds that edges of a kind are correct: float32, shaped like ``similarity``."""
        slope, offset = getattr(self, kind)
        return (slope * similarity + offset).astype(np.float32)


def probability(logits: Any) -> Any:
    """Log-odds -> probabilities, of numbers or arrays."""
    return 1.0 / (1.0 + np.exp(-np.clip(logits, -80, 80)))


def log_odds(p: float) -> float:
    """Convert probabilities to log-odds, infinite at the ends."""
    if p <= 0.0:
        return -np.inf
    if p >= 1.0:
        return np.inf
    return float(np.log(p / (1.0 - p)))


def similarity_at(p: float, curve: Curve) -> float:
    """The similarity at which a curve gives a probability. Infinite at the ends of the scale."""
    slope, offset = curve
    return (log_odds(p) - offset) / slope


def fit_logistic(similarity: np.ndarray, correct: np.ndarray) -> Curve | None:
    """The logistic curve that predicts ``correct`` from ``similarity`` (Platt, 1999).

    similarity: (n,) float; entries that are not finite are left out.
    correct: (n,) bool.
    RETURNS: Slope and offset. None where the data shows no rising curve: too few points, all of
        one kind, or a larger similarity is not more often correct.
    """
    from sklearn.linear_model import LogisticRegression

    is_finite = np.isfinite(similarity)
    similarity = np.asarray(similarity)[is_finite]
    correct = np.asarray(correct)[is_finite]
    if len(correct) < MIN_POINTS or correct.all() or not correct.any():
        return None
    spread = float(similarity.std()) or 1.0
    centre = float(similarity.mean())
    # Standardised, so that the mild penalty means the same for every similarity.
    model = LogisticRegression(C=100.0).fit(
        ((similarity - centre) / spread)[:, None], correct
    )
    slope = float(model.coef_[0, 0]) / spread
    if slope > 0:
        return (slope, float(model.intercept_[0]) - slope * centre)
    return None


def fit_offset(
    similarity: np.ndarray, correct: np.ndarray, slope: float
) -> Curve | None:
    """A curve with a given slope, right on average, as in ``fit_logistic``; None for few points."""
    from scipy.optimize import brentq

    is_finite = np.isfinite(similarity)
    scaled = slope * np.asarray(similarity)[is_finite]
    correct = np.asarray(correct)[is_finite]
    if len(correct) < MIN_POINTS:
        return None
    # As if one more point were half right: all are never right, nor wrong.
    share = (correct.sum() + 0.5) / (len(correct) + 1)
    widest = float(np.abs(scaled).max()) + MOST
    offset = brentq(lambda o: probability(scaled + o).mean() - share, -widest, widest)
    return slope, float(offset)


def log_probability(logits: np.ndarray) -> np.ndarray:
    """The logarithms of probabilities, from their log-odds."""
    return -np.logaddexp(0, -logits.astype(np.float64))


def with_presence(
    logits: np.ndarray, before: np.ndarray, after: np.ndarray
) -> np.ndarray:
    """Log-odds of candidates with another presence and the same shares: (m, c) float32.

    logits: (m, c) float, of candidates; -inf for none.
    before, after: (m,) float, log-odds that any candidate is right, as it was and as it is.
    """
    # A mention without candidates has no presence at all.
    ratio = log_probability(np.maximum(after, -MOST)) - log_probability(
        np.maximum(before, -MOST)
    )
    return _log_odds_of_log(log_probability(logits) + ratio[:, None])


def _log_odds_of_log(log_p: np.ndarray) -> np.ndarray:
    """Log-odds of probabilities that are given as logarithms: float32, bounded above."""
    log_p = np.minimum(log_p, -np.logaddexp(0, -MOST_CERTAIN))
    return (log_p - np.log1p(-np.exp(log_p))).astype(np.float32)


def log_odds_of(log_shares: np.ndarray, presence: np.ndarray) -> np.ndarray:
    """Log-odds that each candidate is right: (m, c) float32, -inf for no candidate.

    log_shares: (m, c) float, the logarithm of the share of each candidate; -inf for none.
    presence: (m,) float, log-odds that any candidate is right.
    """
    return _log_odds_of_log(log_shares + log_probability(presence)[:, None])


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
        return -float(
            weights
            @ np.logaddexp.reduce(np.where(correct, log_share, -np.inf), axis=1)
        )

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
    side = np.where(present, 1.0, -1.0)
    shares = weights / weights.sum()
    centre = np.zeros(evidence.shape[1] + 1)
    prior = NO_PRIOR
    if start is not None:
        centre = start * np.append(spread, 1.0)
        prior = PRIOR
    penalty = prior / weights.sum()

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = side * (measured @ w)
        moved = w - centre
        wrong = 1.0 / (1.0 + np.exp(np.clip(margin, -80, 80)))
        gradient = -(shares * side * wrong) @ measured + 2 * penalty * moved
        return shares @ np.logaddexp(0, -margin) + penalty * moved @ moved, gradient

    bounds = [
        (None if sign < 1 else 0.0, None if sign > -1 else 0.0) for sign in (*signs, 0)
    ]
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
