"""Reliability of probabilities, and their calibration error."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .outcomes import Outcome

BINS = 10


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions in bins of equal width, by their probability.

    Bins without predictions are left out.

    probability: (b,) float64, the mean probability of each bin.
    accuracy: (b,) float64, the share of its predictions that are right.
    count: (b,) int64, how many predictions it has.
    """

    probability: np.ndarray
    accuracy: np.ndarray
    count: np.ndarray

    @property
    def error(self) -> float:
        """The expected calibration error, from 0 to 1 (ECE; Naeini and others, 2015)."""
        gaps = np.abs(self.probability - self.accuracy)
        return float(gaps @ self.count / max(self.count.sum(), 1))


def reliability(probability: np.ndarray, correct: np.ndarray, bins: int = BINS) -> Reliability:
    """Compare probabilities, (n,) from 0 to 1, with how often they are right, (n,) bool."""
    number = np.minimum((probability * bins).astype(np.int64), bins - 1)
    count = np.bincount(number, minlength=bins)
    used = count > 0
    sums = (np.bincount(number, weights=of, minlength=bins) for of in (probability, correct))
    mean, accuracy = (total[used] / count[used] for total in sums)
    return Reliability(mean, accuracy, count[used])


def reliability_of_links(outcomes: Sequence[Outcome]) -> Reliability:
    """Compare link probabilities with how often links are right.

    A mention that is NIL counts with its first candidate, which the threshold has rejected. A
    mention without candidates is left out.

    outcomes: Those without a gold mention are left out.
    """
    probability = []
    correct = []
    for result in outcomes:
        link = result.link
        if link is None or not link.ids or result.gold is None:
            continue
        kb_id = link.ids[0] if link.is_nil else link.kb_id
        probability.append(link.score)
        correct.append(kb_id in result.gold)
    return reliability(np.array(probability, dtype=float), np.array(correct, dtype=bool))
