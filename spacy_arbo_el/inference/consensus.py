"""Mentions that are near each other decide together."""

from typing import List

import numpy as np
from spacy.util import registry

from ..errors import Errors
from ..graph.averages import average_joins
from ..graph.levels import labels_at
from ..retrieval.neighbours import Neighbours
from .calibration import Calibration, log_odds, probability, similarity_of
from .decisions import LOOKED_AT, Decisions, Inference, Paths, Step, rank_candidates
from .edges import CERTAIN


class Consensus:
    """Mentions in groups, each mention by what it and its group say of its candidates.

    Groups come from average linkage over the edges between mentions: what joins two groups is how
    near their members are on the whole, so that no chain of single mentions does. A candidate's
    chance is mixed with the mean of its chances over the group, 0 where it is not a candidate.
    """

    def __init__(self, exemplars: int, mentions: int, threshold: float, weight: float):
        self.exemplars, self.mentions = exemplars, mentions
        for value in (threshold, weight):
            if not 0.0 <= value <= 1.0:
                raise ValueError(Errors.E403.format(threshold=threshold, weight=weight))
        self.threshold, self.weight = threshold, weight

    def __call__(
        self, neighbours: Neighbours, calibration: Calibration, least_logit: float
    ) -> Decisions:
        entities, logits = rank_candidates(neighbours, calibration, LOOKED_AT)
        count = len(entities)
        there = entities >= 0
        # In double precision, which has chances that are nearly 1.
        chance = np.where(there, probability(logits.astype(np.float64)), 0.0)
        if neighbours.decided is not None:
            chance[neighbours.decided, :1] = probability(CERTAIN)
        group = self.groups(neighbours, calibration)
        mixed = (1 - self.weight) * chance + self.weight * support(group, entities, chance)
        if neighbours.corrected is not None:
            # What a person has spoken of stands by itself.
            mixed[neighbours.corrected] = chance[neighbours.corrected]
        mixed = np.hstack([np.where(there, mixed, -1.0), np.full((count, 1), -1.0)])
        place = mixed.argmax(axis=1)
        padded = np.hstack([entities, np.full((count, 1), -1, dtype=np.int64)])
        rows = np.arange(count)
        entity, best = padded[rows, place], np.clip(mixed[rows, place], 1e-9, 1 - 1e-9)
        logit = np.where(entity >= 0, np.log(best / (1 - best)), -np.inf).astype(np.float32)
        entity = np.where(logit >= least_logit, entity, -1)
        paths = _Carried(neighbours, calibration, group, entity, logit, entities, chance)
        return Decisions(
            entity,
            np.where(entity >= 0, logit, -np.inf).astype(np.float32),
            Paths(paths.path, count),
        )

    def groups(self, neighbours: Neighbours, calibration: Calibration) -> np.ndarray:
        """The group of each mention, by its first one: (m,) int64."""
        count = len(neighbours)
        vectors = neighbours.vectors
        if vectors is None or not (neighbours.mentions >= 0).any():
            return np.arange(count)
        limit = -similarity_of(self.threshold, calibration.near)
        target, column = np.nonzero(neighbours.mentions >= 0)
        source = neighbours.mentions[target, column]
        joins = average_joins(vectors, source, target, limit, euclidean=neighbours.euclidean)
        return labels_at(count, joins, np.array([limit], dtype=np.float32))[0].astype(np.int64)


def support(group: np.ndarray, entities: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """The mean chance of each candidate over the mentions of a group: (m, c) float64.

    group: (m,) int64 from 0. entities: (m, c) int64, -1 for none. chance: (m, c).
    """
    there = entities >= 0
    most = int(entities.max(initial=0)) + 1
    keys = (group[:, None] * most + entities)[there]
    _, number = np.unique(keys, return_inverse=True)
    total = np.bincount(number, weights=chance[there])
    found = np.zeros(entities.shape)
    sizes = np.bincount(group)[group]
    found[there] = total[number] / np.repeat(sizes[:, None], entities.shape[1], axis=1)[there]
    return found


class _Carried:
    """Paths: straight from the entity, or by way of the mention of the group that is surest."""

    def __init__(self, neighbours, calibration, group, entity, logit, entities, chance):
        self.neighbours, self.calibration = neighbours, calibration
        self.entity, self.logit = entity, logit
        self.entities, self.chance = entities, chance
        self.order = np.argsort(group, kind="stable")
        self.start = np.searchsorted(group[self.order], group, side="left")
        self.end = np.searchsorted(group[self.order], group, side="right")

    def path(self, mention: int) -> List[Step]:
        entity = int(self.entity[mention])
        if entity < 0:
            return []
        own = self.entities[mention, :1].tolist()
        carrier = mention if own == [entity] else self._surest(mention, entity)
        steps = [Step("entity", entity, np.inf), *self._exemplar(carrier, entity)]
        if carrier != mention:
            at = self.entities[carrier] == entity
            chance = float(np.clip(self.chance[carrier][at][0], 1e-9, 1 - 1e-9))
            steps.append(Step("mention", carrier, log_odds(chance)))
        return [*steps, Step("mention", mention, float(self.logit[mention]))]

    def _surest(self, mention: int, entity: int) -> int:
        members = self.order[self.start[mention] : self.end[mention]]
        same = self.entities[members] == entity
        return int(members[np.where(same, self.chance[members], -1.0).max(axis=1).argmax()])

    def _exemplar(self, mention: int, entity: int) -> List[Step]:
        """The entity's nearest exemplar, where it speaks louder for the entity than its texts."""
        near = self.neighbours
        by_text = near.entity_similarity[mention][near.entities[mention] == entity]
        of_it = near.exemplar_entity[mention] == entity
        by_exemplar = near.exemplar_similarity[mention][of_it]
        if not len(by_exemplar):
            return []
        text = self.calibration.logits("entity", by_text).max(initial=-np.inf)
        if self.calibration.logits("exemplar", by_exemplar).max() <= text:
            return []
        row = int(near.exemplars[mention][of_it][by_exemplar.argmax()])
        return [Step("exemplar", row, np.inf)]


@registry.misc("spacy-arbo-el.Consensus.v1")
def consensus(
    exemplars: int = 8, mentions: int = 4, threshold: float = 0.5, weight: float = 0.5
) -> Inference:
    """Let near mentions decide together, of one document or (``link_corpus``) of all.

    exemplars: How many of the nearest count. mentions: How many of the nearest mentions each is
        compared with. threshold: The chance of being the same, by the curve "near" of the
        calibration, that groups must have on average to join. weight: What the group counts for,
        0 to 1, beside the mention itself.
    """
    return Consensus(exemplars, mentions, threshold, weight)
