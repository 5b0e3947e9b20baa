"""Similarities -> the chance that a link is right.

Each kind of edge has its own scale: how near an entity's text is says something else than how
near a mention is. A logistic curve for each, fitted on annotated data, brings them to one scale,
on which the graph's weights, the threshold and the scores that people see live.
"""

from dataclasses import dataclass, fields
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..errors import Errors

Curve = Tuple[float, float]


@dataclass(frozen=True)
class Calibration:
    """``probability = sigmoid(slope * similarity + offset)``, a (slope, offset) an edge kind.

    entity: From an entity to a mention. exemplar: From a stored, labelled mention.
    mention: From another mention of the document.

    The default curves are a guess that suits cosine similarity; ``fit_curve`` gives real ones.
    """

    entity: Curve = (12.0, -6.0)
    exemplar: Curve = (12.0, -6.0)
    mention: Curve = (12.0, -8.0)

    @classmethod
    def from_config(cls, curves: Optional[Mapping[str, Sequence[float]]]) -> "Calibration":
        known = {field.name for field in fields(cls)}
        given = {name: tuple(float(x) for x in curve) for name, curve in (curves or {}).items()}
        for name, curve in given.items():
            if (
                name not in known
                or len(curve) != 2
                or not np.isfinite(curve).all()
                or curve[0] <= 0
            ):
                raise ValueError(Errors.E401.format(name=name, curve=curve, known=sorted(known)))
        return cls(**given)  # type: ignore[arg-type]

    def to_config(self) -> Dict[str, List[float]]:
        return {field.name: list(getattr(self, field.name)) for field in fields(self)}

    def logits(self, kind: str, similarity: np.ndarray) -> np.ndarray:
        """Log-odds that edges of this kind are right; float32, of the same shape."""
        slope, offset = getattr(self, kind)
        return (slope * similarity + offset).astype(np.float32)


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
