"""Similarities -> the chance that a link is right.

Each kind of edge has its own scale: how near an entity's text is says something else than how
near a mention is. A logistic curve for each, fitted on annotated data, brings them to one scale,
on which the graph's weights, the threshold and the scores that people see live.
"""

from dataclasses import dataclass, fields
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..errors import Errors
from ..retrieval.candidates import FEATURES, Candidates

Curve = Tuple[float, float]
# Keeps the weights of a ranker small that little data was seen for; counts as so many mentions.
PRIOR = 8.0


@dataclass(frozen=True)
class Calibration:
    """``probability = sigmoid(slope * similarity + offset)``, a (slope, offset) an edge kind.

    entity: From an entity to a mention. exemplar: From a stored, labelled mention.
    mention: From another mention of the document.
    ranker: What each of ``FEATURES`` of a candidate weighs; then what its log-odds among the
        mention's candidates and the similarity of the nearest of them count for its log-odds of
        being right, and an offset: being the best of a bad lot is not enough. With a lexicon only.

    The default curves are a guess that suits cosine similarity; ``fit_curve`` gives real ones.
    """

    entity: Curve = (12.0, -6.0)
    exemplar: Curve = (12.0, -6.0)
    mention: Curve = (12.0, -8.0)
    ranker: Optional[Tuple[float, ...]] = None

    @classmethod
    def from_config(cls, curves: Optional[Mapping[str, Sequence[float]]]) -> "Calibration":
        known = {field.name for field in fields(cls)}
        given = {name: tuple(float(x) for x in curve) for name, curve in (curves or {}).items()}
        for name, curve in given.items():
            at = len(FEATURES) if name == "ranker" else 0
            fits = len(curve) == (at + 3 if at else 2) and bool(np.isfinite(curve).all())
            if name not in known or not fits or curve[at] <= 0:
                raise ValueError(Errors.E401.format(name=name, curve=curve, known=sorted(known)))
        return cls(**given)  # type: ignore[arg-type]

    def to_config(self) -> Dict[str, List[float]]:
        curves = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(curve) for name, curve in curves.items() if curve is not None}

    def logits(self, kind: str, similarity: np.ndarray) -> np.ndarray:
        """Log-odds that edges of this kind are right; float32, of the same shape."""
        slope, offset = getattr(self, kind)
        return (slope * similarity + offset).astype(np.float32)

    def candidate_logits(self, candidates: Candidates) -> np.ndarray:
        """Log-odds that each candidate is right, (m, c) float32, -inf for none; needs a ranker."""
        assert self.ranker is not None
        *weights, slope, by_nearest, offset = self.ranker
        scores = candidates.features @ np.array(weights, dtype=np.float32)
        odds = _log_odds_among(scores, candidates.entities >= 0)
        nearest = _nearest_of(candidates)[:, None]
        return (slope * odds + by_nearest * nearest + offset).astype(np.float32)


def _log_odds_among(scores: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Log-odds of each candidate against the others of its row, by softmax over scores."""
    scores = np.where(there, scores.astype(np.float64), -np.inf)
    top = scores.max(axis=1, keepdims=True, initial=-np.inf)
    p = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    p /= np.maximum(p.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    # A lone candidate is not certain.
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.where(there, np.log(p / (1 - p)), -np.inf)


def _nearest_of(candidates: Candidates) -> np.ndarray:
    """The similarity of the nearest candidate of each mention, (m,)."""
    nearest = candidates.features[:, :, FEATURES.index("nearest")]
    nearest = np.where(candidates.entities >= 0, nearest, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(nearest), nearest, 0.0)


def fit_ranker(candidates: Candidates, right: np.ndarray) -> Optional[Tuple[float, ...]]:
    """Weights of the features that put right candidates before wrong ones, and their curve.

    A linear model of softmax cross-entropy among each mention's candidates.
    right: (m, c) bool. Mentions none of whose candidates is right count for the curve only.
    RETURNS: As ``Calibration.ranker``; None where there is too little to learn from.
    """
    from scipy.optimize import minimize

    there = candidates.entities >= 0
    right = right & there
    useful = right.any(axis=1) & (there.sum(axis=1) > 1)
    if useful.sum() < 20:
        return None
    features = candidates.features[useful].astype(np.float64)
    known, gold = there[useful], right[useful]
    spread = features[known].std(axis=0)
    # What never differs says nothing.
    scale = np.where(spread > 1e-6, 1.0 / np.maximum(spread, 1e-6), 0.0)
    features = (features - features[known].mean(axis=0)) * scale

    penalty = PRIOR / len(features)

    def loss(weights):
        scores = np.where(known, features @ weights, -np.inf)
        p, q = _softmax(scores), _softmax(np.where(gold, scores, -np.inf))
        share = np.where(gold, p, 0.0).sum(axis=1)
        pull = np.einsum("mc,mcf->f", p - q, features) / len(features)
        return -np.log(share).mean() + penalty * weights @ weights, pull + 2 * penalty * weights

    found = minimize(loss, np.zeros(len(FEATURES)), jac=True, method="L-BFGS-B").x * scale
    odds = _log_odds_among(candidates.features @ found, there)
    best = odds.argmax(axis=1)[:, None]
    hit = np.take_along_axis(right, best, axis=1)[:, 0]
    curve = _fit_plane(np.take_along_axis(odds, best, axis=1)[:, 0], _nearest_of(candidates), hit)
    return None if curve is None else (*map(float, found), *curve)


def _fit_plane(odds: np.ndarray, nearest: np.ndarray, hit: np.ndarray):
    """Slopes for odds and for nearness and an offset, by logistic regression; None if no good."""
    from sklearn.linear_model import LogisticRegression

    if hit.all() or not hit.any():
        return None
    measured = np.stack([odds, nearest], axis=1)
    spread = np.maximum(measured.std(axis=0), 1e-6)
    model = LogisticRegression(C=100.0).fit(measured / spread, hit)
    slope, by_nearest = (model.coef_[0] / spread).tolist()
    if slope > 0 and by_nearest >= 0:
        return slope, by_nearest, float(model.intercept_[0])
    # What is farther away is never likelier for it: leave nearness out.
    curve = fit_curve(odds, hit)
    return None if curve is None else (curve[0], 0.0, curve[1])


def _softmax(scores: np.ndarray) -> np.ndarray:
    exp = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


def probability(logits):
    """Log-odds -> probabilities."""
    return 1.0 / (1.0 + np.exp(-np.clip(logits, -80, 80)))


def log_odds(p: float) -> float:
    """A probability -> log-odds, with the ends of the scale at infinity."""
    if p <= 0.0:
        return -np.inf
    return np.inf if p >= 1.0 else float(np.log(p / (1.0 - p)))


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
