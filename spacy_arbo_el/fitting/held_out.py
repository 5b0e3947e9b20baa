"""A fit on documents, and one without each part of them, so that each part can be scored."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc

from ..linker import ArboLinker
from ..linking.stages import LinkingStages
from .calibrate import HeldOutFit, divided, fit_folds
from .thresholds import THRESHOLDS, ThresholdSweep, cautious_row, sweep_linking

# The parts of annotated documents, each scored by what was fitted on the others.
FOLDS = 5


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
    RETURNS: Also a fit without each part; none for a single document.
    """
    stages = stages or linker.caching_stages()
    folds = min(folds, len(docs)) if len(docs) > 1 else 0
    fit = fit_folds(
        linker, docs, folds, stages=stages, from_scratch=from_scratch, done=done
    )
    if not folds or not score or linker.threshold.by_label:
        return fit
    sweeps = []
    for (_, held_out), fold_fit in zip(divided(docs, folds), fit.without):
        sweeps.append(
            sweep_linking(linker, held_out, thresholds, fold_fit.within(stages))
        )
        done()
    sweeps_without = [
        [sweep for sweep in sweeps if sweep is not left_out] for left_out in sweeps
    ]
    chosen = [
        fold_fit._replace(threshold=_threshold(fold_sweeps, score, linker.threshold))
        for fold_fit, fold_sweeps in zip(
            [fit.whole, *fit.without], [sweeps, *sweeps_without]
        )
    ]
    return HeldOutFit(chosen[0], chosen[1:])


def _threshold(sweeps: Sequence[ThresholdSweep], score: str, prior: float) -> float:
    """The threshold that sweeps of held-out documents show to be as good as the best."""
    return sweeps[0].rows[cautious_row(sweeps, score, prior)]["threshold"]
