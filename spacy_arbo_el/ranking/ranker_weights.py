"""Weights of the feature ranker, which turn features of candidates into log-odds."""

from dataclasses import asdict, dataclass, fields

import numpy as np

from ..base.calibration import MOST, log_odds_of, log_softmax
from ..storage.files import pack_arrays, unpack_arrays
from .features import FEATURES, CandidateFeatures

# What says whether the best candidate is right: being the best of bad candidates does not make one
# likely. More of it makes it more likely (1), less likely (-1), or either (0). They are features of
# the candidate, but for the last two.
SIGNS = {
    "nearest": 1,
    "ngrams": 1,
    "words": 1,
    "numbers": 1,
    "exact": 1,
    "attested": 1,
    "extra": -1,
    "missing": -1,
    "swapped": -1,
    "opposed": -1,
    "described": 0,
    "fit": 1,
    "beyond": 1,
    "near": 1,  # how far ``nearest`` is above ``NEAR``
    "share": 1,  # the logarithm of its share among the candidates, by softmax
}
EVIDENCE = [FEATURES.index(name) for name in SIGNS if name in FEATURES]
# Vectors of texts without anything in common are about so similar.
NEAR = 0.6


@dataclass(frozen=True, eq=False)
class RankerWeights:
    """Weights of a linear model of candidates, and of a logistic model of presence.

    The share of a candidate is the softmax of ``features @ linear`` among the candidates of its
    mention (a conditional logit). Arrays are float32.

    linear: (f,), the weight of each feature, 0 for those that only presence is judged by.
    curve: (len(SIGNS) + 1,), the weights of the evidence that any candidate is right, and an
        offset.
    accuracy: The share of held-out mentions, with a correct candidate, whose best one was correct.
    coverage: The share of mentions that had a correct candidate where presence was fitted.
    """

    linear: np.ndarray
    curve: np.ndarray
    accuracy: float = 0.0
    coverage: float = 0.5

    def assess(self, candidates: CandidateFeatures) -> "Assessment":
        """How probable candidates are."""
        scores = self.scores(candidates) + candidates.frequency_prior()
        weights = self.curve.astype(np.float64)
        presence = evidence_of(candidates, scores) @ weights[:-1] + weights[-1]
        presence = np.where(candidates.valid.any(axis=1), presence, -MOST)
        return Assessment(log_softmax(scores, candidates.valid), presence)

    def logits(self, candidates: CandidateFeatures) -> np.ndarray:
        """The log-odds of each candidate: (m, c) float32, -inf for none."""
        return self.assess(candidates).logits

    def scores(self, candidates: CandidateFeatures) -> np.ndarray:
        """(m, c) float64, comparable among the candidates of a mention."""
        # Not by a matrix product, so that scores don't depend on how many are scored at once.
        weights = self.linear.astype(np.float64)
        return np.einsum("mcf,f->mc", candidates.features.astype(np.float64), weights)

    def contributions(self, candidates: CandidateFeatures, one: int, other: int) -> np.ndarray:
        """Contribution of each feature to one candidate's lead over another, in log-odds.

        They sum to the log of how many times as probable the one is, but for frequency.

        candidates: Those of a single mention.
        one, other: Columns of the candidates.
        RETURNS: (f,) float64, one number per feature.
        """
        first = candidates.features[0, one].astype(np.float64)
        second = candidates.features[0, other].astype(np.float64)
        return (first - second) * self.linear

    def to_bytes(self) -> bytes:
        return pack_arrays({name: np.asarray(value) for name, value in asdict(self).items()})

    @classmethod
    def from_bytes(cls, data: bytes, n_features: int = len(FEATURES)) -> "RankerWeights":
        """Load the result of ``to_bytes``.

        n_features: How many features they are for.

        Raises ValueError where an array is of other features, has another type, or is not finite.
        """
        arrays = unpack_arrays(data)
        if set(arrays) != {field.name for field in fields(cls)}:
            raise ValueError("the weights are for other features")
        accuracy = float(arrays.pop("accuracy"))
        coverage = float(arrays.pop("coverage"))
        if not 0 < coverage < 1:
            raise ValueError(f"the coverage is {coverage}")
        shapes = {"linear": (n_features,), "curve": (len(SIGNS) + 1,)}
        for name, array in arrays.items():
            if array.dtype != np.float32 or array.shape != shapes[name]:
                raise ValueError(f"{name} has the type {array.dtype} and the shape {array.shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} has numbers that are not finite")
        return cls(accuracy=accuracy, coverage=coverage, **arrays)


@dataclass(frozen=True, eq=False)
class Assessment:
    """How probable the candidates of ``m`` mentions are.

    log_shares: (m, c) float64, the logarithm of each candidate's probability, given that any
        candidate is right; -inf for none.
    presence: (m,) float64, the log-odds that any candidate is right.
    """

    log_shares: np.ndarray
    presence: np.ndarray

    @property
    def logits(self) -> np.ndarray:
        """The log-odds of each candidate: (m, c) float32, -inf for none."""
        return log_odds_of(self.log_shares, self.presence)

    def replaced(self, mentions: np.ndarray, others: "Assessment") -> "Assessment":
        """The same with another assessment of some mentions.

        mentions: (k,) int64.
        """
        log_shares = self.log_shares.copy()
        log_shares[mentions] = others.log_shares
        presence = self.presence.copy()
        presence[mentions] = others.presence
        return Assessment(log_shares, presence)


def evidence_of(candidates: CandidateFeatures, scores: np.ndarray) -> np.ndarray:
    """The evidence that each mention's best candidate is right: (m, len(SIGNS)) float64.

    scores: (m, c) float, whose softmax is the share of each candidate.
    """
    scores = np.where(candidates.valid, scores, -np.inf)
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    features = candidates.features[rows, best].astype(np.float64)
    near = np.maximum(features[:, FEATURES.index("nearest")] - NEAR, 0.0)
    share = log_softmax(scores, candidates.valid)[rows, best]
    share = np.where(np.isfinite(share), share, 0.0)
    return np.column_stack([features[:, EVIDENCE], near, share])
