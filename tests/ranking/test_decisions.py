"""Ranking by the best evidence, and inference procedures, against slow ones."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import Calibration, MentionBatch, TopK, graph
from spacy_arbo_el.graph.linking import METHODS
from spacy_arbo_el.ranking.decisions import Clustering, Independent
from spacy_arbo_el.ranking.ranking import BestEvidence

from .examples import decide, neighbours_of, nothing, top_k

CURVES = Calibration(entity=(4.0, -1.0), exemplar=(5.0, -2.0), mention=(4.0, -1.5))


@st.composite
def documents(draw, similarities=None):
    """Neighbours of up to 8 mentions among 4 entities and 6 exemplars.

    similarities: What they are drawn from. Without it, all are distinct.
    """
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    count = draw(st.integers(0, 8))
    owner_of = rng.integers(0, 4, 6)

    def nearest(width, n):
        ids = np.argsort(rng.random((count, n)), axis=1)[:, :width]
        scores = rng.choice(similarities, ids.shape) if similarities else rng.random(ids.shape)
        nearest_first = -np.sort(-scores, axis=1).astype(np.float32)
        return TopK(ids, nearest_first).where(rng.random(ids.shape) < 0.7)

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


def test_independent_links_to_the_best_text_or_exemplar_at_the_threshold():
    neighbours = neighbours_of(
        top_k([[2, 0], [2, 0], [-1, -1]], [[0.9, 0.3], [0.6, 0.3], [0, 0]]),
        top_k([[5], [5], [-1]], [[0.9], [0.7], [0]]),
        [[1], [0], [-1]],
    )
    calibration = Calibration(entity=(10.0, -6.0), exemplar=(10.0, -5.0))
    decisions = decide(Independent(8), neighbours, calibration, -np.inf)
    # Equal ones would go to the first in the knowledge base; here exemplars have better curves.
    assert decisions.entities.tolist() == [1, 0, -1]
    assert decisions.logits.tolist() == [4.0, np.float32(2.0), -np.inf]
    kinds = [[(step.kind, step.ref) for step in path] for path in decisions.paths]
    assert kinds == [
        [("entity", 1), ("exemplar", 5), ("mention", 0)],
        [("entity", 0), ("exemplar", 5), ("mention", 1)],
        [],
    ]
    decisions = decide(Independent(8), neighbours, calibration, 3.0)
    assert decisions.entities.tolist() == [1, -1, -1]
    assert decisions.paths[1] == []
    by_text = decide(Independent(), neighbours_of(neighbours.entities), calibration, -np.inf)
    assert by_text.entities.tolist() == [2, 2, -1]
    assert [step.kind for step in by_text.paths[0]] == ["entity", "mention"]


def test_independent_without_any_candidates_links_nothing():
    decisions = decide(Independent(), neighbours_of(nothing(2)), Calibration(), -np.inf)
    assert decisions.entities.tolist() == [-1, -1]
    assert list(decisions.paths) == [[], []]


# Curves under which a text and an exemplar may have equal log-odds.
CALIBRATION = Calibration(entity=(2.0, 0.0), exemplar=(4.0, -1.0))
SIMILARITIES = [-0.5, 0.0, 0.5, 1.0]


def evidence_of(neighbours, mention):
    """(entity, log-odds, exemplar or -1) of all texts, then of all exemplars."""
    texts, exemplars = neighbours.entities, neighbours.exemplars
    for entity, similarity in zip(texts.ids[mention].tolist(), texts.scores[mention].tolist()):
        if entity >= 0:
            yield entity, 2.0 * similarity, -1
    columns = (neighbours.exemplar_entities, exemplars.ids, exemplars.scores)
    for entity, row, similarity in zip(*(column[mention].tolist() for column in columns)):
        if row >= 0:
            yield entity, 4.0 * similarity - 1.0, row


@given(documents(SIMILARITIES), st.integers(0, 5))
def test_each_entity_is_ranked_by_its_best_text_or_exemplar(neighbours, count):
    context = SimpleNamespace(calibration=CALIBRATION, n_candidates=count)
    ranking = BestEvidence()(MentionBatch.empty(), neighbours, context)
    assert ranking.candidates.ids.shape == ranking.exemplars.shape
    assert ranking.exemplars.shape == (len(neighbours), count)
    for mention in range(len(neighbours)):
        best = {}
        for entity, logit, row in evidence_of(neighbours, mention):
            # A text comes first, and so it counts where an exemplar has the same log-odds.
            if entity not in best or logit > best[entity][0]:
                best[entity] = (logit, row)
        expected = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))[:count]
        valid = ranking.candidates.valid[mention]
        actual = zip(
            ranking.candidates.ids[mention][valid].tolist(),
            ranking.candidates.scores[mention][valid].tolist(),
            ranking.exemplars[mention][valid].tolist(),
        )
        assert [(entity, (logit, row)) for entity, logit, row in actual] == expected
        assert (ranking.exemplars[mention][~valid] == -1).all()
