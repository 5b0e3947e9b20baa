"""Groups of similar mentions whose members share their evidence."""

from dataclasses import dataclass
from typing import List

import numpy as np
from spacy.util import registry

from ..calibration import Calibration, log_odds, probability, similarity_at
from ..graph.averages import average_joins
from ..graph.levels import labels_at
from ..reranking.protocol import RankedMentions, Ranking
from ..settings import check_count, check_share
from .decisions import MAX_CONSIDERED, Decisions, Paths, Step, start_of_path


@registry.misc("spacy-arbo-el.Consensus.v1")
@dataclass(frozen=True)
class Consensus:
    """Mixes candidate probabilities with those of similar mentions.

    Groups of mentions come from average linkage over the edges between mentions: groups join by
    the mean similarity of their members, so one similar pair does not join them. The probability
    of a candidate is mixed with its mean over the group, in which it counts as 0 for mentions that
    it is not a candidate of. A mention that has no neighbours decides alone.

    Use it where mentions of one entity repeat over many documents that are linked as one corpus::

        [components.arbo_linker.inference]
        @misc = "spacy-arbo-el.Consensus.v1"
        threshold = 0.5
        weight = 0.5

    n_exemplars: How many of the nearest exemplars are searched for each mention.
    n_mentions: With how many of the nearest mentions each mention is compared.
    threshold: The mean probability of being the same entity at which groups join, 0 to 1, by the
        curve "same_mention" of the calibration.
    weight: The weight of the group beside the mention itself, 0 to 1.
    """

    n_exemplars: int = 8
    n_mentions: int = 4
    threshold: float = 0.5
    weight: float = 0.5

    def __post_init__(self) -> None:
        check_count("inference.n_exemplars", self.n_exemplars)
        check_count("inference.n_mentions", self.n_mentions)
        check_share("inference.threshold", self.threshold)
        check_share("inference.weight", self.weight)

    def decide(
        self, ranked: RankedMentions, calibration: Calibration, min_logit: float
    ) -> Decisions:
        ranking = ranked.ranking.first(MAX_CONSIDERED)
        candidates, valid = ranking.candidates, ranking.candidates.valid
        count = len(ranking)
        # In double precision, since single has no probabilities that are nearly 1.
        own = np.where(valid, probability(candidates.scores.astype(np.float64)), 0.0)
        group = self.groups(ranked, calibration)
        shared = mean_over_group(group, candidates.ids, own)
        mixed = (1 - self.weight) * own + self.weight * shared
        alone = ~ranked.neighbours.mentions.valid.any(axis=1)
        mixed[alone] = own[alone]
        # A last column for mentions without candidates.
        mixed = np.hstack([np.where(valid, mixed, -1.0), np.full((count, 1), -1.0)])
        ids = np.hstack([candidates.ids, np.full((count, 1), -1, dtype=np.int64)])
        chosen, rows = mixed.argmax(axis=1), np.arange(count)
        entities, best = ids[rows, chosen], np.clip(mixed[rows, chosen], 1e-9, 1 - 1e-9)
        logits = np.where(entities >= 0, np.log(best / (1 - best)), -np.inf).astype(np.float32)
        entities = np.where(logits >= min_logit, entities, -1)
        paths = _GroupPaths(ranking, own, group, entities, logits)
        logits_or_none = np.where(entities >= 0, logits, -np.inf).astype(np.float32)
        return Decisions(entities, logits_or_none, Paths(paths.path, count))

    def groups(self, ranked: RankedMentions, calibration: Calibration) -> np.ndarray:
        """Group of each mention, by its first mention: (m,) int64."""
        count, neighbours = len(ranked.batch), ranked.neighbours
        valid = neighbours.mentions.valid
        if not valid.any():
            return np.arange(count)
        limit = -similarity_at(self.threshold, calibration.same_mention)
        source, target = neighbours.mentions.ids[valid], np.nonzero(valid)[0]
        euclidean = neighbours.metric != "ip"
        joins = average_joins(ranked.batch.encoded, source, target, limit, euclidean=euclidean)
        return labels_at(count, joins, np.array([limit], dtype=np.float32))[0].astype(np.int64)


def mean_over_group(
    group: np.ndarray, entities: np.ndarray, probabilities: np.ndarray
) -> np.ndarray:
    """Mean probability of candidates over a mention group: (m, c). float64.

    group: (m,) int64 from 0.
    entities: (m, c) int64, -1 for none.
    probabilities: (m, c), of the candidates.
    """
    valid = entities >= 0
    n_entities = int(entities.max(initial=0)) + 1
    pairs = (group[:, None] * n_entities + entities)[valid]
    _, number = np.unique(pairs, return_inverse=True)
    totals = np.bincount(number, weights=probabilities[valid])
    sizes = np.bincount(group)[group]
    means = np.zeros(entities.shape)
    means[valid] = totals[number] / np.repeat(sizes[:, None], entities.shape[1], axis=1)[valid]
    return means


class _GroupPaths:
    """Paths from entities to mentions.

    A mention whose own first candidate was chosen hangs under the entity. Others hang under the
    mention of the group that has the largest probability for it.
    """

    def __init__(
        self,
        ranking: Ranking,
        own: np.ndarray,
        group: np.ndarray,
        entities: np.ndarray,
        logits: np.ndarray,
    ):
        self._ranking, self._own = ranking, own
        self._entities, self._logits = entities, logits
        self._order = np.argsort(group, kind="stable")
        self._start = np.searchsorted(group[self._order], group, side="left")
        self._end = np.searchsorted(group[self._order], group, side="right")

    def path(self, mention: int) -> List[Step]:
        """Steps to a mention; none where it is not linked."""
        entity = int(self._entities[mention])
        if entity < 0:
            return []
        candidates = self._ranking.candidates.ids
        is_first = candidates[mention, :1].tolist() == [entity]
        carrier = mention if is_first else self._surest(mention, entity)
        column = int((candidates[carrier] == entity).argmax())
        steps = start_of_path(entity, int(self._ranking.exemplars[carrier, column]))
        if carrier != mention:
            value = float(np.clip(self._own[carrier, column], 1e-9, 1 - 1e-9))
            steps.append(Step("mention", carrier, log_odds(value)))
        return [*steps, Step("mention", mention, float(self._logits[mention]))]

    def _surest(self, mention: int, entity: int) -> int:
        """The group's mention with the largest probability for an entity."""
        members = self._order[self._start[mention] : self._end[mention]]
        same = self._ranking.candidates.ids[members] == entity
        return int(members[np.where(same, self._own[members], -1.0).max(axis=1).argmax()])
