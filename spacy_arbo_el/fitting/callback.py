"""Callback that calibrates, tunes and scores before saving."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import ensure_path, registry

from ..base.settings import check_choice
from ..corpora.docbin import read_docs
from ..corpora.docs import unlinked_examples
from ..evaluation.report import linked_outcomes, scores_of, seen_by
from ..evaluation.uncertainty import standard_errors
from ..linker import ArboLinker, linkers_of
from ..mentions.record import text_fingerprint
from ..runs.evaluation import ERRORS
from .calibrate import Fit, annotated_docs, divided, install
from .exemplar_fit import without_exemplars
from .held_out import FOLDS, fit_held_out
from .thresholds import LINKING_SCORES, THRESHOLDS

# The parts of the dev set in a rough fit, which tries each fifth threshold.
HALVES = 2
EVERY = 5


@registry.callbacks("spacy-arbo-el.Calibrate.v1")
@dataclass(frozen=True)
class Calibrate:
    """Calibrates a pipeline on a dev set before saving.

    Use it whenever you train, so that scores are probabilities and thresholds have a meaning::

        [training.before_to_disk]
        @callbacks = "spacy-arbo-el.Calibrate.v1"
        path = ${paths.dev}
        train = ${paths.train}
        tune_by = "nel_micro_f"

    ``arbo train`` also calibrates before each evaluation. It scores each half of the dev set with
    curves and a ranker that were fitted on the other, prints these scores and chooses the best
    model by them. At the end, it fits and scores fifths, and saves these scores. With ``spacy
    train``, an evaluation uses the calibration of the previous one.

    path: The annotated documents, a ``.spacy`` file or a folder of them.
    train: The documents of the training. Those that the objective holds out of it are fitted on as
        well, but not scored. None to fit on dev alone.
    tune_by: Set the threshold by the score of this name on the held-out fifths; "" leaves it. It
        moves from that of the config only as far as the documents show that another is better, see
        ``cautious_row``.
    """

    path: Path
    train: Path | None = None
    tune_by: str = ""
    # What was fitted last, and for which state of the linkers.
    _last: dict[str, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    # The threshold that each linker began with.
    _priors: dict[str, float] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.tune_by:
            check_choice("tune_by", self.tune_by, LINKING_SCORES)

    def __call__(self, nlp: Language) -> Language:
        # What was scored is saved: it is fitted once.
        return self.calibrate_and_score(nlp, rough=None)[0]

    def calibrate_and_score(
        self, nlp: Language, rough: bool | None = False
    ) -> tuple[Language, dict[str, Any]]:
        """Calibrate as for saving, and score on held-out documents.

        rough: Whether to fit on halves in place of fifths, and to try fewer thresholds. None for
            what was fitted last where nothing has changed since, else fifths.
        RETURNS: The pipeline, and the scores of its first linker; none where the dev set can't be
            divided.
        """
        linkers = linkers_of(nlp)
        state = _state_of(nlp)
        is_same = self._last.get("state") == state
        if rough is None:
            rough = is_same and self._last["rough"]
        if not is_same or self._last["rough"] != rough:
            self._last.clear()
            docs = list(read_docs(ensure_path(self.path), nlp.vocab))
            fitted = {}
            for name, linker in linkers.items():
                if self.tune_by:
                    linker.threshold = self._priors.setdefault(name, linker.threshold)
                # Read where documents are held out alone.
                training_docs = (
                    read_docs(ensure_path(self.train), nlp.vocab) if self.train else ()
                )
                fitted[name] = fit_and_score(
                    linker, docs, self.tune_by, rough, training_docs
                )
            self._last.update(state=state, rough=rough, fitted=fitted)
        for name, linker in linkers.items():
            install(nlp, name, linker, self._last["fitted"][name][0])
        return nlp, next((scores for _, scores in self._last["fitted"].values()), {})


def _state_of(nlp: Language) -> dict[str, Any]:
    state = {}
    for name, linker in linkers_of(nlp).items():
        linker.encoder.end_training()
        store = linker.datastore
        state[name] = (
            linker.encoder.fingerprint,
            store.revision,
            store.only is not None,
        )
    return state


def fit_and_score(
    linker: ArboLinker,
    docs: Sequence[Doc],
    tune_by: str,
    rough: bool = False,
    training_docs: Iterable[Doc] = (),
) -> tuple[Fit, dict[str, Any]]:
    """Fit on documents, and score each part of them with a linker fitted on the others.

    docs: Annotated documents that the linker was not trained on.
    tune_by: The score that the threshold is chosen by, see ``cautious_row``; "" for the present
        threshold.
    rough: As in ``Calibrate.calibrate_and_score``.
    training_docs: Those that the linker was not trained on are fitted on too.
    RETURNS: What fits all documents, and the scores with it, with their standard errors at
        ``ERRORS``. Where there are fewer than two documents with annotated mentions, the present
        threshold and no scores.
    """
    docs = annotated_docs(linker, docs)
    stages = linker.caching_stages()
    # The curves that a linker begins with are those of an encoder without training.
    folds = HALVES if rough else FOLDS
    thresholds = THRESHOLDS[::EVERY] if rough else THRESHOLDS
    linker.refresh()
    held_out = linker.trainer.held_out
    held_out_docs = [
        doc
        for doc in (training_docs if held_out.documents else ())
        if text_fingerprint(doc.text) in held_out.documents
    ]
    keys = held_out.keys
    with without_exemplars(linker, keys) if keys else nullcontext():
        fit = fit_held_out(
            linker,
            [*docs, *annotated_docs(linker, held_out_docs)],
            folds,
            tune_by,
            stages,
            from_scratch=True,
            thresholds=thresholds,
        )
    if not docs or not fit.without:
        return fit.whole, {}
    results = []
    # The documents of dev come first, so they are divided as they are by themselves.
    for (_, fold), fold_fit in zip(divided(docs, len(fit.without)), fit.without):
        results += linked_outcomes(
            linker,
            fold_fit.within(stages),
            unlinked_examples(fold),
            fit.whole.threshold,
        )
    errors = standard_errors(results, seen_by(linker))
    return fit.whole, {**scores_of(linker, results), ERRORS: errors}
