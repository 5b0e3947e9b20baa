"""Fit from a cross-encoder's scores to log-odds. Log-odds that a candidate is correct."""

from dataclasses import dataclass

import numpy as np

from ..base.arrays import TopK
from ..storage.files import pack_arrays, unpack_arrays
from .features import FEATURES, CandidateFeatures
from .probabilities import fit_presence, fit_temperature, log_odds_of
from .ranker_fit import fit_weights
from .ranker_weights import RankerWeights

# Raw scores of a cross-encoder, until a curve is fitted: one of the candidates is right.
PLAIN = (1.0, 0.0, 4.0)


@dataclass(frozen=True, eq=False)
class CrossEncoderFit:
    """Parameters fitted on held-out documents.

    curve: The temperature of the softmax over scores, the weight of the log-odds that the first
        candidate had before, and an offset: for scores that rank by themselves.
    weights: Of the features with the score as one more; None where the score ranks by itself.
    """

    curve: tuple[float, float, float] = PLAIN
    weights: RankerWeights | None = None

    @classmethod
    def fit(
        cls,
        scores: np.ndarray,
        correct: np.ndarray,
        before: np.ndarray,
        features: CandidateFeatures | None,
        documents: np.ndarray,
    ) -> "CrossEncoderFit":
        """Learn from scored candidates.

        scores: (m, k) float32, NaN for none.
        correct: (m, k) bool.
        before: (m,) float32, the log-odds that the first candidate had before.
        features: Those of the candidates, with the scores; None to rank by scores alone.
        documents: (m,) int64, the document of each mention: these are held out at once.
        """
        scored = np.isfinite(scores)
        scores, gold = np.where(scored, scores, -np.inf), (correct & scored).any(axis=1)
        curve, alike = PLAIN, np.ones(len(scores))
        presence = fit_presence(before[:, None].astype(np.float64), gold, alike, (1,))
        if presence is not None:
            temperature, _ = fit_temperature(scores[gold], correct[gold], alike[gold])
            curve = (temperature, float(presence[0]), float(presence[1]))
        weights = None if features is None else fit_weights(features, correct, documents)
        return cls(curve, weights)

    def logits(self, scores: np.ndarray, valid: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Log-odds of candidates by scores alone: (m, k) float32.

        before: (m,) float32, the log-odds that the first candidate had before.
        """
        temperature, by_before, offset = self.curve
        return log_odds_of(temperature * scores, valid, by_before * before + offset)

    def to_bytes(self) -> bytes:
        weights = b"" if self.weights is None else self.weights.to_bytes()
        return pack_arrays(
            {"curve": np.array(self.curve), "weights": np.frombuffer(weights, dtype=np.uint8)}
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "CrossEncoderFit":
        """Load the result of ``to_bytes``. Raises ValueError where a number is not finite."""
        arrays = unpack_arrays(data)
        curve, weights = arrays["curve"], arrays["weights"].tobytes()
        if curve.shape != (3,) or not np.isfinite(curve).all():
            raise ValueError("the curve of the cross-encoder has numbers that are not finite")
        n_features = len(FEATURES) + 1
        return cls(
            (float(curve[0]), float(curve[1]), float(curve[2])),
            RankerWeights.from_bytes(weights, n_features) if weights else None,
        )


def with_scores(
    candidates: CandidateFeatures, entities: np.ndarray, scores: np.ndarray
) -> CandidateFeatures:
    """Add a cross-encoder's score to candidates' features.

    entities: (m, k) int64, -1 for none. Those that are not among the candidates have features of 0.
    scores: (m, k) float32, NaN for none, which leaves a candidate out.
    """
    columns = TopK(candidates.entities, candidates.entities.astype(np.float32)).columns_of(entities)
    place = np.maximum(columns, 0)
    features = np.take_along_axis(candidates.features, place[:, :, None], axis=1)
    features = np.where(columns[:, :, None] >= 0, features, np.float32(0))
    is_scored = np.isfinite(scores)
    score = np.where(is_scored, scores, np.float32(0))
    features = np.concatenate([features, score[:, :, None]], axis=2)
    features[~is_scored] = 0
    exemplars = np.where(columns >= 0, np.take_along_axis(candidates.exemplars, place, axis=1), -1)
    prior = np.where(columns >= 0, np.take_along_axis(candidates.prior, place, axis=1), 0)
    prior = np.where(is_scored, prior, np.float32(0))
    return CandidateFeatures(np.where(is_scored, entities, -1), features, exemplars, prior)
