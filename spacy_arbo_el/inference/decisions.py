"""What an inference procedure decides, and the ranking of candidates that all of them share."""

from dataclasses import dataclass, replace
from typing import Callable, List, NamedTuple, Protocol, Sequence

import numpy as np

from ..retrieval.entities import fill, first_of_each
from ..retrieval.neighbours import Neighbours
from .calibration import Calibration

# Entities of a mention that decide its link; where a whole corpus is linked, no more are kept.
LOOKED_AT = 4


class Step(NamedTuple):
    """One stop on the way from an entity to a mention.

    kind: "entity", "exemplar" or "mention".
    ref: Position in the KB, row in the exemplar store, or number of the mention in the batch.
    logit: Log-odds of the edge that leads here; infinite for the start of the path and for an
        exemplar under its own entity.
    """

    kind: str
    ref: int
    logit: float


@dataclass(frozen=True)
class Decisions:
    """The links of ``m`` mentions.

    entity: (m,) int64 position in the KB, -1 for NIL.
    logit: (m,) float32 log-odds of the link: those of the weakest edge on the path that
        carries it; -inf for NIL.
    paths: m lists of steps, from the entity to the mention; empty for NIL.
    """

    entity: np.ndarray
    logit: np.ndarray
    paths: Sequence[List[Step]]


class Paths(Sequence[List[Step]]):
    """Paths that are put together when they are asked for: few of a large corpus are at a time.

    trace: Function from the number of a mention to its path.
    """

    def __init__(self, trace: Callable[[int], List[Step]], count: int):
        self._trace, self._count = trace, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, mention):
        if isinstance(mention, slice):
            return [self._trace(i) for i in range(*mention.indices(self._count))]
        return self._trace(range(self._count)[mention])


class Inference(Protocol):
    """Neighbours -> links. ``exemplars`` and ``mentions`` say how many neighbours it looks at.

    Of a mention's entities and candidates it looks at the ``LOOKED_AT`` likeliest at most.
    """

    exemplars: int
    mentions: int

    def __call__(
        self, neighbours: Neighbours, calibration: Calibration, least_logit: float
    ) -> Decisions: ...


def weighed(neighbours: Neighbours, calibration: Calibration) -> Neighbours:
    """Neighbours whose candidates are weighed up, once for all that is asked of them later."""
    candidates = neighbours.candidates
    if candidates is None or calibration.ranker is None:
        return neighbours
    logits = calibration.weigh_up(candidates)
    return replace(neighbours, candidates=candidates._replace(logits=logits))


def rank_candidates(neighbours: Neighbours, calibration: Calibration, count: int):
    """Candidates of each mention by their best evidence, their own text or an exemplar.

    RETURNS: entities (m, count) int64, filled up with -1, and logits (m, count) float32.
        Equal ones come in the KB's order.
    """
    entities = np.concatenate([neighbours.entities, neighbours.exemplar_entity], axis=1)
    logits = np.concatenate(
        [
            calibration.logits("entity", neighbours.entity_similarity),
            calibration.logits("exemplar", neighbours.exemplar_similarity),
        ],
        axis=1,
    )
    candidates = neighbours.candidates
    if candidates is not None and calibration.ranker is not None:
        # What was weighed up comes first, the rest after it in its own order.
        weighed = calibration.weigh_up(candidates)
        least = np.where(candidates.entities >= 0, weighed, np.inf).min(axis=1, keepdims=True)
        entities = np.concatenate([candidates.entities, entities], axis=1)
        logits = np.concatenate([weighed, np.minimum(logits, least - 1e-3)], axis=1)
    order = np.lexsort((entities, -logits), axis=1)
    entities = np.take_along_axis(entities, order, axis=1)
    logits = np.take_along_axis(logits, order, axis=1)
    there = entities >= 0
    mention = np.nonzero(there)[0]
    entities, logits = entities[there], logits[there]
    places = first_of_each(mention, entities, len(neighbours), count)
    return fill(entities, places, -1), fill(logits, places, -np.inf)
