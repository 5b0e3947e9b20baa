"""Outcomes on gold mentions for several inference procedures of one linker."""

from collections.abc import Sequence
from dataclasses import replace

from spacy.language import Language
from spacy.training import Example

from ..linker import find_linker
from ..linking.stages import LinkingStages
from ..ranking.decisions import Independent, Inference
from ..ranking.ranking import BestEvidence, Reranker
from .outcomes import Outcome
from .report import CONFIGURED, linked_outcomes


def with_inference(stages: LinkingStages, inference: Inference) -> LinkingStages:
    """The stages with another inference procedure.

    A procedure without exemplars ranks entities by their texts alone (``BestEvidence``).
    """
    reranker = stages.reranker if inference.n_exemplars else BestEvidence()
    return replace(stages, inference=inference, reranker=reranker)


def inferences(stages: LinkingStages) -> dict[str, LinkingStages]:
    """The rows of ``ROWS``, and those of the variants that a reranker has."""
    rows = {
        "names alone": with_inference(stages, Independent(n_exemplars=0)),
        "without the graph": with_inference(stages, Independent(n_exemplars=8)),
    }
    if hasattr(stages.reranker, "variants"):
        variants: dict[str, Reranker] = stages.reranker.variants()
        rows.update({name: replace(stages, reranker=one) for name, one in variants.items()})
    return {**rows, CONFIGURED: stages}


def inference_outcomes(nlp: Language, examples: Sequence[Example]) -> dict[str, list[Outcome]]:
    """Outcomes on gold mentions for several inference procedures.

    ``ROWS`` says what they are. There is a row for each of the ``variants`` of the reranker too.

    examples: Only the linker of the pipeline is run on them.
    """
    linker = find_linker(nlp)
    return {
        name: linked_outcomes(linker, stages, examples, linker.threshold)
        for name, stages in inferences(linker.keeping_stages()).items()
    }
