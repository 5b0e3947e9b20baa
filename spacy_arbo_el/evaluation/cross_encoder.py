"""Rows of scores with and without a cross-encoder."""

from dataclasses import replace
from typing import Dict

from ..inference.consensus import Consensus
from ..inference.independent import Independent
from ..linking.stages import LinkingStages
from ..reranking.best_evidence import BestEvidence
from ..reranking.cross_encoder import CrossEncoder
from ..reranking.cross_encoder_fit import CrossEncoderFit


def rows_of_cross_encoder(stages: LinkingStages) -> Dict[str, LinkingStages]:
    """Stages to compare a trained cross-encoder with. None without one.

    "names alone, cross-encoder" has the nearest entities by names, in the order of the scores.
    "without the cross-encoder" and "by the scores, not in the ranker" are the linker's own
    procedure otherwise.
    """
    reranker = stages.reranker
    if not isinstance(reranker, CrossEncoder) or reranker.scorer is None:
        return {}
    alone = replace(reranker, as_feature=False)
    names = replace(alone, ranker=BestEvidence(), fitted=CrossEncoderFit())
    without = replace(stages, reranker=reranker.ranker)
    consensus = Consensus(stages.inference.n_exemplars)
    return {
        "names alone, cross-encoder": replace(stages, inference=Independent(0), reranker=names),
        "without the cross-encoder": without,
        "by the scores, not in the ranker": replace(stages, reranker=alone),
        "consensus": replace(stages, inference=consensus),
        "consensus, without the cross-encoder": replace(without, inference=consensus),
    }
