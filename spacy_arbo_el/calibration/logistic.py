"""Platt scaling: curves from measurements to probabilities, and their inverse."""

from typing import Any, Optional, Tuple

import numpy as np

# Slope and offset.
Curve = Tuple[float, float]
# Fewer points are too few to learn from.
MIN_POINTS = 10
# Log-odds beyond those of any share that is fitted.
MOST = 40.0


def probability(logits: Any) -> Any:
    """Log-odds -> probabilities, of numbers or arrays."""
    return 1.0 / (1.0 + np.exp(-np.clip(logits, -80, 80)))


def log_odds(p: float) -> float:
    """Convert probabilities to log-odds, infinite at the ends."""
    if p <= 0.0:
        return -np.inf
    return np.inf if p >= 1.0 else float(np.log(p / (1.0 - p)))


def similarity_at(p: float, curve: Curve) -> float:
    """The similarity at which a curve gives a probability. Infinite at the ends of the scale."""
    slope, offset = curve
    return (log_odds(p) - offset) / slope


def fit_logistic(similarity: np.ndarray, correct: np.ndarray) -> Optional[Curve]:
    """The logistic curve that predicts ``correct`` from ``similarity`` (Platt, 1999).

    similarity: (n,) float; entries that are not finite are left out.
    correct: (n,) bool.
    RETURNS: Slope and offset. None where the data shows no rising curve: too few points, all of
        one kind, or a larger similarity is not more often correct.
    """
    from sklearn.linear_model import LogisticRegression

    kept = np.isfinite(similarity)
    similarity, correct = np.asarray(similarity)[kept], np.asarray(correct)[kept]
    if len(correct) < MIN_POINTS or correct.all() or not correct.any():
        return None
    spread = float(similarity.std()) or 1.0
    centre = float(similarity.mean())
    # Standardised, so that the mild penalty means the same for every similarity.
    model = LogisticRegression(C=100.0).fit(((similarity - centre) / spread)[:, None], correct)
    slope = float(model.coef_[0, 0]) / spread
    return (slope, float(model.intercept_[0]) - slope * centre) if slope > 0 else None


def fit_offset(similarity: np.ndarray, correct: np.ndarray, slope: float) -> Optional[Curve]:
    """Curve with a given slope, right on average. For data that shows no slope.

    similarity, correct: As in ``fit_logistic``.
    RETURNS: None where there are too few points.
    """
    from scipy.optimize import brentq

    kept = np.isfinite(similarity)
    scaled, correct = slope * np.asarray(similarity)[kept], np.asarray(correct)[kept]
    if len(correct) < MIN_POINTS:
        return None
    # As if one more point were half right: all are never right, nor wrong.
    share = (correct.sum() + 0.5) / (len(correct) + 1)
    widest = float(np.abs(scaled).max()) + MOST
    offset = brentq(lambda o: probability(scaled + o).mean() - share, -widest, widest)
    return slope, float(offset)
