"""The curves of texts and of exemplars, fitted together, so that the better evidence is chosen."""

from dataclasses import replace
from typing import Any, NamedTuple, Tuple

import numpy as np

from ..arrays import TopK
from ..calibration.calibration import Calibration
from ..calibration.logistic import Curve, fit_logistic
from ..mentions.labels import is_gold
from ..reranking.best_evidence import rank_by_best_evidence
from ..retrieval.neighbours import Neighbours
from ..training.losses import set_loss

# So many of the nearest texts, and of the nearest exemplars, of a mention are compared.
WIDTH = 8
# The fewest mentions that curves are compared on.
MIN_MENTIONS = 10
# How strongly the curves are drawn to each other, in mentions.
PRIOR = 1.0


class Evidence(NamedTuple):
    """The candidates of ``m`` mentions with their nearest text and exemplar.

    entities: (m, c) int64 positions in the knowledge base, each once, -1 for none.
    texts, exemplars: (m, c) float64, the similarity of the nearest one of the entity; -inf where
        none is among the nearest of the mention.
    """

    entities: np.ndarray
    texts: np.ndarray
    exemplars: np.ndarray

    @classmethod
    def of(cls, neighbours: Neighbours) -> "Evidence":
        texts, exemplars = neighbours.entities.first(WIDTH), neighbours.exemplars.first(WIDTH)
        owners = TopK(neighbours.exemplar_entities[:, :WIDTH], exemplars.scores)
        ids = np.sort(np.concatenate([texts.ids, owners.ids], axis=1), axis=1)
        ids[:, 1:][ids[:, 1:] == ids[:, :-1]] = -1
        scores = (of_one.scores_of(ids).astype(np.float64) for of_one in (texts, owners))
        return cls(ids, *scores)

    def take(self, rows: np.ndarray) -> "Evidence":
        """The given mentions."""
        return Evidence(*(column[rows] for column in self))


def fit_evidence(neighbours: Neighbours, gold: np.ndarray, calibration: Calibration) -> Calibration:
    """The calibration with the curves "entity" and "exemplar" fitted on annotated mentions.

    Two curves that are fitted apart, each on how often its kind of evidence is right, do not say
    which of two candidates is right where a text speaks for one and an exemplar for the other. So
    the curves are fitted in two steps. First, a softmax over the candidates of a mention by their
    best evidence gives the curves up to a common scale. Then this scale is chosen by how often the
    best candidate is right (Platt, 1999), which leaves the order of candidates as it is.

    gold: (m, g) int64, the positions of each mention's gold entities, -1 for none.
    RETURNS: The same calibration where there is too little to learn from. A kind without neighbours
        keeps its curve.
    """
    compared = replace(calibration, **_compared(Evidence.of(neighbours), gold))
    best = rank_by_best_evidence(neighbours, compared, 1).candidates.resized(1)
    platt = fit_logistic(best.scores.ravel(), is_gold(best.ids, gold).ravel())
    if platt is None:
        return calibration
    kinds = {"entity": neighbours.entities, "exemplar": neighbours.exemplars}
    fitted: Any = {
        kind: _after(getattr(compared, kind), platt)
        for kind, nearest in kinds.items()
        if nearest.valid.any()
    }
    return replace(calibration, **fitted)


def _after(curve: Curve, platt: Curve) -> Curve:
    """The curve whose log-odds are those of ``curve``, then changed by ``platt``."""
    slope, offset = platt
    return slope * curve[0], slope * curve[1] + offset


def _compared(evidence: Evidence, gold: np.ndarray) -> Any:
    """The two curves by which the gold candidate is the likeliest of its mention.

    They are the same one where there are too few mentions with both kinds of evidence.
    """
    correct = is_gold(evidence.entities, gold)
    certain = np.isposinf(evidence.texts) | np.isposinf(evidence.exemplars)
    usable = correct.any(axis=1) & ~correct.all(axis=1, where=evidence.entities >= 0)
    usable &= ~certain.any(axis=1)
    has_both = np.isfinite(evidence.texts).any(axis=1) & np.isfinite(evidence.exemplars).any(axis=1)
    if (usable & has_both).sum() < MIN_MENTIONS:
        return {"entity": (1.0, 0.0), "exemplar": (1.0, 0.0)}
    rows = np.flatnonzero(usable)
    return _softmax_curves(evidence.take(rows), correct[rows])


def _softmax_curves(evidence: Evidence, correct: np.ndarray) -> Any:
    """The curves with the smallest cross entropy. correct: (m, c) bool, one of each row or more."""
    from scipy.optimize import minimize

    similarities = np.stack([evidence.texts, evidence.exemplars])
    known = np.isfinite(similarities)
    centre, spread = similarities[known].mean(), similarities[known].std() or 1.0
    # Standardised, so that the prior means the same for every similarity.
    similarities = np.where(known, (similarities - centre) / spread, -np.inf)
    valid = evidence.entities >= 0

    def loss(parameters: np.ndarray) -> Tuple[float, np.ndarray]:
        """The mean loss and its gradient.

        parameters: The logarithms of the slopes, and what is added to the similarity of exemplars.
        """
        slopes, shift = np.exp(parameters[:2]), parameters[2]
        of_text, of_exemplar = slopes[0] * similarities[0], slopes[1] * (similarities[1] + shift)
        value, pull = set_loss(np.where(valid, np.maximum(of_text, of_exemplar), -np.inf), correct)
        wins = valid & (of_text >= of_exemplar), valid & (of_text < of_exemplar)
        by_text, by_exemplar = (
            (pull[won] * scaled[won]).sum() for won, scaled in zip(wins, (of_text, of_exemplar))
        )
        gradient = np.array([by_text, by_exemplar, slopes[1] * pull[wins[1]].sum()])
        apart, weight = parameters[0] - parameters[1], PRIOR / len(correct)
        gradient += 2 * weight * np.array([apart, -apart, shift])
        return value + weight * (apart**2 + shift**2), gradient

    # Once from equal curves, and once from curves by which both kinds win: a kind that never wins
    # has no gradient.
    nearest = [of_kind.max(axis=1) for of_kind in similarities]
    text, exemplar = (of_kind[np.isfinite(of_kind)].mean() for of_kind in nearest)
    starts = np.zeros(3), np.array([0.0, 0.0, text - exemplar])
    ends = [minimize(loss, start, jac=True, method="L-BFGS-B") for start in starts]
    found = min(ends, key=lambda end: float(end.fun)).x
    slopes, shifts = np.exp(found[:2]) / spread, (0.0, spread * found[2])
    by_text, by_exemplar = (
        (float(slope), float(slope * (shift - centre))) for slope, shift in zip(slopes, shifts)
    )
    return {"entity": by_text, "exemplar": by_exemplar}
