"""Joint fit of the curves of texts and exemplars. So that the better evidence is chosen."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import TopK, resized_table
from ..base.calibration import Calibration, Curve, fit_logistic
from ..mentions.labels import is_gold
from ..retrieval.neighbours import Neighbours
from ..training.losses import set_loss

# So many of the nearest texts, and of the nearest exemplars, of a mention are compared.
WIDTH = 8
# The fewest mentions that curves are compared on.
MIN_MENTIONS = 10
# How strongly the curves are drawn to each other, in mentions.
PENALTY = 1.0
# Between which the logarithms of the two slopes and the shift are searched, for standardised
# similarities. Without bounds a step of the search can overflow.
BOUNDS = ((-5.0, 5.0), (-5.0, 5.0), (-20.0, 20.0))
# The edges of the simplex that the search ends with.
SIMPLEX = 1.0
# Below which differences of parameters and of the loss the simplex stops.
TOLERANCES = {"xatol": 1e-4, "fatol": 1e-7}
# Those of texts and of exemplars.
Curves = tuple[Curve, Curve]
# From parameters to a value and its gradient.
Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]


class NearestEvidence(NamedTuple):
    """Candidates of ``m`` mentions with nearest text and exemplar.

    entities: (m, c) int64 positions in the knowledge base, each once, -1 for none.
    texts, exemplars: (m, c) float64, the similarity of the nearest one of the entity; -inf where
        none is among the nearest of the mention.
    """

    entities: np.ndarray
    texts: np.ndarray
    exemplars: np.ndarray

    @classmethod
    def of(cls, neighbours: Neighbours) -> "NearestEvidence":
        texts, exemplars = neighbours.entities.first(WIDTH), neighbours.exemplars.first(WIDTH)
        owners = TopK(neighbours.exemplar_entities[:, :WIDTH], exemplars.scores)
        ids = np.sort(np.concatenate([texts.ids, owners.ids], axis=1), axis=1)
        ids[:, 1:][ids[:, 1:] == ids[:, :-1]] = -1
        scores = (of_one.scores_of(ids).astype(np.float64) for of_one in (texts, owners))
        return cls(ids, *scores)

    def take(self, rows: np.ndarray) -> "NearestEvidence":
        """The given mentions."""
        return NearestEvidence(*(column[rows] for column in self))


def fit_evidence(neighbours: Neighbours, gold: np.ndarray, calibration: Calibration) -> Calibration:
    """Fit the curves "entity" and "exemplar" on annotated mentions.

    Two curves that are fitted apart, each on how often its kind of evidence is right, do not say
    which of two candidates is right where a text speaks for one and an exemplar for the other. So
    the curves are fitted in two steps. First, a softmax over the candidates of a mention by their
    best evidence gives the curves up to a common scale. Then this scale is chosen by how often the
    best candidate is right (Platt, 1999), which leaves the order of candidates as it is. So the
    probabilities are those of the better of both, not of a text or an exemplar alone.

    gold: (m, g) int64, the positions of each mention's gold entities, -1 for none.
    RETURNS: Where few mentions have both kinds of evidence, the order of candidates stays as it is.
        Where all best candidates are right, or none is, the curve "entity" stays as it is. A kind
        without neighbours keeps its curve.
    """
    before = calibration.entity, calibration.exemplar
    compared = _compared(NearestEvidence.of(neighbours), gold)
    curves = compared or before
    scale = _platt(neighbours, gold, curves)
    if scale is None:
        slope = before[0][0] / curves[0][0]
        scale = slope, before[0][1] - slope * curves[0][1]
    kinds = {"entity": neighbours.entities, "exemplar": neighbours.exemplars}
    fitted: Any = {
        kind: (scale[0] * slope, scale[0] * offset + scale[1])
        for (kind, nearest), (slope, offset) in zip(kinds.items(), curves)
        if nearest.valid.any()
    }
    return replace(calibration, **fitted)


def _platt(neighbours: Neighbours, gold: np.ndarray, curves: Curves) -> Curve | None:
    """Fit the curve from candidates' log-odds to correctness."""
    texts, exemplars = neighbours.entities.resized(1), neighbours.exemplars.resized(1)
    ids = np.hstack([texts.ids, resized_table(neighbours.exemplar_entities, 1, -1)])
    scores = np.hstack([texts.scores, exemplars.scores]).astype(np.float64)
    log_odds = scores * [slope for slope, _ in curves] + [offset for _, offset in curves]
    best = log_odds.argmax(axis=1)[:, None]
    right = is_gold(np.take_along_axis(ids, best, axis=1), gold)
    return fit_logistic(np.take_along_axis(log_odds, best, axis=1)[:, 0], right[:, 0])


def _compared(evidence: NearestEvidence, gold: np.ndarray) -> Curves | None:
    """Fit curves under which gold candidates are most likely.

    RETURNS: None where too few mentions have both kinds of evidence.
    """
    correct = is_gold(evidence.entities, gold)
    usable = correct.any(axis=1) & ~correct.all(axis=1, where=evidence.entities >= 0)
    has_both = np.isfinite(evidence.texts).any(axis=1) & np.isfinite(evidence.exemplars).any(axis=1)
    if (usable & has_both).sum() < MIN_MENTIONS:
        return None
    rows = np.flatnonzero(usable)
    return _softmax_curves(evidence.take(rows), correct[rows])


def _softmax_curves(evidence: NearestEvidence, correct: np.ndarray) -> Curves:
    """The curves with the smallest cross entropy.

    correct: (m, c) bool, at least one in each row.
    """
    similarities = np.stack([evidence.texts, evidence.exemplars])
    known = np.isfinite(similarities)
    centre, spread = similarities[known].mean(), similarities[known].std() or 1.0
    # Standardised, so that the penalty means the same for every similarity.
    similarities = np.where(known, (similarities - centre) / spread, -np.inf)
    valid = evidence.entities >= 0

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean loss and its gradient.

        parameters: The logarithms of the slopes, and the offset of the similarity of exemplars.
        """
        slopes, shift = np.exp(parameters[:2]), parameters[2]
        of_text, of_exemplar = slopes[0] * similarities[0], slopes[1] * (similarities[1] + shift)
        value, pull = set_loss(np.where(valid, np.maximum(of_text, of_exemplar), -np.inf), correct)
        wins = valid & (of_text >= of_exemplar), valid & (of_text < of_exemplar)
        by_text, by_exemplar = (
            (pull[won] * scaled[won]).sum() for won, scaled in zip(wins, (of_text, of_exemplar))
        )
        gradient = np.array([by_text, by_exemplar, slopes[1] * pull[wins[1]].sum()])
        apart, weight = parameters[0] - parameters[1], PENALTY / len(correct)
        gradient += 2 * weight * np.array([apart, -apart, shift])
        return value + weight * (apart**2 + shift**2), gradient

    # Once from equal curves, and once from curves by which both kinds win: a kind that never wins
    # has no gradient.
    nearest = [of_kind.max(axis=1) for of_kind in similarities]
    text, exemplar = (of_kind[np.isfinite(of_kind)].mean() for of_kind in nearest)
    found = _minimum(loss, [np.zeros(3), np.array([0.0, 0.0, text - exemplar])])
    slopes = [float(slope) for slope in np.exp(found[:2]) / spread]
    shift = float(spread * found[2])
    centre = float(centre)
    return (slopes[0], -slopes[0] * centre), (slopes[1], slopes[1] * (shift - centre))


def _minimum(loss: Loss, starts: list[np.ndarray]) -> np.ndarray:
    """Parameters of the smallest loss found from several starts. (3,).

    loss: The value at (3,) parameters, and the gradient.
    """
    from scipy.optimize import minimize

    def value(parameters: np.ndarray) -> float:
        return loss(parameters)[0]

    ends = []
    for start in starts:
        end = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=BOUNDS).x
        # The loss has an edge wherever the better evidence of a candidate changes. A search by
        # gradients stops at some of them, far from the minimum; a simplex passes over them.
        options = {"initial_simplex": end + SIMPLEX * np.eye(4, 3, -1), **TOLERANCES}
        ends.append(minimize(value, end, method="Nelder-Mead", bounds=BOUNDS, options=options))
    return min(ends, key=lambda end: float(end.fun)).x
