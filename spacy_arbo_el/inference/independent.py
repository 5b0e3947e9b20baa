"""Each mention for itself."""

import numpy as np
from spacy.util import registry

from ..retrieval.neighbours import Neighbours
from .calibration import Calibration
from .decisions import Decisions, Inference, Paths, Step
from .edges import EntityEdges, entity_edges


class Independent:
    """The nearest entity, or the entity of the nearest exemplar where that is likelier."""

    mentions = 0

    def __init__(self, exemplars: int):
        self.exemplars = exemplars

    def __call__(
        self, neighbours: Neighbours, calibration: Calibration, least_logit: float
    ) -> Decisions:
        count = len(neighbours)
        none = np.full((count, 1), -1, dtype=np.int64)
        never = np.full((count, 1), -np.inf, dtype=np.float32)
        tied = entity_edges(neighbours, calibration)
        by_text = np.hstack([tied.entity, none])[:, 0]
        by_exemplar = np.hstack([tied.exemplar_entity, none])[:, 0]
        text_logit = np.where(by_text >= 0, np.hstack([tied.entity_logit, never])[:, 0], -np.inf)
        exemplar_logit = np.hstack([tied.exemplar_logit, never])[:, 0]
        exemplar_logit = np.where(by_exemplar >= 0, exemplar_logit, -np.inf)
        use_exemplar = exemplar_logit > text_logit
        logit = np.where(use_exemplar, exemplar_logit, text_logit)
        entity = np.where(use_exemplar, by_exemplar, by_text)
        linked = (entity >= 0) & (logit >= least_logit)
        entity = np.where(linked, entity, -1)

        def path(m: int):
            return _path(tied, m, int(entity[m]), bool(use_exemplar[m]), float(logit[m]))

        linked_logit = np.where(linked, logit, -np.inf).astype(np.float32)
        return Decisions(entity, linked_logit, Paths(path, count))


def _path(tied: EntityEdges, mention: int, entity: int, by_exemplar: bool, logit: float):
    if entity < 0:
        return []
    start = [Step("entity", entity, np.inf)]
    if by_exemplar:
        start.append(Step("exemplar", int(tied.exemplar[mention, 0]), np.inf))
    return [*start, Step("mention", mention, logit)]


@registry.misc("spacy-arbo-el.Independent.v1")
def independent(exemplars: int = 0) -> Inference:
    """Link each mention on its own ("Independent" in the arborescence paper, §A.3).

    exemplars: 0 to look at entities only; otherwise the nearest exemplar counts too. A ranker
        looks at as many as are given here.
    """
    return Independent(exemplars)
