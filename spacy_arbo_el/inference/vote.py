"""The nearest exemplars vote."""

from typing import List, Optional

import numpy as np
from spacy.util import registry

from ..errors import Errors
from ..retrieval.neighbours import Neighbours
from .calibration import Calibration
from .decisions import Decisions, Inference, Paths, Step
from .edges import CERTAIN

# Mentions whose votes are counted at a time, to bound memory.
BLOCK = 4096


class ExemplarVote:
    """Each mention for itself: the entity that most of its nearest exemplars are of.

    The link's chance is that of the entity's nearest exemplar.
    """

    mentions = 0

    def __init__(self, exemplars: int, temperature: Optional[float]):
        if temperature is not None and not temperature > 0:
            raise ValueError(Errors.E404.format(value=temperature))
        self.exemplars, self.temperature = exemplars, temperature

    def __call__(
        self, neighbours: Neighbours, calibration: Calibration, least_logit: float
    ) -> Decisions:
        count = len(neighbours)
        owners, similarity = neighbours.exemplar_entity, neighbours.exemplar_similarity
        none = np.full((count, 1), -1, dtype=np.int64)
        owners = np.hstack([owners, none])
        similarity = np.hstack([similarity, np.full((count, 1), -np.inf, dtype=np.float32)])
        parts = [slice(start, start + BLOCK) for start in range(0, count, BLOCK)]
        blocks = [self.votes(owners[part], similarity[part]) for part in parts]
        votes = np.concatenate(blocks) if blocks else np.zeros(owners.shape)
        if neighbours.decided is not None:
            votes[neighbours.decided, 0] = np.inf
        # Of equal ones the first, which is that of the nearest exemplar.
        chosen = votes.argmax(axis=1)[:, None]
        entity = np.take_along_axis(owners, chosen, axis=1)[:, 0]
        nearest = np.take_along_axis(similarity, chosen, axis=1)[:, 0]
        logit = np.where(entity >= 0, calibration.logits("exemplar", nearest), -np.inf)
        if neighbours.decided is not None:
            logit = np.where(neighbours.decided, CERTAIN, logit)
        linked = (entity >= 0) & (logit >= least_logit)
        entity = np.where(linked, entity, -1)

        def path(mention: int) -> List[Step]:
            if entity[mention] < 0:
                return []
            row = int(neighbours.exemplars[mention, chosen[mention, 0]])
            start = Step("entity", int(entity[mention]), np.inf)
            through = Step("exemplar", row, np.inf)
            return [start, through, Step("mention", mention, float(logit[mention]))]

        logit = np.where(linked, logit, -np.inf).astype(np.float32)
        return Decisions(entity, logit, Paths(path, count))

    def votes(self, owners: np.ndarray, similarity: np.ndarray) -> np.ndarray:
        """The votes for the entity of each exemplar: (m, k) float64, -inf for none.

        They stand with its nearest exemplar. owners: (m, k) int64, -1 for none.
        """
        there = owners >= 0
        weight = there.astype(np.float64)
        if self.temperature is not None:
            known = np.where(there, similarity, 0.0)
            best = np.where(there, similarity, -np.inf).max(axis=1, keepdims=True)
            below = known - np.where(np.isfinite(best), best, 0.0)
            weight = np.where(there, np.exp(below / self.temperature), 0.0)
        same = (owners[:, :, None] == owners[:, None, :]) & there[:, None, :]
        votes = (same * weight[:, None, :]).sum(axis=2)
        earlier = np.tril(np.ones((owners.shape[1],) * 2, dtype=bool), -1)
        return np.where(there & ~(same & earlier).any(axis=2), votes, -np.inf)


@registry.misc("spacy-arbo-el.ExemplarVote.v1")
def exemplar_vote(exemplars: int = 15, temperature: Optional[float] = None) -> Inference:
    """Link each mention to the entity that most of its nearest exemplars are of (BioCoM, §2).

    exemplars: How many vote; the paper found 15 best.
    temperature: Votes weigh exp(similarity / temperature); None for one each, as in the paper.
    """
    return ExemplarVote(exemplars, temperature)
