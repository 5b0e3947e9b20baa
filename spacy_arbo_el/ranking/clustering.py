"""Joint inference over a document's mentions, entities and exemplars."""

from dataclasses import dataclass

import numpy as np
from spacy.util import registry

from .. import graph
from ..base.calibration import Calibration
from ..base.settings import check_choice, check_count
from ..graph.linking import METHODS
from ..retrieval.neighbours import Neighbours
from .decisions import Decisions, Paths, Step, first_candidates, start_of_path
from .ranking import RankedMentions, Ranking


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
        ``ARCHITECTURE.md``.
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
        entities = np.full(count, -1, dtype=np.int64)
        entities[linked] = nodes.entities[links.entity[:count][linked]]
        logits = np.where(linked, -links.score[:count], -np.inf).astype(np.float32)
        paths = Paths(lambda m: nodes.path(links, m) if linked[m] else [], count)
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
        self.exemplars, first = np.unique(self._exemplar[by_exemplar], return_index=True)
        self._exemplar_entity = self._entity[by_exemplar][first]
        self.entities = np.unique(self._entity[self._entity >= 0])

    def edges(
        self, neighbours: Neighbours, calibration: Calibration
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sources, targets and weights, (E,) each."""
        n_entities, first_exemplar = len(self.entities), len(self.entities) + self.n_mentions
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
        return np.concatenate(sources), np.concatenate(targets), np.concatenate(weights)

    def path(self, links: graph.Links, mention: int) -> list[Step]:
        """Steps from a linked mention's entity to the mention."""
        n_entities = len(self.entities)
        steps: list[Step] = []
        exemplar, node = -1, n_entities + mention
        while node >= n_entities:
            item = node - n_entities
            if item < self.n_mentions:
                steps.append(Step("mention", item, -float(links.weight[item])))
            else:
                exemplar = int(self.exemplars[item - self.n_mentions])
            node = int(links.parent[item])
        return [*start_of_path(int(self.entities[node]), exemplar), *reversed(steps)]
