"""Outcomes on held-out documents, for several inference procedures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from spacy.language import Language
from spacy.training import Example

from ..base.errors import ArboError, Errors
from ..evaluation.outcomes import Outcome
from ..evaluation.report import CONFIGURED, linked_outcomes
from ..linker import find_linker
from ..linking.stages import LinkingStages
from ..ranking.decisions import Independent, Inference
from ..ranking.ranking import BestEvidence, Reranker
from .calibrate import divided, fit_in_parts
from .thresholds import LINKING_SCORES, cautious_row, check_score, sweep_linking

# From the stages of a linker to variants of them, by name.
Variants = Callable[[LinkingStages], Mapping[str, LinkingStages]]


def with_inference(stages: LinkingStages, inference: Inference) -> LinkingStages:
    """The stages with another inference procedure.

    A procedure without exemplars ranks entities by their texts alone (``BestEvidence``).
    """
    reranker = stages.reranker if inference.n_exemplars else BestEvidence()
    return replace(stages, inference=inference, reranker=reranker)


def inference_outcomes(
    nlp: Language, examples: Sequence[Example], folds: int = 0, tune_by: str = ""
) -> dict[str, list[Outcome]]:
    """Outcomes on gold mentions for several inference procedures.

    ``ROWS`` says what they are. There is a row for each of the ``variants`` of the reranker too.

    examples: Only the linker of the pipeline is run on them.
    folds: As in ``outcomes_of_stages``.
    tune_by: As in ``outcomes_of_stages``.
    """
    return outcomes_of_stages(nlp, examples, _inferences, folds=folds, tune_by=tune_by)


def _inferences(stages: LinkingStages) -> dict[str, LinkingStages]:
    """The rows of ``ROWS``, and those of the variants that a reranker has."""
    rows = {
        "names alone": with_inference(stages, Independent(n_exemplars=0)),
        "without the graph": with_inference(stages, Independent(n_exemplars=8)),
    }
    if hasattr(stages.reranker, "variants"):
        variants: dict[str, Reranker] = stages.reranker.variants()
        rows.update({name: replace(stages, reranker=one) for name, one in variants.items()})
    return {**rows, CONFIGURED: stages}


def outcomes_of_stages(
    nlp: Language,
    examples: Sequence[Example],
    variants: Variants,
    *,
    folds: int = 0,
    tune_by: str = "",
) -> dict[str, list[Outcome]]:
    """Outcomes on gold mentions for several variants of stages.

    examples: Only the linker of the pipeline is run on them.
    variants: From the linker's calibrated stages to the stages to compare, by name.
    folds: Split the examples into so many parts; calibrate on all but one and score that one, in
        turn. 0 uses the present calibration. If it was fitted on the same examples, the scores are
        too high.
    tune_by: With folds, choose the threshold of each variant on the other parts too, by this score:
        one of ``LINKING_SCORES``. Otherwise it is the linker's own.
    """
    if folds < 0 or folds == 1:
        raise ArboError(Errors.E834.format(value=folds))
    if tune_by:
        check_score(tune_by, LINKING_SCORES)
        if folds < 2:
            raise ArboError(Errors.E831)
    linker = find_linker(nlp)
    results: dict[str, list[Outcome]] = {}
    keeping = linker.keeping_stages()
    nothing: list[Example] = []
    parts, fits = [(nothing, list(examples))], [keeping]
    if folds:
        references = [example.reference for example in examples]
        _, fitted = fit_in_parts(linker, references, folds, stages=keeping)
        parts, fits = list(divided(examples, folds)), [one.within(keeping) for one in fitted]
    for (rest, part), stages in zip(parts, fits):
        others = [example.reference for example in rest]
        for name, variant in variants(stages).items():
            threshold = linker.threshold
            if tune_by:
                sweep = sweep_linking(linker, others, stages=variant)
                row = cautious_row([sweep], tune_by, linker.threshold)
                threshold = sweep.rows[row]["threshold"]
            found = linked_outcomes(linker, variant, part, threshold)
            results.setdefault(name, []).extend(found)
    return results
