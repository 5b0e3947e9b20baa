"""Weights of the feature ranker, which turn features of candidates into log-odds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from ..base.arrays import Rows
from ..base.calibration import MOST, log_odds_of, log_softmax
from ..storage.files import pack_arrays, unpack_arrays
from .features import COMPARED, FEATURES, NO_EXTRA, CandidateFeatures
from .trees import Trees

# What says whether the best candidate is right: being the best of bad candidates does not make one
# likely. More of it makes it more likely (1), less likely (-1), or either (0). They are features of
# the candidate, but for the last two.
PRESENCE_FEATURES = {
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
    "shared_lead": 1,
    "contains": 0,
    "near": 1,  # how far ``nearest`` is above ``NEAR``
    "share": 1,  # the logarithm of its share among the candidates, by softmax
}
_COLUMNS = [FEATURES.index(name) for name in PRESENCE_FEATURES if name in FEATURES]
# Where only vectors tell names apart, their other features differ by less than this.
SAME = 0.01
# How far candidates that share a probability are apart, in log-odds, so that their order stays.
STEP = 1e-3
# What the names of the trees' arrays begin with in a file.
TREES = "trees."
# Mentions that are scored at a time: their inputs stay in the processor's cache.
SCORED = 256
# Vectors of texts without anything in common are about so similar.
NEAR = 0.6


@dataclass(frozen=True, eq=False)
class RankerWeights:
    """Weights of a network with one hidden layer.

    Scores are x linear + tanh(x hidden + bias) out, with x the standardised inputs.

    The inputs are the features that candidates are compared by (f), and the difference of each to
    the largest among the mention's candidates (f more). All arrays are float32.

    mean: (2 f,) of the inputs.
    spread: (2 f,), their standard deviation.
    linear: (2 f,).
    hidden: (2 f, h).
    bias: (h,).
    out: (h,).
    curve: (len(PRESENCE_FEATURES) + 3,), the temperature of the softmax over scores, then the
        weights of the presence features, of the trees' value, and an offset.
    accuracy: The share of held-out mentions, with a correct candidate, whose best one was correct.
    coverage: The share of mentions that had a correct candidate where presence was fitted.
    trees: What else these features say, beyond the sum of their parts.
    """

    mean: np.ndarray
    spread: np.ndarray
    linear: np.ndarray
    hidden: np.ndarray
    bias: np.ndarray
    out: np.ndarray
    curve: np.ndarray
    accuracy: float = 0.0
    coverage: float = 0.5
    trees: Trees = field(default_factory=Trees.none)

    def assess(self, candidates: CandidateFeatures) -> "Assessment":
        """Assess the probability of candidates."""
        temperature, *weights = self.curve.astype(np.float64)
        scores = temperature * self.scores(candidates) + candidates.frequency_prior()
        features = self.trees.with_prediction(presence_features(candidates, scores))
        presence = features @ weights[:-1] + weights[-1]
        presence = np.where(candidates.valid.any(axis=1), presence, -MOST)
        return Assessment(log_softmax(scores, candidates.valid), presence)

    def logits(self, candidates: CandidateFeatures) -> np.ndarray:
        """The log-odds of each candidate: (m, c) float32, -inf for none."""
        return self.assess(candidates).logits

    def scores(self, candidates: CandidateFeatures) -> np.ndarray:
        """(m, c) float64, comparable among the candidates of a mention."""
        scores = np.empty(candidates.entities.shape)
        for start in range(0, len(candidates), SCORED):
            block = slice(start, start + SCORED)
            # In double precision, so that scores don't depend on how many are scored at once.
            x = inputs_of(candidates.take(block)).astype(np.float64)
            x = (x - self.mean) / self.spread
            scores[block] = (
                x @ self.linear + np.tanh(x @ self.hidden + self.bias) @ self.out
            )
        return scores

    def contributions(
        self, candidates: CandidateFeatures, first: int, second: int
    ) -> np.ndarray:
        """Contribution of each feature to one candidate's lead. The lead is over another candidate
        of the first mention.

        The gradient is integrated along the line from the inputs of the other to those of the one,
        so that the parts sum to the log of how many times as probable the one is.

        first, second: Columns of the candidates.
        RETURNS: float64, one number for each feature that there is, 0 for those that candidates
            are not compared by.
        """
        inputs = inputs_of(candidates)[0, [first, second]].astype(np.float64)
        x = (inputs - self.mean) / self.spread
        z = x @ self.hidden + self.bias
        step = z[0] - z[1]
        slope = 1 - np.tanh(z[1]) ** 2
        rise = np.divide(
            np.tanh(z[0]) - np.tanh(z[1]), step, out=slope, where=np.abs(step) > 1e-6
        )
        by_input = (x[0] - x[1]) * (self.linear + self.hidden @ (rise * self.out))
        by_feature = np.zeros(candidates.features.shape[2])
        by_feature[compared_by(candidates)] = float(self.curve[0]) * by_input.reshape(
            2, -1
        ).sum(axis=0)
        return by_feature

    def to_bytes(self) -> bytes:
        names = [item.name for item in fields(self) if item.name != "trees"]
        arrays = {name: np.asarray(getattr(self, name)) for name in names}
        trees = {TREES + name: array for name, array in self.trees.to_arrays().items()}
        return pack_arrays({**arrays, **trees})

    @classmethod
    def from_bytes(
        cls, data: bytes, n_features: int = len(FEATURES)
    ) -> "RankerWeights":
        """Load the result of ``to_bytes``.

        Raises ValueError where an array is of other features, has another type, or is not finite.
        """
        packed = unpack_arrays(data)
        of_trees = {
            k[len(TREES) :]: v for k, v in packed.items() if k.startswith(TREES)
        }
        arrays = {k: v for k, v in packed.items() if not k.startswith(TREES)}
        names = {item.name for item in fields(cls)} - {"trees"}
        n_inputs = 2 * (len(COMPARED) + n_features - len(FEATURES))
        if set(arrays) != names or arrays["mean"].shape != (n_inputs,):
            raise ValueError("the weights are for other features")
        accuracy = float(arrays.pop("accuracy"))
        coverage = float(arrays.pop("coverage"))
        if not 0 < coverage < 1:
            raise ValueError(f"the coverage is {coverage}")
        width, size = arrays["hidden"].shape
        shapes = {"hidden": (width, size), "bias": (size,), "out": (size,)}
        shapes["curve"] = (len(PRESENCE_FEATURES) + 3,)
        for name, array in arrays.items():
            if array.dtype != np.float32 or array.shape != shapes.get(
                name, (n_inputs,)
            ):
                raise ValueError(
                    f"{name} has the type {array.dtype} and the shape {array.shape}"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"{name} has numbers that are not finite")
        if width != n_inputs or (arrays["spread"] <= 0).any():
            raise ValueError("the inputs can't be standardised")
        trees = Trees.from_arrays(of_trees, len(PRESENCE_FEATURES))
        return cls(accuracy=accuracy, coverage=coverage, trees=trees, **arrays)


@dataclass(frozen=True, eq=False)
class Assessment(Rows):
    """Probabilities of the candidates of ``m`` mentions.

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


def presence_features(candidates: CandidateFeatures, scores: np.ndarray) -> np.ndarray:
    """The features of each mention's best candidate that say whether it is right.

    scores: (m, c) float, whose softmax is the share of each candidate.
    RETURNS: (m, len(PRESENCE_FEATURES)) float64.
    """
    scores = np.where(candidates.valid, scores, -np.inf)
    rows = np.arange(len(scores))
    best = scores.argmax(axis=1)
    features = candidates.features[rows, best].astype(np.float64)
    nearness = np.maximum(features[:, FEATURES.index("nearest")] - NEAR, 0.0)
    share = log_softmax(scores, candidates.valid)[rows, best]
    share = np.where(np.isfinite(share), share, 0.0)
    return np.column_stack([features[:, _COLUMNS], nearness, share])


def compared_by(candidates: CandidateFeatures) -> list[int]:
    """The features that candidates are compared by. Those beyond ``FEATURES`` are among them, such
    as a cross-encoder's score.
    """
    return [*COMPARED, *range(len(FEATURES), candidates.features.shape[2])]


def inputs_of(candidates: CandidateFeatures) -> np.ndarray:
    """Raw inputs of the network: (m, c, 2 f) float32. They are not standardised; 0 for no
    candidate.
    """
    features = candidates.features[:, :, compared_by(candidates)]
    valid = candidates.valid[:, :, None]
    largest = np.where(valid, features, -np.inf).max(
        axis=1, keepdims=True, initial=-np.inf
    )
    below = np.where(valid, features - largest, 0.0)
    return np.concatenate([features, below], axis=2).astype(np.float32)


def sum_of_networks(
    networks: Sequence[RankerWeights], factors: Sequence[float]
) -> RankerWeights:
    """The network whose scores are the sum of other networks' scores, each times its factor.

    All standardise inputs alike. The result has the last one's curve.
    """
    sizes = np.array(factors, dtype=np.float32)
    return replace(
        networks[-1],
        linear=sizes @ np.stack([network.linear for network in networks]),
        hidden=np.concatenate([network.hidden for network in networks], axis=1),
        bias=np.concatenate([network.bias for network in networks]),
        out=np.concatenate(
            [size * network.out for size, network in zip(sizes, networks)]
        ),
    )


def share_among_equals(
    candidates: CandidateFeatures, assessment: Assessment
) -> Assessment:
    """The same, but candidates that only vectors tell from the best one share its probability.

    "Smith" may be John Smith or Jane Smith: the words are in both names, and no description,
    exemplar or frequency is in favour of either. An encoder prefers the one that it met more often,
    which says little about the text. Those that share keep their order; a candidate that does not
    may come before them then.
    """
    log_shares = assessment.log_shares
    equal = equal_to_best(candidates, log_shares)
    rows = np.flatnonzero(equal.sum(axis=1) > 1)
    if not len(rows):
        return assessment
    equal = equal[rows]
    scores_here = log_shares[rows]
    count = equal.sum(axis=1, keepdims=True)
    total = np.logaddexp.reduce(
        np.where(equal, scores_here, -np.inf), axis=1, keepdims=True
    )
    rank = np.argsort(np.argsort(-scores_here, axis=1, kind="stable"), axis=1)
    shared = total - np.log(count) - STEP * rank
    changed = Assessment(
        np.where(equal, shared, scores_here), assessment.presence[rows]
    )
    return assessment.replaced(rows, changed)


def equal_to_best(candidates: CandidateFeatures, log_shares: np.ndarray) -> np.ndarray:
    """Whether a candidate is the best one, or only vectors tell it from that.

    Both names have all words of the mention, and equally many others.

    log_shares: (m, c) float.
    RETURNS: (m, c) bool. No candidate is, where words or the context chose the best one.
    """
    rows = np.arange(len(candidates))
    best = log_shares.argmax(axis=1)
    words = candidates.column("words")
    partial = (
        candidates.valid
        & (words > 0)
        & (candidates.column("extra") <= NO_EXTRA)
        & (candidates.column("exact") == 0)
        & (candidates.column("ngrams") < 1 - SAME)
        & (candidates.column("opposed") == 0)
        & (candidates.column("has_exemplar") == 0)
        & (candidates.column("described") <= 0)
    )
    same_words = np.abs(words - words[rows, best][:, None]) < SAME
    prior = candidates.prior
    same_prior = np.abs(prior - prior[rows, best][:, None]) < SAME
    return partial & partial[rows, best][:, None] & same_words & same_prior
