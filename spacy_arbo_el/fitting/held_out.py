"""A fit on documents, and one without each part of them, so that each part can be scored."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.tokens import Doc

from ..linker import ArboLinker
from ..linking.stages import LinkingStages
from ..linking.thresholds import LabelThresholds
from .calibrate import Fitted, divided, fit_calibration, fit_in_parts
from .thresholds import THRESHOLDS, ThresholdSweep, cautious_row, sweep_linking

# The parts of annotated documents, each scored by what was fitted on the others.
FOLDS = 5


class Fit(NamedTuple):
    """The parts of a linker that were fitted on documents.

    fitted: Calibration and reranker.
    """

    fitted: Fitted
    threshold: float

    def install(self, linker: ArboLinker) -> None:
        self.fitted.install(linker)
        if not isinstance(linker.threshold, LabelThresholds):
            linker.threshold = self.threshold


class HeldOutFit(NamedTuple):
    """A fit on documents, and those without each part of them.

    without: By the number of the part, see ``divided``; none for a single document.
    """

    whole: Fit
    without: list[Fit]


def fit_held_out(
    linker: ArboLinker,
    docs: Sequence[Doc],
    folds: int,
    score: str,
    stages: LinkingStages | None = None,
    done: Callable[[], Any] = lambda: None,
    *,
    from_scratch: bool = False,
    thresholds: np.ndarray = THRESHOLDS,
) -> HeldOutFit:
    """Fit calibration, reranker and threshold. The linker is unchanged.

    A threshold is chosen on documents that the calibration and the reranker were not fitted on, and
    moves no further than these show, see ``cautious_row``. Thresholds by label stay.

    docs: Documents with annotated mentions.
    folds: The number of parts; fewer where there are fewer documents.
    score: What the threshold is chosen by, one of ``LINKING_SCORES``; "" for the present one.
    stages: As in ``fit_calibration``.
    done: Called after the search, the fit, and the links of each part.
    from_scratch: As in ``fit_calibration``.
    """
    stages = stages or linker.caching_stages()
    if len(docs) < 2:
        fitted = fit_calibration(linker, docs, stages=stages, from_scratch=from_scratch)
        return HeldOutFit(Fit(fitted, linker.threshold), [])
    folds = min(folds, len(docs))
    fitted, without = fit_in_parts(
        linker, docs, folds, stages=stages, from_scratch=from_scratch, done=done
    )
    if not score or isinstance(linker.threshold, LabelThresholds):
        threshold = linker.threshold
        return HeldOutFit(
            Fit(fitted, threshold), [Fit(fold_fit, threshold) for fold_fit in without]
        )
    sweeps = []
    for (_, held_out), fold_fit in zip(divided(docs, folds), without):
        sweeps.append(sweep_linking(linker, held_out, thresholds, fold_fit.within(stages)))
        done()
    sweeps_without = [[sweep for sweep in sweeps if sweep is not left_out] for left_out in sweeps]
    chosen = [_threshold(fold_sweeps, score, linker.threshold) for fold_sweeps in sweeps_without]
    for_all = Fit(fitted, _threshold(sweeps, score, linker.threshold))
    return HeldOutFit(for_all, [Fit(*pair) for pair in zip(without, chosen)])


def _threshold(sweeps: Sequence[ThresholdSweep], score: str, prior: float) -> float:
    """The threshold that sweeps of held-out documents show to be as good as the best."""
    return sweeps[0].rows[cautious_row(sweeps, score, prior)]["threshold"]
