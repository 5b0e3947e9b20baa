"""Inference procedures: by the graph, and each mention by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from spacy.util import registry

from .. import graph
from ..base.arrays import OnAccess, minus_ones, resized_table
from ..base.calibration import Calibration
from ..base.settings import check_choice, check_count
from ..graph.linking import METHODS
from ..retrieval.neighbours import Neighbours
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

    def where(self, keep: np.ndarray) -> "Decisions":
        """The same with NIL for mentions at which ``keep`` (m,) is False."""
        entities = np.where(keep, self.entities, -1)
        logits = np.where(keep, self.logits, np.float32(-np.inf)).astype(np.float32)

        def path(mention: int) -> list[Step]:
            return self.paths[mention] if keep[mention] else []

        return Decisions(entities, logits, OnAccess(path, len(keep)))


@runtime_checkable
class Inference(Protocol):
    """A procedure that turns ranked candidates into links.

    Of the candidates of a mention it looks at the first ``MAX_CONSIDERED`` at most: a corpus that
    is linked in one graph keeps no more. A procedure is a frozen dataclass.

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
        """Decide. min_logit: The log-odds that each edge of a link must have."""
        ...


def first_candidates(ranking: Ranking) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first candidate of each of m mentions.

    RETURNS: Entities (m,) int64, -1 for none; log-odds (m,) float32, -inf for none; exemplars
        (m,) int64, -1 where a text of the entity speaks for it.
    """
    candidates = ranking.candidates.resized(1)
    exemplars = resized_table(ranking.exemplars, 1, -1)
    return candidates.ids[:, 0], candidates.scores[:, 0], exemplars[:, 0]


def start_of_path(entity: int, exemplar: int) -> list[Step]:
    """Begin a path at an entity, via its exemplar; -1 for no exemplar."""
    steps = [Step("entity", entity, np.inf)]
    return steps if exemplar < 0 else [*steps, Step("exemplar", exemplar, np.inf)]


def decide_each(
    entities: np.ndarray, logits: np.ndarray, exemplars: np.ndarray, min_logit: float
) -> Decisions:
    """Link each mention by itself, where its entity is likely enough.

    entities: (m,) int64, -1 for none.
    logits: (m,) float32, their log-odds.
    exemplars: (m,) int64, the exemplar that speaks for each; -1 for a text of the entity.
    min_logit: The log-odds that a link must have.
    """
    linked = (entities >= 0) & (logits >= min_logit)

    def path(mention: int) -> list[Step]:
        if not linked[mention]:
            return []
        last = Step("mention", mention, float(logits[mention]))
        return [*start_of_path(int(entities[mention]), int(exemplars[mention])), last]

    return Decisions(
        np.where(linked, entities, -1),
        np.where(linked, logits, -np.inf).astype(np.float32),
        OnAccess(path, len(linked)),
    )


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
        return decide_each(*first_candidates(ranked.ranking), min_logit)


@registry.misc("spacy-arbo-el.Clustering.v1")
@dataclass(frozen=True)
class Clustering:
    """Directed clustering of mentions and entities, the default (arborescence paper, §A.2).

    The graph has a node for each entity, mention and exemplar in question. A mention has an edge
    from its first candidate, by way of the exemplar that speaks for this candidate if there is
    one, and edges from its most similar mentions in the document. Weights are negative log-odds.
    No edge joins mentions of different documents, so links do not depend on the batch; where a
    whole corpus is linked in one graph, such edges exist. Mentions that no entity reaches are left
    to ``discovery``::

        [components.arbo_linker.inference]
        @misc = "spacy-arbo-el.Clustering.v1"
        method = "arborescence"

    method: "arborescence" (the paper's procedure), "minimax" or "undirected"; see
        ``docs/graph.md``.
    n_exemplars: How many of the nearest exemplars are searched for each mention.
    n_mentions: From how many of the nearest mentions of the document a mention has edges.
    """

    method: str = "arborescence"
    n_exemplars: int = 8
    n_mentions: int = 4

    def __post_init__(self) -> None:
        check_choice("inference.method", self.method, METHODS)
        check_count("inference.n_exemplars", self.n_exemplars)
        check_count("inference.n_mentions", self.n_mentions)

    def decide(
        self, ranked: RankedMentions, calibration: Calibration, min_logit: float
    ) -> Decisions:
        nodes = _Nodes(ranked.ranking)
        links = graph.link(
            len(nodes.entities),
            nodes.n_mentions + len(nodes.exemplars),
            *nodes.edges(ranked.neighbours, calibration),
            threshold=-min_logit,
            method=self.method,
        )
        count = nodes.n_mentions
        linked = links.entity[:count] >= 0
        entities = minus_ones(count)
        entities[linked] = nodes.entities[links.entity[:count][linked]]
        logits = np.where(linked, -links.score[:count], -np.inf).astype(np.float32)
        paths = OnAccess(lambda m: nodes.path(links, m) if linked[m] else [], count)
        return Decisions(entities, logits, paths)


class _Nodes:
    """Numbers of entities, mentions and exemplars as graph nodes.

    A mention needs only one edge from outside, that from its first candidate. No method would ever
    choose a worse edge from an entity or an exemplar, since the best one can always take its place.
    """

    def __init__(self, ranking: Ranking):
        self.n_mentions = len(ranking)
        self._entity, self._logit, self._exemplar = first_candidates(ranking)
        by_exemplar = (self._entity >= 0) & (self._exemplar >= 0)
        self.exemplars, first = np.unique(
            self._exemplar[by_exemplar], return_index=True
        )
        self._exemplar_entity = self._entity[by_exemplar][first]
        self.entities = np.unique(self._entity[self._entity >= 0])

    def edges(
        self, neighbours: Neighbours, calibration: Calibration
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sources, targets and weights, (E,) each."""
        n_entities = len(self.entities)
        first_exemplar = len(self.entities) + self.n_mentions
        by_text = np.flatnonzero((self._entity >= 0) & (self._exemplar < 0))
        by_exemplar = np.flatnonzero((self._entity >= 0) & (self._exemplar >= 0))
        exemplar = np.searchsorted(self.exemplars, self._exemplar[by_exemplar])
        target, column = np.nonzero(neighbours.mentions.valid)
        similarity = neighbours.mentions.scores[target, column]
        # From an entity to a mention, an exemplar to a mention, an entity to its exemplar, and a
        # mention to a mention: of edges of equal weight the first counts.
        sources = [
            np.searchsorted(self.entities, self._entity[by_text]),
            first_exemplar + exemplar,
            np.searchsorted(self.entities, self._exemplar_entity),
            n_entities + neighbours.mentions.ids[target, column],
        ]
        targets = [
            n_entities + by_text,
            n_entities + by_exemplar,
            first_exemplar + np.arange(len(self.exemplars)),
            n_entities + target,
        ]
        weights = [
            -self._logit[by_text],
            -self._logit[by_exemplar],
            np.full(len(self.exemplars), -np.inf, dtype=np.float32),
            -calibration.logits("mention", similarity),
        ]
        return (
            np.concatenate(sources),
            np.concatenate(targets),
            np.concatenate(weights),
        )

    def path(self, links: graph.Links, mention: int) -> list[Step]:
        """Steps from a linked mention's entity to the mention."""
        n_entities = len(self.entities)
        steps: list[Step] = []
        exemplar = -1
        node = n_entities + mention
        while node >= n_entities:
            item = node - n_entities
            if item < self.n_mentions:
                steps.append(Step("mention", item, -float(links.weight[item])))
            else:
                exemplar = int(self.exemplars[item - self.n_mentions])
            node = int(links.parent[item])
        return [*start_of_path(int(self.entities[node]), exemplar), *reversed(steps)]
