"""The evaluations in a training. The pipeline is scored as it would be saved, with warnings."""

import math
import warnings
from typing import Any, Callable, Dict, Iterable

from spacy.language import Language
from spacy.training import Example
from spacy.training.loop import create_evaluation_callback

from ..errors import Warnings
from .checkpoint import Evaluation
from .memory import release_memory

# What a model card says, of the scores too.
DESCRIPTION = (
    "Links mentions to entities of a knowledge base, and groups the others (spacy_arbo_el)."
)
NOTES = (
    "Scores are of the dev documents of the training. Probabilities and the ranker were fitted on "
    "other parts of these than the one that is scored. arbo_acc is the share of mentions whose "
    "link, or NIL, is correct; arbo_balanced_acc is its mean over entities with and without a "
    "training mention; arbo_recall_at_64 is the share of mentions whose entity is a candidate."
)


def describe(nlp: Language) -> None:
    """Fill a pipeline's empty description and notes.

    ``spacy package`` makes a model card of them, with the scores of the last evaluation.
    """
    meta = nlp.meta
    meta["description"] = meta.get("description") or DESCRIPTION
    meta["notes"] = meta.get("notes") or NOTES


def create_evaluation(
    nlp: Language, corpus: Callable[[Language], Iterable[Example]], settings: Dict[str, Any]
) -> Callable[[], Evaluation]:
    """The function that evaluates a pipeline in training.

    A callback that runs before the pipeline is saved also runs before each evaluation, if it has a
    method ``calibrate_and_score`` as ``Calibrate`` does. Its scores take the place of those with
    the same names: they are of documents that nothing was fitted on.

    corpus: Gives the examples to evaluate on.
    settings: The training settings, resolved.
    """
    callback, weights = settings["before_to_disk"], settings["score_weights"]

    def calibrate_and_evaluate() -> Evaluation:
        release_memory()
        as_saved, held_out = nlp, {}
        if hasattr(callback, "calibrate_and_score"):
            as_saved, held_out = callback.calibrate_and_score(nlp)
        score, scores = create_evaluation_callback(as_saved, corpus, weights)()
        if held_out:
            known = {name: value for name, value in held_out.items() if value is not None}
            scores.update({name: value for name, value in known.items() if name in scores})
            score = sum(
                scores.get(name, 0.0) * weight for name, weight in weights.items() if weight
            )
        release_memory()
        _check_scores(score, scores, [name for name, weight in weights.items() if weight])
        return score, scores

    return calibrate_and_evaluate


def _check_scores(score: float, scores: Dict[str, Any], names: Iterable[str]) -> None:
    """Warn where no model can be the best, or any."""
    names = list(names)
    if names and not any(name in scores for name in names):
        warnings.warn(Warnings.W520.format(names=", ".join(names)))
    elif math.isnan(score):
        warnings.warn(Warnings.W521.format(names=", ".join(names)))
