"""The calibration error of probabilities."""

from collections.abc import Sequence

import numpy as np

from .outcomes import Outcome

BINS = 10


def calibration_error(
    probability: np.ndarray, correct: np.ndarray, bins: int = BINS
) -> float:
    """The expected calibration error, from 0 to 1 (ECE; Naeini and others, 2015).

    Predictions are put into bins of equal width by their probability. In each bin, the mean
    probability is compared with the share of predictions that are right.

    probability: (n,) from 0 to 1.
    correct: (n,) bool.
    """
    number = np.minimum((probability * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(number, weights=probability - correct, minlength=bins)
    return float(np.abs(gaps).sum() / max(len(probability), 1))


def error_of_links(outcomes: Sequence[Outcome]) -> float:
    """The calibration error of links.

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
    return calibration_error(
        np.array(probability, dtype=float), np.array(correct, dtype=bool)
    )
