"""Curves that bring different similarities to one scale (Platt scaling).

Each kind of edge has its own scale: the similarity of a mention to the text of an entity says
something else than its similarity to another mention. A logistic curve for each kind, fitted on
annotated data, turns both into log-odds. The graph's weights, the threshold and the scores that
people see are on that scale.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import ArboError, Errors

# Slope and offset.
Curve = tuple[float, float]
# Fewer points are too few to learn from.
MIN_POINTS = 10
# Log-odds beyond those of any share that is fitted.
MOST = 40.0
# A (slope, offset) by kind, as configs hold them.
CurveSettings = Mapping[str, Sequence[float]]
KINDS = ("entity", "exemplar", "mention", "same_new_entity")


@dataclass(frozen=True)
class Calibration:
    """Logistic curves, one (slope, offset) for each kind of similarity.

    ``probability = sigmoid(slope * similarity + offset)``.

    The defaults are a guess that suits cosine similarity. ``arbo fit calibrate`` and the callback
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
        given = {name: tuple(float(x) for x in curve) for name, curve in (curves or {}).items()}
        for name, curve in given.items():
            fits = len(curve) == 2 and bool(np.isfinite(curve).all())
            if name not in KINDS or not fits or curve[0] <= 0:
                raise ArboError(Errors.E401.format(name=name, curve=curve, known=list(KINDS)))
        return cls(**given)  # type: ignore[arg-type]

    def to_config(self) -> dict[str, list[float]]:
        return {kind: list(getattr(self, kind)) for kind in KINDS}

    def times(self, weight: float) -> "Calibration":
        """The calibration with all log-odds multiplied by a positive number."""
        curves = (getattr(self, kind) for kind in KINDS)
        return Calibration(*((weight * slope, weight * offset) for slope, offset in curves))

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
    return np.inf if p >= 1.0 else float(np.log(p / (1.0 - p)))


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


def fit_offset(similarity: np.ndarray, correct: np.ndarray, slope: float) -> Curve | None:
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
