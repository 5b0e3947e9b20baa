"""Fit of the feature ranker's weights on mentions with labels.

A small network over the features is trained by softmax among the candidates of each mention, once
without each fold of the mentions. Probabilities are fitted on the scores of the folds by the
networks that did not see them. The ranker is the mean of these networks.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch

from ..base.arrays import Rows
from ..base.calibration import MOST_CERTAIN, PRIOR, fit_presence, fit_temperature
from .features import CandidateFeatures
from .ranker_weights import (
    PRESENCE_FEATURES,
    RankerWeights,
    inputs_of,
    presence_features,
    sum_of_networks,
)
from .trees import Trees

HIDDEN = 16
FOLDS = 5
# Networks that are fitted from so many random starts vary less in the mean.
STARTS = 2
# Fewer mentions than these are too few to learn from.
MIN_MENTIONS = 20
MAX_STEPS = 80
# So many hidden values are computed at a time, 4 MB, that stay in a processor's cache.
BLOCK = 1 << 20
# Probabilities are fitted on real mentions, and with this share as if the knowledge base
# lacked their entity.
ABSENT = 0.02


@dataclass(frozen=True, eq=False)
class Labelled(Rows):
    """Candidates of mentions, with labels and weights.

    candidates: Those of m mentions.
    correct: (m, c) bool. Mentions without a correct candidate count for the curve only.
    sample_weight: (m,) float, how much each mention counts.
    mentions: (m,) int64, the number of each among those that it was made of; None where that does
        not matter.
    """

    candidates: CandidateFeatures
    correct: np.ndarray
    sample_weight: np.ndarray
    mentions: np.ndarray | None = None

    @cached_property
    def gold(self) -> np.ndarray:
        """(m,) bool, whether a mention has a correct candidate."""
        return np.asarray(self.correct.any(axis=1))

    @property
    def useful(self) -> np.ndarray:
        """(m,) bool, the mentions with a correct candidate and others."""
        return self.gold & (self.candidates.valid.sum(axis=1) > 1)

    @cached_property
    def absent(self) -> CandidateFeatures:
        """The candidates without the correct ones."""
        return self.candidates.where(~self.correct)

    def temperature(self, scores: np.ndarray) -> tuple[float, float]:
        """The temperature under which (m, c) scores fit best, and their log-likelihood."""
        gold = self.gold
        return fit_temperature(
            scores[gold], self.correct[gold], self.sample_weight[gold]
        )


class PresenceData(NamedTuple):
    """Training data of presence, the probability that any candidate of a mention is right.

    features: (n, len(PRESENCE_FEATURES)) float64, of the best candidate by networks that did not
        see it.
    present: (n,) bool, whether a right one is among the candidates.
    counts: (n,) float64, how much each counts.
    temperature: That of the softmax over scores which the features are of.
    """

    features: np.ndarray
    present: np.ndarray
    counts: np.ndarray
    temperature: float

    @property
    def coverage(self) -> float:
        """The share of them that have a right candidate."""
        return float(self.counts[self.present].sum() / self.counts.sum())


class CrossValidatedNetworks(NamedTuple):
    """Networks by fold, with the scores that they give to the candidates of their fold.

    mean: The network with the mean of their scores.
    without_fold: By fold, a network that was fitted without it.
    scores: (m, c) float64, -inf for no candidate.
    absent: The same without the correct candidates.
    """

    mean: RankerWeights
    without_fold: list[RankerWeights]
    scores: np.ndarray
    absent: np.ndarray


def fit_weights(
    candidates: CandidateFeatures, correct: np.ndarray, groups: np.ndarray
) -> RankerWeights | None:
    """Train a ranker on candidates with labels.

    groups: (m,) int64, such as documents: mentions of one group are held out at once.
    RETURNS: None where there is too little to learn from.
    """
    labelled = Labelled(candidates, correct, np.ones(len(groups)))
    fitted = cross_fit(labelled, folds_of(groups), FOLDS)
    return None if fitted is None else fitted[0]


def folds_of(groups: np.ndarray) -> np.ndarray:
    """Divide mentions by their groups: (m,) int64, the number of each mention's fold.

    Every fifth group is in one fold; every fifth mention where all are of one group.
    """
    numbers = np.unique(groups, return_inverse=True)[1]
    return (numbers if numbers.any() else np.arange(len(groups))) % FOLDS


def cross_fit(
    labelled: Labelled,
    fold_of: np.ndarray,
    n_folds: int,
    start: RankerWeights | None = None,
) -> list[RankerWeights] | None:
    """Train a network without each fold of the mentions, and fit probabilities on the fold.

    fold_of: (m,) int64, the fold of each mention. Mentions of one document are in one fold.
    n_folds: How many folds there are.
    start: Weights that few mentions change little. The mean of their scores and of those by
        networks that were fitted from them is used, if held-out mentions are at least as likely by
        it as by networks that were fitted from nothing.
    RETURNS: Weights for other mentions, the mean of the folds' networks; then for each fold weights
        that have not seen it. None where there is too little to learn from.
    """
    labelled = replace(labelled, correct=labelled.correct & labelled.candidates.valid)
    if labelled.useful.sum() < MIN_MENTIONS:
        return None
    networks = best_networks(labelled, fold_of, n_folds, start)
    overall = _with_curve(networks.mean, networks, labelled, start)
    if overall is None:
        return None
    gold = labelled.gold
    best = networks.scores.argmax(axis=1)[:, None]
    hit = np.take_along_axis(labelled.correct, best, axis=1)[:, 0]
    accuracy = float(np.average(hit[gold], weights=labelled.sample_weight[gold]))
    without = []
    for fold, network in enumerate(networks.without_fold):
        seen = np.flatnonzero(fold_of != fold)
        seen_networks = networks._replace(
            scores=networks.scores[seen], absent=networks.absent[seen]
        )
        curved = _with_curve(network, seen_networks, labelled.take(seen), start)
        without.append(
            curved or replace(network, curve=overall.curve, trees=overall.trees)
        )
    return [replace(overall, accuracy=accuracy), *without]


def best_networks(
    labelled: Labelled, fold_of: np.ndarray, n_folds: int, start: RankerWeights | None
) -> CrossValidatedNetworks:
    """The networks by which mentions that they did not see are most likely."""
    networks = _networks(labelled, fold_of, n_folds, None)
    if start is None:
        return networks
    moved = _networks(labelled, fold_of, n_folds, start)
    start_scores = np.where(
        labelled.candidates.valid, start.scores(labelled.candidates), -np.inf
    )
    # Each counts at its temperature: the one with the larger scores does not outvote the other.
    factors = [
        labelled.temperature(scores)[0] / 2 for scores in (start_scores, moved.scores)
    ]
    pairs = [
        sum_of_networks([start, network], factors) for network in moved.without_fold
    ]
    mean = _with_scores(pairs, labelled, fold_of)
    # The start once: it would be in each pair.
    mean = mean._replace(mean=sum_of_networks([start, moved.mean], factors))
    likelihoods = [
        labelled.temperature(scored.scores)[1] for scored in (mean, networks)
    ]
    return mean if likelihoods[0] >= likelihoods[1] else networks


def _networks(
    labelled: Labelled, fold_of: np.ndarray, n_folds: int, start: RankerWeights | None
) -> CrossValidatedNetworks:
    """Train a network without each fold, from other weights or from random ones."""
    standards = (
        standards_of(labelled.candidates)
        if start is None
        else (start.mean, start.spread)
    )
    networks = []
    for fold in range(n_folds):
        begins = (
            [fold * STARTS + i for i in range(STARTS)] if start is None else [start]
        )
        seen = labelled.take(fold_of != fold)
        trained = [train_network(seen, standards, begin) for begin in begins]
        networks.append(sum_of_networks(trained, [1 / len(begins)] * len(begins)))
    return _with_scores(networks, labelled, fold_of)


def _with_scores(
    networks: list[RankerWeights], labelled: Labelled, fold_of: np.ndarray
) -> CrossValidatedNetworks:
    """Networks with the scores that each gives to its fold."""
    scores_of_both = []
    for candidates in (labelled.candidates, labelled.absent):
        scores = np.full(labelled.correct.shape, -np.inf)
        for fold, network in enumerate(networks):
            scores[fold_of == fold] = network.scores(candidates.take(fold_of == fold))
        scores_of_both.append(np.where(candidates.valid, scores, -np.inf))
    mean = sum_of_networks(networks, [1 / len(networks)] * len(networks))
    return CrossValidatedNetworks(mean, networks, *scores_of_both)


def _with_curve(
    network: RankerWeights,
    networks: CrossValidatedNetworks,
    labelled: Labelled,
    start: RankerWeights | None,
) -> RankerWeights | None:
    """A network with probabilities that fit the scores of mentions that were held out.

    The trees of ``start`` stay, and are weighed beside the features.

    RETURNS: None where all mentions are alike.
    """
    counts = np.outer([1 - ABSENT, ABSENT], labelled.sample_weight)
    data = presence_data(networks, labelled, counts)
    trees = Trees.none() if start is None else start.trees
    before = None if start is None else start.curve[1:].astype(np.float64)
    features = trees.with_prediction(data.features)
    signs = [*PRESENCE_FEATURES.values(), 1]
    weights = fit_presence(features, data.present, data.counts, signs, before)
    if weights is None:
        return None
    curve = np.array([data.temperature, *weights], dtype=np.float32)
    return replace(network, curve=curve, coverage=data.coverage, trees=trees)


def presence_data(
    networks: CrossValidatedNetworks, labelled: Labelled, counts: np.ndarray
) -> PresenceData:
    """The presence features of each mention, with its entity in the knowledge base and without it.

    counts: (2, m) float, how much each mention counts as it is, and as if the knowledge base lacked
        its entity.
    """
    temperature, _ = labelled.temperature(networks.scores)
    pairs = (labelled.candidates, networks.scores), (labelled.absent, networks.absent)
    features = [
        presence_features(candidates, temperature * scores)
        for candidates, scores in pairs
    ]
    has_any = [candidates.valid.any(axis=1) for candidates, _ in pairs]
    present = [labelled.gold, np.zeros_like(labelled.gold)]
    return PresenceData(
        np.concatenate(features),
        np.concatenate(present),
        counts.ravel() * np.concatenate(has_any),
        temperature,
    )


def standards_of(candidates: CandidateFeatures) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of a network's inputs: (2 f,) float32 each."""
    x = inputs_of(candidates)[candidates.valid]
    spread = x.std(axis=0)
    return x.mean(axis=0), np.where(spread > 1e-6, spread, np.float32(1))


def train_network(
    labelled: Labelled,
    standards: tuple[np.ndarray, np.ndarray],
    start: RankerWeights | int,
) -> RankerWeights:
    """Fit all but the curve, from other weights or from a random start with this number.

    standards: Mean and standard deviation of the inputs.
    """
    labelled = labelled.take(labelled.useful)
    mean, spread = standards
    sample_weight = labelled.sample_weight
    inputs = (inputs_of(labelled.candidates) - mean) / spread
    data = (
        torch.from_numpy(inputs.astype(np.float32)),
        torch.from_numpy(labelled.candidates.valid),
        torch.from_numpy(labelled.correct),
        torch.from_numpy(
            (sample_weight / max(sample_weight.sum(), 1e-9)).astype(np.float32)
        ),
    )
    begin = _random(len(mean), start) if isinstance(start, int) else _copies(start)
    penalty = PRIOR / max(float(sample_weight.sum()), 1.0)
    linear, hidden, bias, out = _fitted(
        begin, data, penalty, centred=not isinstance(start, int)
    )
    curve = np.array(
        [1.0, *np.zeros(len(PRESENCE_FEATURES)), 0.0, MOST_CERTAIN], dtype=np.float32
    )
    return RankerWeights(mean, spread, linear, hidden, bias, out, curve)


def _fitted(
    weights: list[Any],
    data: tuple[Any, Any, Any, Any],
    penalty: float,
    *,
    centred: bool,
) -> list[np.ndarray]:
    """Weights of one network, fitted by L-BFGS.

    weights: What it begins with.
    data: The inputs (m, c, 2 f), where there are candidates, which are correct, and the weight of
        each mention.
    penalty: For the size of the weights, or for their distance from the beginning.
    centred: Whether the distance counts.
    """
    centre = [w.detach().clone() if centred else torch.zeros_like(w) for w in weights]
    linear, hidden, bias, out = weights
    counted = ((linear, centre[0]), (hidden, centre[1]), (out, centre[3]))
    optimizer = torch.optim.LBFGS(
        weights, max_iter=MAX_STEPS, history_size=20, line_search_fn="strong_wolfe"
    )
    mentions = max(BLOCK // max(data[0].shape[1] * hidden.shape[1], 1), 1)
    blocks = list(zip(*(tensor.split(mentions) for tensor in data)))

    def closure() -> Any:
        optimizer.zero_grad()
        size = penalty * sum(((weight - old) ** 2).sum() for weight, old in counted)
        size.backward()
        loss = size.detach()
        for inputs, is_candidate, is_gold, counts in blocks:
            scores = inputs @ linear + torch.tanh(inputs @ hidden + bias) @ out
            among = torch.logsumexp(scores.masked_fill(~is_candidate, -torch.inf), 1)
            gold = torch.logsumexp(scores.masked_fill(~is_gold, -torch.inf), 1)
            unlikely = (counts * (among - gold)).sum()
            unlikely.backward()
            loss += unlikely.detach()
        return loss

    if len(data[0]):
        optimizer.step(closure)
    return [weight.detach().numpy() for weight in weights]


def _copies(weights: RankerWeights) -> list[Any]:
    arrays = (weights.linear, weights.hidden, weights.bias, weights.out)
    return [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]


def _random(width: int, seed: int) -> list[Any]:
    # Its own generator: fitting in the middle of training must not disturb training.
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn((width, HIDDEN), generator=generator) * 0.3
    out = torch.randn(HIDDEN, generator=generator) * 0.1
    weights = [torch.zeros(width), hidden, torch.zeros(HIDDEN), out]
    return [weight.requires_grad_() for weight in weights]
