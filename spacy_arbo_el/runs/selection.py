"""Choice of the best model of a training."""

import math
from collections.abc import Sequence

from .checkpoint import Evaluation
from .evaluation import ERROR


def is_chosen(evaluations: Sequence[Evaluation]) -> bool:
    """Return whether the last evaluated model takes the place of the best one.

    The later of two models is taken where their scores differ by no more than the standard error of
    the difference: then the dev documents do not say which is better, and the later one has seen
    more.

    evaluations: Those of the training so far, at least one: each score with all others.
    """
    score, scores = evaluations[-1]
    best, of_best = max(evaluations, key=lambda one: one[0])
    noise = math.hypot(scores.get(ERROR, 0.0), of_best.get(ERROR, 0.0))
    return score >= best - noise
