"""Decisions, and the protocol of inference procedures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..base.arrays import TopK
from ..base.calibration import Calibration
from .ranking import RankedMentions, Ranking

# Candidates of a mention that an inference procedure looks at.
MAX_CONSIDERED = 4


class Step(NamedTuple):
    """A step on a path from entity to mention.

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

    entities: (m,) int64, positions in the KB, -1 for NIL.
    logits: (m,) float32, log-odds of the link: those of the weakest edge on the path that
        supports it; -inf for NIL.
    paths: m lists of steps, from the entity to the mention; empty for NIL.
    """

    entities: np.ndarray
    logits: np.ndarray
    paths: Sequence[list[Step]]


class Paths(Sequence[list[Step]]):
    """Paths that are built on access. Few of a large corpus are needed at a time.

    trace: Function from the number of a mention to its path.
    count: The number of mentions.
    """

    def __init__(self, trace: Callable[[int], list[Step]], count: int):
        self._trace, self._count = trace, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, mention: Any) -> Any:
        if isinstance(mention, slice):
            return [self._trace(i) for i in range(*mention.indices(self._count))]
        return self._trace(range(self._count)[mention])


@runtime_checkable
class Inference(Protocol):
    """A procedure that turns ranked candidates into links.

    Of the candidates of a mention it looks at the first ``MAX_CONSIDERED`` at most: a corpus that
    is linked in one graph keeps no more. A procedure is a frozen dataclass. It may also have the
    methods of ``linking.stages.Revises`` and ``training.trainer.RevisesTraining``.

    n_exemplars: How many of the nearest exemplars are searched for each mention.
    n_mentions: How many of the nearest other mentions are searched for each mention.
    """

    @property
    def n_exemplars(self) -> int: ...

    @property
    def n_mentions(self) -> int: ...

    def decide(
        self, ranked: RankedMentions, calibration: Calibration, min_logit: float
    ) -> Decisions:
        """Decide.

        min_logit: The log-odds that each edge of a link must have.
        """
        ...


def first_candidates(ranking: Ranking) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first candidate of each of m mentions.

    RETURNS: Entities (m,) int64, -1 for none; log-odds (m,) float32, -inf for none; exemplars
        (m,) int64, -1 where a text of the entity speaks for it.
    """
    candidates = ranking.candidates.resized(1)
    exemplars = TopK(ranking.exemplars, ranking.candidates.scores).resized(1)
    return candidates.ids[:, 0], candidates.scores[:, 0], exemplars.ids[:, 0]


def start_of_path(entity: int, exemplar: int) -> list[Step]:
    """Begin a path at an entity, via its exemplar; -1 for no exemplar."""
    steps = [Step("entity", entity, np.inf)]
    return steps if exemplar < 0 else [*steps, Step("exemplar", exemplar, np.inf)]
