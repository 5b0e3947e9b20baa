"""Weights of the feature ranker, which turn features of candidates into log-odds.

A small network over the features, trained by softmax among the candidates of each mention; then
probabilities from its scores, fitted on mentions that the network was not trained on.
"""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from ..base.devices import torch
from ..base.errors import ArboError, Errors
from ..storage.files import pack_arrays, unpack_arrays
from .features import FEATURES, CandidateFeatures
from .probabilities import MOST, PRIOR, fit_presence, fit_temperature, log_odds_of, log_softmax

HIDDEN = 16
# The mean of so many networks is used, which begin with other weights: it varies less.
NETWORKS = 3
FOLDS = 5
# Fewer mentions than these are too few to learn from.
MIN_MENTIONS = 20
MAX_STEPS = 150
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
    "near": 1,  # how far ``nearest`` is above ``NEAR``
    "share": 1,  # the logarithm of its share among the candidates, by softmax
}
EVIDENCE = [FEATURES.index(name) for name in SIGNS if name in FEATURES]
# Vectors of texts without anything in common are about so similar.
NEAR = 0.6
# Probabilities are fitted on real mentions, and with this share as if the knowledge base
# lacked their entity.
ABSENT = 0.02


@dataclass(frozen=True, eq=False)
class RankerWeights:
    """Weights of a network with one hidden layer.

    Scores are x linear + tanh(x hidden + bias) out, with x the standardised inputs.

    The inputs are the features of the candidate (f), and the difference of each to the largest
    among the mention's candidates (f more). All arrays are float32.

    mean: (2 f,) of the inputs.
    spread: (2 f,), their standard deviation.
    linear: (2 f,).
    hidden: (2 f, h).
    bias: (h,).
    out: (h,).
    curve: (len(SIGNS) + 2,), the temperature of the softmax over scores, then the weights of the
        evidence that any candidate is right, and an offset.
    accuracy: The share of held-out mentions, with a correct candidate, whose best one was correct.
    """

    mean: np.ndarray
    spread: np.ndarray
    linear: np.ndarray
    hidden: np.ndarray
    bias: np.ndarray
    out: np.ndarray
    curve: np.ndarray
    accuracy: float = 0.0

    def logits(self, candidates: CandidateFeatures) -> np.ndarray:
        """The log-odds of each candidate: (m, c) float32, -inf for none."""
        temperature, *weights = self.curve.astype(np.float64)
        scores = temperature * self.scores(candidates) + candidates.prior
        presence = evidence_of(candidates, scores) @ weights[:-1] + weights[-1]
        return log_odds_of(scores, candidates.valid, presence)

    def scores(self, candidates: CandidateFeatures) -> np.ndarray:
        """(m, c) float64, comparable among the candidates of a mention."""
        # In double precision, so that scores don't depend on how many mentions are scored at once.
        x = (_inputs(candidates).astype(np.float64) - self.mean) / self.spread
        return x @ self.linear + np.tanh(x @ self.hidden + self.bias) @ self.out

    def contributions(self, candidates: CandidateFeatures, one: int, other: int) -> np.ndarray:
        """Contribution of each feature to one candidate's lead. The lead is over another candidate
        of the first mention.

        The gradient is integrated along the line from the inputs of the other to those of the one,
        so that the parts sum to the log of how many times as probable the one is.

        one, other: Columns of the candidates.
        RETURNS: (f,) float64, one number per feature.
        """
        inputs = _inputs(candidates)[0, [one, other]].astype(np.float64)
        x = (inputs - self.mean) / self.spread
        z = x @ self.hidden + self.bias
        step, slope = z[0] - z[1], 1 - np.tanh(z[1]) ** 2
        rise = np.divide(np.tanh(z[0]) - np.tanh(z[1]), step, out=slope, where=np.abs(step) > 1e-6)
        parts = (x[0] - x[1]) * (self.linear + self.hidden @ (rise * self.out))
        return float(self.curve[0]) * parts.reshape(2, -1).sum(axis=0)

    def to_bytes(self) -> bytes:
        return pack_arrays({name: np.asarray(value) for name, value in asdict(self).items()})

    @classmethod
    def from_bytes(cls, data: bytes, n_features: int = len(FEATURES)) -> "RankerWeights":
        """Load the result of ``to_bytes``.

        n_features: How many features they are for.

        Raises ValueError where an array is of other features, has another type, or is not finite.
        """
        arrays = unpack_arrays(data)
        names = {field.name for field in fields(cls)}
        if set(arrays) != names or arrays["mean"].shape != (2 * n_features,):
            raise ValueError("the weights are for other features")
        accuracy = float(arrays.pop("accuracy"))
        width, size = arrays["hidden"].shape
        shapes = {"hidden": (width, size), "bias": (size,), "out": (size,)}
        shapes["curve"] = (len(SIGNS) + 2,)
        for name, array in arrays.items():
            if array.dtype != np.float32 or array.shape != shapes.get(name, (2 * n_features,)):
                raise ValueError(f"{name} has the type {array.dtype} and the shape {array.shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} has numbers that are not finite")
        if width != 2 * n_features or (arrays["spread"] <= 0).any():
            raise ValueError("the inputs can't be standardised")
        return cls(accuracy=accuracy, **arrays)


def fit_weights(
    candidates: CandidateFeatures,
    correct: np.ndarray,
    groups: np.ndarray,
    shares: np.ndarray | None = None,
    start: RankerWeights | None = None,
    presence: np.ndarray | None = None,
) -> RankerWeights | None:
    """Train a ranker on candidates with labels.

    correct: (m, c) bool. Mentions without a correct candidate count for the curve only.
    groups: (m,) int64, such as documents: mentions of one group are held out at once.
    shares: (m,) float, how much each mention counts; None for all alike.
    start: Weights that few mentions change little. The mean of their scores and of those by weights
        that were fitted from them is used, if held-out mentions are at least as likely by it as
        by weights that were fitted from nothing.
    presence: (2, m) float, how much each mention counts for the probability that any candidate is
        right, as it is and as if the knowledge base lacked its entity; None for shares of both.
    RETURNS: None where there is too little to learn from.
    """
    valid = candidates.valid
    correct = correct & valid
    absent = candidates.where(~correct)
    if (correct.any(axis=1) & (valid.sum(axis=1) > 1)).sum() < MIN_MENTIONS:
        return None
    shares = np.ones(len(valid)) if shares is None else shares
    # Every fifth group is in one fold; every fifth mention where all are of one group.
    numbers = np.unique(groups, return_inverse=True)[1]
    fold = (numbers if numbers.any() else np.arange(len(groups))) % FOLDS
    gold = correct.any(axis=1)
    labels = correct[gold], shares[gold]
    ways = [_held_out(candidates, absent, correct, fold, shares, None)]
    halves = (0.5, 0.5)
    if start is not None:
        moved = _held_out(candidates, absent, correct, fold, shares, start)
        kept = _masked(start.scores(candidates), start.scores(absent), candidates, absent)
        both = [fit_temperature(one[gold], *labels)[0] for one, _ in (kept, moved)]
        halves = (both[0] / 2, both[1] / 2)
        ways.insert(0, _sum_of(kept, moved, halves))
    fits = [fit_temperature(one[gold], *labels) for one, _ in ways]
    chosen = int(np.argmax([likelihood for _, likelihood in fits]))
    held_out, without = ways[chosen]
    temperature = fits[chosen][0]
    parts = ((candidates, held_out), (absent, without))
    evidence = np.concatenate([evidence_of(one, temperature * scores) for one, scores in parts])
    present = np.concatenate([gold, np.zeros(len(valid), dtype=bool)])
    if presence is None:
        presence = np.stack([(1 - ABSENT) * shares, ABSENT * shares])
    counts = presence.ravel()
    counts = counts * np.concatenate([valid.any(axis=1), absent.valid.any(axis=1)])
    before = None if start is None else start.curve[1:].astype(np.float64)
    curve = fit_presence(evidence, present, counts, list(SIGNS.values()), before)
    if curve is None:
        return None
    best = held_out.argmax(axis=1)[:, None]
    hit = np.take_along_axis(correct, best, axis=1)[:, 0]
    if start is not None and chosen == 0:
        weights = sum_of_networks(start, train_networks(candidates, correct, shares, start), halves)
    else:
        weights = train_networks(candidates, correct, shares)
    return replace(
        weights,
        curve=np.array([temperature, *curve], dtype=np.float32),
        accuracy=float(np.average(hit[gold], weights=shares[gold])),
    )


def _held_out(
    candidates: CandidateFeatures,
    absent: CandidateFeatures,
    correct: np.ndarray,
    fold: np.ndarray,
    shares: np.ndarray,
    start: RankerWeights | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Scores by weights that were not trained on the mentions; -inf for no candidate.

    RETURNS: (m, c) float64, of the candidates and of those without the correct ones.
    """
    held_out, without = np.full((2, *correct.shape), -np.inf)
    for i in range(FOLDS):
        rest, part = fold != i, fold == i
        if part.any() and rest.any():
            some = candidates.take(rest), correct[rest], shares[rest]
            trained = train_networks(*some, start, networks=1)
            held_out[part] = trained.scores(candidates.take(part))
            without[part] = trained.scores(absent.take(part))
    return _masked(held_out, without, candidates, absent)


def _masked(
    scores: np.ndarray,
    without: np.ndarray,
    candidates: CandidateFeatures,
    absent: CandidateFeatures,
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of candidates, and of those without the correct ones; -inf where there is none."""
    return (
        np.where(candidates.valid, scores, -np.inf),
        np.where(absent.valid, without, -np.inf),
    )


def _sum_of(
    one: tuple[np.ndarray, np.ndarray],
    other: tuple[np.ndarray, np.ndarray],
    factors: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray]:
    """The sum of two results of ``_held_out``, each times its factor."""
    first, second = (factors[0] * a + factors[1] * b for a, b in zip(one, other))
    return first, second


def sum_of_networks(
    one: RankerWeights, other: RankerWeights, factors: tuple[float, float]
) -> RankerWeights:
    """The network whose scores are the sum of two networks' scores, each times its factor.

    Both standardise inputs alike, as weights do that were fitted from others.
    """
    a, b = (np.float32(factor) for factor in factors)
    return replace(
        other,
        linear=a * one.linear + b * other.linear,
        hidden=np.concatenate([one.hidden, other.hidden], axis=1),
        bias=np.concatenate([one.bias, other.bias]),
        out=np.concatenate([a * one.out, b * other.out]),
    )


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


def _inputs(candidates: CandidateFeatures) -> np.ndarray:
    """Raw inputs of the network: (m, c, 2 f) float32. They are not standardised; 0 for no
    candidate.
    """
    features, valid = candidates.features, candidates.valid[:, :, None]
    largest = np.where(valid, features, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    below = np.where(valid, features - largest, 0.0)
    return np.concatenate([features, below], axis=2).astype(np.float32)


def train_networks(
    candidates: CandidateFeatures,
    correct: np.ndarray,
    shares: np.ndarray,
    start: RankerWeights | None = None,
    networks: int = NETWORKS,
) -> RankerWeights:
    """Fit all but the curve, from fixed points or from other weights.

    correct, shares, start: As in ``fit_weights``.
    networks: How many are averaged. Other weights are one.
    """
    if torch is None:
        raise ArboError(Errors.E854)
    useful = correct.any(axis=1) & (candidates.valid.sum(axis=1) > 1)
    candidates, correct, shares = candidates.take(useful), correct[useful], shares[useful]
    valid, x = candidates.valid, _inputs(candidates)
    if start is not None:
        mean, spread = start.mean, start.spread
    elif not len(x):
        mean, spread = np.zeros(x.shape[2]), np.ones(x.shape[2])
    else:
        mean, spread = x[valid].mean(axis=0), x[valid].std(axis=0)
        spread = np.where(spread > 1e-6, spread, 1.0)
    standards = mean.astype(np.float32), spread.astype(np.float32)
    inputs = torch.from_numpy(((x - mean) / spread).astype(np.float32))
    counts = torch.from_numpy((shares / max(shares.sum(), 1e-9)).astype(np.float32))
    data = inputs, torch.from_numpy(valid), torch.from_numpy(correct), counts
    penalty = PRIOR / max(float(shares.sum()), 1.0)
    if start is not None:
        fitted = [_fitted(_copies(start), data, penalty, centred=True)]
    else:
        begins = [_start(x.shape[2], seed) for seed in range(networks)]
        fitted = [_fitted(begin, data, penalty, centred=False) for begin in begins]
    linear, hidden, bias, out = zip(*fitted)
    curve = np.array([1.0, *np.zeros(len(SIGNS)), MOST], dtype=np.float32)
    return RankerWeights(
        *standards,
        np.mean(linear, axis=0),
        np.concatenate(hidden, axis=1),
        np.concatenate(bias),
        np.concatenate(out) / np.float32(len(fitted)),
        curve,
    )


def _fitted(
    weights: list[Any], data: tuple[Any, Any, Any, Any], penalty: float, *, centred: bool
) -> list[np.ndarray]:
    """Weights of one network, fitted by L-BFGS.

    weights: What it begins with.
    data: The inputs (m, c, 2 f), where there are candidates, which are correct, and the weight of
        each mention.
    penalty: For the size of the weights, or for their distance from the beginning.
    centred: Whether the distance counts.
    """
    inputs, is_candidate, is_gold, counts = data
    centre = [w.detach().clone() if centred else torch.zeros_like(w) for w in weights]
    optimizer = torch.optim.LBFGS(
        weights, max_iter=MAX_STEPS, history_size=20, line_search_fn="strong_wolfe"
    )

    def closure() -> Any:
        optimizer.zero_grad()
        linear, hidden, bias, out = weights
        scores = inputs @ linear + torch.tanh(inputs @ hidden + bias) @ out
        among = torch.logsumexp(scores.masked_fill(~is_candidate, -torch.inf), 1)
        gold = torch.logsumexp(scores.masked_fill(~is_gold, -torch.inf), 1)
        parts = ((linear, centre[0]), (hidden, centre[1]), (out, centre[3]))
        size = sum(((part - old) ** 2).sum() for part, old in parts)
        loss = (counts * (among - gold)).sum() + penalty * size
        loss.backward()
        return loss

    if len(inputs):
        optimizer.step(closure)
    return [part.detach().numpy() for part in weights]


def _copies(weights: RankerWeights) -> list[Any]:
    arrays = (weights.linear, weights.hidden, weights.bias, weights.out)
    return [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]


def _start(width: int, seed: int) -> list[Any]:
    # Its own generator: fitting in the middle of training must not disturb training.
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn((width, HIDDEN), generator=generator) * 0.3
    out = torch.randn(HIDDEN, generator=generator) * 0.1
    parts = [torch.zeros(width), hidden, torch.zeros(HIDDEN), out]
    return [part.requires_grad_() for part in parts]
