"""Logistic curves from measurements to probabilities, fitted on what was right and what wrong."""

from typing import Optional, Tuple

import numpy as np

Curve = Tuple[float, float]
# Candidates of one mention must stay apart.
LEAST_SLOPE = 0.05


def fit_curve(similarity: np.ndarray, right: np.ndarray) -> Optional[Curve]:
    """The logistic curve that predicts ``right`` from ``similarity`` (Platt scaling).

    similarity: (n,) float. right: (n,) bool.
    RETURNS: slope and offset; None where the data shows no rising curve (too few, all of one
        kind, or nearer is not better).
    """
    from sklearn.linear_model import LogisticRegression

    kept = np.isfinite(similarity)
    similarity, right = np.asarray(similarity)[kept], np.asarray(right)[kept]
    if len(right) < 10 or right.all() or not right.any():
        return None
    spread = float(similarity.std()) or 1.0
    centre = float(similarity.mean())
    # Standardised, so that the mild penalty means the same for every similarity.
    model = LogisticRegression(C=100.0).fit(((similarity - centre) / spread)[:, None], right)
    slope = float(model.coef_[0, 0]) / spread
    return (slope, float(model.intercept_[0]) - slope * centre) if slope > 0 else None


def fit_plane(
    odds: np.ndarray, nearest: np.ndarray, hit: np.ndarray
) -> Optional[Tuple[float, float, float]]:
    """Slopes for log-odds and for nearness, and an offset, that predict ``hit``.

    What is likelier among others, or nearer, is never less likely: the slopes are bounded.
    odds, nearest: (n,) float. hit: (n,) bool.
    RETURNS: None where all of them are hits, or none is.
    """
    from scipy.optimize import minimize

    if hit.all() or not hit.any():
        return None
    spread = max(float(nearest.std()), 1e-6)
    measured = np.stack([odds, nearest / spread, np.ones(len(hit))], axis=1)
    sign = np.where(hit, 1.0, -1.0)

    def loss(weights):
        margin = sign * (measured @ weights)
        wrong = 1.0 / (1.0 + np.exp(np.clip(margin, -80, 80)))
        pull = -(sign * wrong) @ measured / len(hit)
        mild = 0.005 / len(hit)
        return np.logaddexp(0, -margin).mean() + mild * weights @ weights, pull + 2 * mild * weights

    bounds = [(LEAST_SLOPE, None), (0.0, None), (None, None)]
    start = np.array([1.0, 0.0, 0.0])
    slope, by_nearest, offset = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    return float(slope), float(by_nearest / spread), float(offset)
