"""NIL where two candidates fit equally well."""

from dataclasses import dataclass, replace

import numpy as np
from spacy.util import registry

from ..calibration.calibration import Calibration
from ..calibration.logistic import probability
from ..mentions.batch import MentionBatch
from ..reranking.protocol import Ranking
from ..retrieval.neighbours import Neighbours
from ..settings import check_share
from .decisions import Decisions, Inference


@registry.misc("spacy-arbo-el.Margin.v1")
@dataclass(frozen=True)
class Margin:
    """Takes the candidates away from mentions whose first two are nearly equally probable.

    Such a mention can still be linked by way of other mentions of its document. Use it where a
    wrong link is worse than none, or where many entities share their names::

        [components.arbo_linker.inference]
        @misc = "spacy-arbo-el.Margin.v1"
        min_difference = 0.1

        [components.arbo_linker.inference.inference]
        @misc = "spacy-arbo-el.Clustering.v1"

    inference: The procedure that links the mentions.
    min_difference: The difference in probability that the first two candidates must have, 0 to 1.
    """

    inference: Inference
    min_difference: float = 0.1

    def __post_init__(self) -> None:
        check_share("inference.min_difference", self.min_difference)

    @property
    def n_exemplars(self) -> int:
        return self.inference.n_exemplars

    @property
    def n_mentions(self) -> int:
        return self.inference.n_mentions

    def __call__(
        self,
        batch: MentionBatch,
        neighbours: Neighbours,
        ranking: Ranking,
        calibration: Calibration,
        min_logit: float,
    ) -> Decisions:
        unclear = self.unclear(ranking)
        if unclear.any():
            clear = ~unclear[:, None]
            ranking = Ranking(
                ranking.candidates.where(clear), np.where(clear, ranking.exemplars, -1)
            )
            neighbours = neighbours.with_exemplars(
                neighbours.exemplars.where(clear),
                np.where(clear, neighbours.exemplar_entities, -1),
            )
            neighbours = replace(neighbours, entities=neighbours.entities.where(clear))
        return self.inference(batch, neighbours, ranking, calibration, min_logit)

    def unclear(self, ranking: Ranking) -> np.ndarray:
        """(m,) bool, whether the second candidate is nearly as probable as the first."""
        two = ranking.candidates.resized(2)
        first, second = probability(two.scores).astype(np.float64).T
        return (first - second < self.min_difference) & two.valid[:, 1]
