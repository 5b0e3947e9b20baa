"""Each mention on its own."""

from dataclasses import dataclass
from typing import List, Tuple

import numpy as np
from spacy.util import registry

from ..arrays import TopK
from ..calibration.calibration import Calibration
from ..reranking.protocol import RankedMentions, Ranking
from ..settings import check_count
from .decisions import Decisions, Paths, Step


@registry.misc("spacy-arbo-el.Independent.v1")
@dataclass(frozen=True)
class Independent:
    """Links each mention to its first candidate. "Independent" in the arborescence paper, §A.3.

    Use it as a baseline, and where the mentions of a document say nothing about each other.
    ``Clustering.v1`` is the default::

        [components.arbo_linker.inference]
        @misc = "spacy-arbo-el.Independent.v1"
        n_exemplars = 8

    n_exemplars: How many of the nearest exemplars are searched for each mention. 0 to compare
        mentions with the texts of entities only.
    """

    n_exemplars: int = 0

    def __post_init__(self) -> None:
        check_count("inference.n_exemplars", self.n_exemplars)

    @property
    def n_mentions(self) -> int:
        return 0

    def decide(
        self, ranked: RankedMentions, calibration: Calibration, min_logit: float
    ) -> Decisions:
        first, logits, exemplars = first_candidates(ranked.ranking)
        linked = (first >= 0) & (logits >= min_logit)
        entities = np.where(linked, first, -1)

        def path(mention: int) -> List[Step]:
            if not linked[mention]:
                return []
            last = Step("mention", mention, float(logits[mention]))
            return [*start_of_path(int(first[mention]), int(exemplars[mention])), last]

        logits_or_none = np.where(linked, logits, np.float32(-np.inf))
        return Decisions(entities, logits_or_none, Paths(path, len(linked)))


def first_candidates(ranking: Ranking) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first candidate of each of m mentions.

    RETURNS: Entities (m,) int64, -1 for none; log-odds (m,) float32, -inf for none; exemplars
        (m,) int64, -1 where a text of the entity speaks for it.
    """
    candidates = ranking.candidates.resized(1)
    exemplars = TopK(ranking.exemplars, ranking.candidates.scores).resized(1)
    return candidates.ids[:, 0], candidates.scores[:, 0], exemplars.ids[:, 0]


def start_of_path(entity: int, exemplar: int) -> List[Step]:
    """Begin a path at an entity, via its exemplar. -1 for no exemplar."""
    steps = [Step("entity", entity, np.inf)]
    return steps if exemplar < 0 else [*steps, Step("exemplar", exemplar, np.inf)]
