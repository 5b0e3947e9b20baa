"""Ranking by the best evidence. A text of the entity, or one of its exemplars."""

from dataclasses import dataclass

import numpy as np
from spacy.util import registry

from ..arrays import TopK
from ..calibration import Calibration
from ..mentions.record import MentionBatch
from ..retrieval.neighbours import Neighbours
from .protocol import Ranking, RankingContext


@registry.misc("spacy-arbo-el.BestEvidence.v1")
@dataclass(frozen=True)
class BestEvidence:
    """Ranks candidates by their nearest text or exemplar. The larger log-odds count.

    Use it where candidates should be ranked by similarity alone. It has nothing to learn::

        [components.arbo_linker.reranker]
        @misc = "spacy-arbo-el.BestEvidence.v1"
    """

    def __call__(
        self, batch: MentionBatch, neighbours: Neighbours, context: RankingContext
    ) -> Ranking:
        return rank_by_best_evidence(neighbours, context.calibration, context.n_candidates)

    def fit(
        self,
        batch: MentionBatch,
        neighbours: Neighbours,
        gold: np.ndarray,
        context: RankingContext,
    ) -> "BestEvidence":
        return self

    def to_bytes(self) -> bytes:
        return b""

    def from_bytes(self, data: bytes) -> "BestEvidence":
        return self


def rank_by_best_evidence(
    neighbours: Neighbours, calibration: Calibration, n_candidates: int
) -> Ranking:
    """Rank the entities of texts and of exemplars. A text goes before an exemplar where equal."""
    texts, exemplars = neighbours.entities, neighbours.exemplars
    entities = np.concatenate([texts.ids, neighbours.exemplar_entities], axis=1)
    logits = [
        calibration.logits("entity", texts.scores),
        calibration.logits("exemplar", exemplars.scores),
    ]
    rows = np.concatenate([np.full_like(texts.ids, -1), exemplars.ids], axis=1)
    return Ranking.from_scored(entities, np.concatenate(logits, axis=1), rows, n_candidates)


def log_odds_by_vectors(neighbours: Neighbours, calibration: Calibration) -> TopK:
    """Log-odds of all neighbours, by nearest text or exemplar."""
    width = neighbours.entities.width + neighbours.exemplars.width
    return rank_by_best_evidence(neighbours, calibration, width).candidates
