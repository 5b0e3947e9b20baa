"""Nothing fits where two fit equally well: NIL by the margin between first and second."""

from dataclasses import replace

import numpy as np
from spacy.util import registry

from ..retrieval.neighbours import Neighbours
from .calibration import Calibration, probability
from .decisions import Decisions, Inference, rank_candidates


class Margin:
    """Takes away the entities of mentions that can't tell two of them apart.

    Such a mention may still be carried to an entity by other mentions of the document.
    """

    def __init__(self, inference: Inference, least: float):
        self.inference, self.least = inference, least
        self.exemplars, self.mentions = inference.exemplars, inference.mentions

    def __call__(
        self, neighbours: Neighbours, calibration: Calibration, least_logit: float
    ) -> Decisions:
        unclear = self.unclear(neighbours, calibration)
        if unclear.any():
            neighbours = without_entities(neighbours, unclear)
        return self.inference(neighbours, calibration, least_logit)

    def unclear(self, neighbours: Neighbours, calibration: Calibration) -> np.ndarray:
        """(m,) bool, whether the second candidate's chance is too near to the first's."""
        entities, logits = rank_candidates(neighbours, calibration, 2)
        chances = np.where(entities >= 0, probability(logits), 0.0)
        first, second = np.hstack([chances, np.zeros((len(chances), 2))])[:, :2].T
        unclear = (first - second < self.least) & (first > 0)
        return unclear if neighbours.decided is None else unclear & ~neighbours.decided


def without_entities(neighbours: Neighbours, mentions: np.ndarray) -> Neighbours:
    """Neighbours in which some mentions (m,) bool have no entities and no exemplars."""
    rows = mentions[:, None]
    candidates = neighbours.candidates
    if candidates is not None:
        candidates = candidates._replace(entities=np.where(rows, -1, candidates.entities))
    return replace(
        neighbours,
        entities=np.where(rows, -1, neighbours.entities),
        entity_similarity=np.where(rows, np.float32(-np.inf), neighbours.entity_similarity),
        exemplars=np.where(rows, -1, neighbours.exemplars),
        exemplar_entity=np.where(rows, -1, neighbours.exemplar_entity),
        exemplar_similarity=np.where(rows, np.float32(-np.inf), neighbours.exemplar_similarity),
        candidates=candidates,
    )


@registry.misc("spacy-arbo-el.Margin.v1")
def margin(inference: Inference, least: float = 0.1) -> Inference:
    """NIL where the first two candidates of a mention are nearly as likely.

    inference: What links the others. least: The difference in chance that there must be, 0 to 1.
    """
    return Margin(inference, least)
