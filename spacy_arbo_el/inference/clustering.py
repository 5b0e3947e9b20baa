"""All mentions of a document together, in a graph with entities and exemplars."""

from typing import List

import numpy as np
from spacy.util import registry

from .. import graph
from ..retrieval.neighbours import Neighbours
from .calibration import Calibration
from .decisions import Decisions, Inference, Paths, Step
from .edges import EntityEdges, entity_edges


class Clustering:
    """Directed clustering (arborescence paper, §A.2).

    The graph's nodes are the entities found, the mentions of the batch, and the exemplars found.
    A mention has an edge from its nearest entity, from its nearest exemplars and from its
    nearest mentions in the document; an exemplar hangs under its entity. Weights are negative
    log-odds. No edge joins mentions of different documents, so the batch does not matter, unless
    a corpus is linked together. What nothing reaches is left to ``discovery``.
    """

    def __init__(self, method: str, exemplars: int, mentions: int):
        self.method = method
        self.exemplars = exemplars
        self.mentions = mentions

    def __call__(
        self, neighbours: Neighbours, calibration: Calibration, least_logit: float
    ) -> Decisions:
        tied = entity_edges(neighbours, calibration)
        nodes = _Nodes(len(neighbours), tied)
        links = graph.link(
            len(nodes.entities),
            len(neighbours) + len(nodes.exemplars),
            *nodes.edges(tied, neighbours, calibration),
            threshold=-least_logit,
            method=self.method,
        )
        count = len(neighbours)
        linked = links.entity[:count] >= 0
        entity = np.full(count, -1, dtype=np.int64)
        entity[linked] = nodes.entities[links.entity[:count][linked]]
        logit = np.where(linked, -links.score[:count], -np.inf).astype(np.float32)
        paths = Paths(lambda m: nodes.path(links, m) if linked[m] else [], count)
        return Decisions(entity, logit, paths)


class _Nodes:
    """How entities, mentions and exemplars are numbered as nodes of one graph."""

    def __init__(self, mentions: int, tied: EntityEdges):
        there = tied.exemplar_entity >= 0
        self.mentions = mentions
        self.exemplars, first = np.unique(tied.exemplar[there], return_index=True)
        self.exemplar_entity = tied.exemplar_entity[there][first]
        nearest = tied.entity[tied.entity >= 0]
        self.entities = np.unique(np.concatenate([nearest, self.exemplar_entity]))

    def edges(self, tied: EntityEdges, neighbours: Neighbours, calibration: Calibration):
        base = len(self.entities)
        # From the nearest entity to each mention.
        mention, column = np.nonzero(tied.entity >= 0)
        sources = [np.searchsorted(self.entities, tied.entity[mention, column])]
        targets = [base + mention]
        weights = [-tied.entity_logit[mention, column]]
        # From exemplars to mentions.
        mention, column = np.nonzero(tied.exemplar_entity >= 0)
        rows = tied.exemplar[mention, column]
        sources.append(base + self.mentions + np.searchsorted(self.exemplars, rows))
        targets.append(base + mention)
        weights.append(-tied.exemplar_logit[mention, column])
        # From an entity to its exemplars.
        sources.append(np.searchsorted(self.entities, self.exemplar_entity))
        targets.append(base + self.mentions + np.arange(len(self.exemplars)))
        weights.append(np.full(len(self.exemplars), -np.inf, dtype=np.float32))
        # Between mentions of a document.
        mention, column = np.nonzero(neighbours.mentions >= 0)
        sources.append(base + neighbours.mentions[mention, column])
        targets.append(base + mention)
        weights.append(
            -calibration.logits("mention", neighbours.mention_similarity[mention, column])
        )
        return np.concatenate(sources), np.concatenate(targets), np.concatenate(weights)

    def path(self, links, mention: int) -> List[Step]:
        """From the entity of a linked mention to the mention."""
        base = len(self.entities)
        steps: List[Step] = []
        node = base + mention
        while node >= base:
            item = node - base
            parent = int(links.parent[item])
            if item < self.mentions:
                steps.append(Step("mention", item, -float(links.weight[item])))
            else:
                steps.append(Step("exemplar", int(self.exemplars[item - self.mentions]), np.inf))
            node = parent
        return [Step("entity", int(self.entities[node]), np.inf), *reversed(steps)]


@registry.misc("spacy-arbo-el.Clustering.v1")
def clustering(method: str = "arborescence", exemplars: int = 8, mentions: int = 4) -> Inference:
    """Link the mentions of a document together by clustering.

    method: "arborescence" (the paper's procedure), "minimax", or "undirected".
    exemplars, mentions: How many of the nearest exemplars and of the nearest mentions of the
        document each mention has edges from.
    """
    return Clustering(method, exemplars, mentions)
