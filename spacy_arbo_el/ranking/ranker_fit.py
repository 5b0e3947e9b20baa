"""Fit of the feature ranker's weights on mentions with labels.

The weights of features are those of a conditional logit: the softmax among the candidates of each
mention makes the correct ones most likely. More of a feature that speaks for a candidate never
makes it less likely. Presence is fitted on mentions by weights that did not see them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..base.calibration import PRIOR, fit_presence, fit_temperature, log_softmax
from .features import RANK_SIGNS, CandidateFeatures
from .ranker_weights import SIGNS, RankerWeights, evidence_of

FOLDS = 5
# Fewer mentions than these are too few to learn from.
MIN_MENTIONS = 20
# Probabilities are fitted on real mentions, and with this share as if the knowledge base
# lacked their entity.
ABSENT = 0.02


class CrossFit(NamedTuple):
    """Weights fitted on all mentions, and without each part of them.

    whole: Fitted on all mentions, for others.
    parts: By part, weights that were fitted on the mentions of the other parts.
    """

    whole: RankerWeights
    parts: list[RankerWeights]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Candidates of mentions, with labels and weights.

    candidates: Those of m mentions.
    correct: (m, c) bool. Mentions without a correct candidate count for presence only.
    shares: (m,) float, how much each mention counts.
    """

    candidates: CandidateFeatures
    correct: np.ndarray
    shares: np.ndarray

    @cached_property
    def gold(self) -> np.ndarray:
        """(m,) bool, whether a mention has a correct candidate."""
        return np.asarray(self.correct.any(axis=1))

    @cached_property
    def absent(self) -> CandidateFeatures:
        """The candidates without the correct ones."""
        return self.candidates.where(~self.correct)

    def take(self, rows: np.ndarray) -> "Labelled":
        """The mentions at ``rows``, numbers or bool."""
        return Labelled(self.candidates.take(rows), self.correct[rows], self.shares[rows])


def fit_weights(
    candidates: CandidateFeatures,
    correct: np.ndarray,
    groups: np.ndarray,
    shares: np.ndarray | None = None,
    start: RankerWeights | None = None,
    presence: np.ndarray | None = None,
) -> RankerWeights | None:
    """Train a ranker on candidates with labels.

    groups: (m,) int64, such as documents: mentions of one group are held out at once.
    start, presence: See ``cross_fit``.
    RETURNS: None where there is too little to learn from.
    """
    shares = np.ones(len(groups)) if shares is None else shares
    labelled = Labelled(candidates, correct, shares)
    fitted = cross_fit(labelled, parts_of(groups), FOLDS, start, presence)
    return None if fitted is None else fitted.whole


def parts_of(groups: np.ndarray) -> np.ndarray:
    """Divide mentions by their groups: (m,) int64, the number of each mention's part.

    Every fifth group is in one part; every fifth mention where all are of one group.
    """
    numbers = np.unique(groups, return_inverse=True)[1]
    return (numbers if numbers.any() else np.arange(len(groups))) % FOLDS


def cross_fit(
    labelled: Labelled,
    part_of: np.ndarray,
    parts: int,
    start: RankerWeights | None = None,
    presence: np.ndarray | None = None,
) -> CrossFit | None:
    """Fit weights on all mentions and without each part, with presence by held-out mentions.

    part_of: (m,) int64, the part of each mention. Mentions of one document are in one part.
    parts: How many parts there are.
    start: Weights that few mentions change little.
    presence: (2, m) float, how much each mention counts for the probability that any candidate is
        right, as it is and as if the knowledge base lacked its entity; None for shares of both.
    RETURNS: None where there is too little to learn from.
    """
    labelled = replace(labelled, correct=labelled.correct & labelled.candidates.valid)
    gold = labelled.gold
    if (gold & (labelled.candidates.valid.sum(axis=1) > 1)).sum() < MIN_MENTIONS:
        return None
    if presence is None:
        presence = np.stack([(1 - ABSENT) * labelled.shares, ABSENT * labelled.shares])
    by_part = [fit_linear(labelled.take(part_of != part), start) for part in range(parts)]
    held_out = _HeldOut.by_parts(labelled, part_of, by_part)
    whole = held_out.weights(fit_linear(labelled, start), labelled, presence, start)
    if whole is None:
        return None
    best = held_out.scores.argmax(axis=1)
    hit = labelled.correct[np.arange(len(best)), best]
    accuracy = float(np.average(hit[gold], weights=labelled.shares[gold]))
    without = []
    for part, linear in enumerate(by_part):
        rest = np.flatnonzero(part_of != part)
        some = labelled.take(rest)
        fitted = held_out.take(rest).weights(linear, some, presence[:, rest], start)
        without.append(fitted or replace(whole, linear=linear.astype(np.float32)))
    return CrossFit(replace(whole, accuracy=accuracy), without)


def fit_linear(labelled: Labelled, start: RankerWeights | None = None) -> np.ndarray:
    """The weights of features by which correct candidates are most likely: (f,) float64.

    start: What few mentions change little; None to begin with nothing.
    """
    from scipy.optimize import minimize

    useful = labelled.gold & (labelled.candidates.valid.sum(axis=1) > 1)
    labelled = labelled.take(useful)
    features = labelled.candidates.features.astype(np.float64)
    valid = labelled.candidates.valid
    # A feature counts as much as it varies among the candidates of a mention.
    counts = np.maximum(valid.sum(axis=1), 1)[:, None, None]
    features -= np.where(valid[:, :, None], features, 0.0).sum(axis=1, keepdims=True) / counts
    features[~valid] = 0.0
    spread = np.sqrt((features**2).sum(axis=(0, 1)) / max(valid.sum(), 1))
    spread = np.maximum(spread, 1e-3)
    features /= spread
    total = max(float(labelled.shares.sum()), 1e-9)
    shares = labelled.shares / total
    penalty = PRIOR / max(total, 1.0)
    # A cross-encoder's score is one feature more.
    signs = (*RANK_SIGNS, *[0] * (len(spread) - len(RANK_SIGNS)))
    centre = np.zeros(len(spread)) if start is None else start.linear * spread

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        log_share = log_softmax(features @ weights, valid)
        correct = np.where(labelled.correct, log_share, -np.inf)
        likelihood = np.logaddexp.reduce(correct, axis=1)
        expected = np.exp(correct - likelihood[:, None]) - np.exp(log_share)
        slopes = np.einsum("mc,mcf->f", shares[:, None] * expected, features)
        moved = weights - centre
        value = -float(shares @ likelihood) + penalty * float(moved @ moved)
        return value, 2 * penalty * moved - slopes

    fitted = minimize(loss, centre, jac=True, bounds=_bounds(signs), method="L-BFGS-B")
    return np.asarray(fitted.x / spread)


def _bounds(signs: Sequence[int | None]) -> list[tuple[float | None, float | None]]:
    """The bounds of weights: positive, negative, or both; None for a weight that is 0."""
    by_sign = {1: (0.0, None), -1: (None, 0.0), 0: (None, None), None: (0.0, 0.0)}
    return [by_sign[sign] for sign in signs]


class _HeldOut(NamedTuple):
    """The scores of mentions by weights that did not see them.

    scores: (m, c) float64, -inf for no candidate.
    absent: The same without the correct candidates.
    """

    scores: np.ndarray
    absent: np.ndarray

    @classmethod
    def by_parts(
        cls, labelled: Labelled, part_of: np.ndarray, by_part: Sequence[np.ndarray]
    ) -> "_HeldOut":
        """by_part: For each part the weights that were fitted without it."""
        features = labelled.candidates.features.astype(np.float64)
        scores = np.einsum("mcf,mf->mc", features, np.stack(by_part)[part_of])
        kept = np.where(labelled.candidates.valid, scores, -np.inf)
        return cls(kept, np.where(labelled.absent.valid, scores, -np.inf))

    def take(self, rows: np.ndarray) -> "_HeldOut":
        """The scores of some mentions."""
        return _HeldOut(self.scores[rows], self.absent[rows])

    def weights(
        self,
        linear: np.ndarray,
        labelled: Labelled,
        presence: np.ndarray,
        start: RankerWeights | None,
    ) -> RankerWeights | None:
        """Weights whose shares and presence fit the held-out mentions.

        linear: (f,) float64, weights of features.
        RETURNS: None where all mentions are alike.
        """
        gold = labelled.gold
        data = self.scores[gold], labelled.correct[gold], labelled.shares[gold]
        temperature, _ = fit_temperature(*data)
        parts = ((labelled.candidates, self.scores), (labelled.absent, self.absent))
        evidence = np.concatenate([evidence_of(one, temperature * scores) for one, scores in parts])
        present = np.concatenate([gold, np.zeros(len(gold), dtype=bool)])
        counts = presence.ravel() * np.concatenate([one.valid.any(axis=1) for one, _ in parts])
        before = None if start is None else start.curve.astype(np.float64)
        curve = fit_presence(evidence, present, counts, list(SIGNS.values()), before)
        if curve is None:
            return None
        return RankerWeights(
            (temperature * linear).astype(np.float32),
            curve.astype(np.float32),
            coverage=float(counts[present].sum() / counts.sum()),
        )
