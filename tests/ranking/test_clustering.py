"""Clustering with one edge from outside per mention, compared with the graph of all edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import graph
from spacy_arbo_el.base.arrays import TopK
from spacy_arbo_el.base.calibration import Calibration
from spacy_arbo_el.graph.linking import METHODS
from spacy_arbo_el.ranking.decisions import Clustering

from .examples import decide, neighbours_of, top_k

CURVES = Calibration(entity=(4.0, -1.0), exemplar=(5.0, -2.0), mention=(4.0, -1.5))


@st.composite
def documents(draw):
    """Neighbours of up to 8 mentions among 4 entities and 6 exemplars, similarities distinct."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    count = draw(st.integers(1, 8))
    owner_of = rng.integers(0, 4, 6)

    def nearest(width, n):
        ids = np.argsort(rng.random((count, n)), axis=1)[:, :width]
        scores = -np.sort(-rng.random(ids.shape), axis=1).astype(np.float32)
        return TopK(ids, scores).where(rng.random(ids.shape) < 0.7)

    entities, exemplars, mentions = (nearest(draw(st.integers(0, 3)), n) for n in (4, 6, count))
    mentions = mentions.where(mentions.ids != np.arange(count)[:, None])
    owners = np.where(exemplars.valid, owner_of[exemplars.ids], -1)
    return neighbours_of(entities, exemplars, owners, mentions)


def link_with_all_edges(neighbours, method, min_logit):
    """Entities and logits where each mention has edges from all its exemplars.

    Its nearest entity has an edge to it, too. Exemplars hang under their entities.
    """
    count, n_entities, n_exemplars = len(neighbours), 4, 6
    sources, targets, weights = [], [], []

    def add(source, target, weight):
        sources.append(source)
        targets.append(target)
        weights.append(weight)

    def logit(kind, similarity):
        return CURVES.logits(kind, np.float32(similarity))

    for mention in range(count):
        if neighbours.entities.width and neighbours.entities.valid[mention, 0]:
            similarity = neighbours.entities.scores[mention, 0]
            entity = neighbours.entities.ids[mention, 0]
            add(entity, n_entities + mention, -logit("entity", similarity))
    owner = {}
    for mention, column in zip(*np.nonzero(neighbours.exemplars.valid)):
        row = neighbours.exemplars.ids[mention, column]
        owner[row] = neighbours.exemplar_entities[mention, column]
        weight = -logit("exemplar", neighbours.exemplars.scores[mention, column])
        add(n_entities + count + row, n_entities + mention, weight)
    for row, entity in owner.items():
        add(entity, n_entities + count + row, -np.inf)
    for mention, column in zip(*np.nonzero(neighbours.mentions.valid)):
        other = neighbours.mentions.ids[mention, column]
        weight = -logit("mention", neighbours.mentions.scores[mention, column])
        add(n_entities + other, n_entities + mention, weight)
    arrays = (np.array(sources, int), np.array(targets, int), np.array(weights, np.float32))
    links = graph.link(
        n_entities, count + n_exemplars, *arrays, threshold=-min_logit, method=method
    )
    linked = links.entity[:count] >= 0
    return links.entity[:count], np.where(linked, -links.score[:count], np.float32(-np.inf))


@pytest.mark.parametrize("method", METHODS)
@given(documents(), st.sampled_from([-np.inf, -0.5, 0.5, 1.5]))
def test_one_edge_from_outside_per_mention_links_like_all_edges(method, neighbours, min_logit):
    decisions = decide(Clustering(method), neighbours, CURVES, min_logit)
    entities, logits = link_with_all_edges(neighbours, method, min_logit)
    assert decisions.entities.tolist() == entities.tolist()
    assert decisions.logits.tolist() == logits.tolist()
    for mention, entity in enumerate(entities.tolist()):
        path = decisions.paths[mention]
        if entity < 0:
            assert path == []
            continue
        assert (path[0].kind, path[0].ref) == ("entity", entity)
        assert (path[-1].kind, path[-1].ref) == ("mention", mention)
        assert min(step.logit for step in path) == logits[mention]


def test_clustering_links_by_way_of_exemplars_and_mentions():
    neighbours = neighbours_of(
        top_k([[0], [0], [-1]], [[0.9], [0.1], [0.0]]),
        top_k([[7], [7], [-1]], [[0.5], [0.8], [0.0]]),
        [[1], [1], [-1]],
        top_k([[-1], [-1], [1]], [[0.0], [0.0], [0.9]]),
    )
    decisions = decide(Clustering(), neighbours, CURVES, 0.0)
    assert decisions.entities.tolist() == [0, 1, 1]
    kinds = [[(step.kind, step.ref) for step in path] for path in decisions.paths]
    assert kinds == [
        [("entity", 0), ("mention", 0)],
        [("entity", 1), ("exemplar", 7), ("mention", 1)],
        [("entity", 1), ("exemplar", 7), ("mention", 1), ("mention", 2)],
    ]
    assert decide(Clustering(), neighbours, CURVES, 5.0).entities.tolist() == [-1] * 3
