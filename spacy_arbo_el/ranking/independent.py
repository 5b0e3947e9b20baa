"""Each mention on its own."""

from dataclasses import dataclass

import numpy as np
from spacy.util import registry

from ..base.calibration import Calibration
from ..base.settings import check_count
from .decisions import Decisions, Paths, Step, first_candidates, start_of_path
from .ranking import RankedMentions


@registry.misc("spacy-arbo-el.Independent.v1")
@dataclass(frozen=True)
class Independent:
    """Links each mention to its first candidate ("Independent" in the arborescence paper, §A.3).

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

        def path(mention: int) -> list[Step]:
            if not linked[mention]:
                return []
            last = Step("mention", mention, float(logits[mention]))
            return [*start_of_path(int(first[mention]), int(exemplars[mention])), last]

        logits_or_none = np.where(linked, logits, np.float32(-np.inf))
        return Decisions(entities, logits_or_none, Paths(path, len(linked)))
