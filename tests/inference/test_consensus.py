"""Mentions that share the evidence of their groups, compared with a calculation by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.calibration import Calibration, probability
from spacy_arbo_el.inference.consensus import Consensus, mean_over_group
from spacy_arbo_el.reranking.best_evidence import rank_by_best_evidence

from .examples import decide, neighbours_of, nothing, ranked, top_k

CURVES = Calibration(entity=(10.0, -5.0), exemplar=(10.0, -5.0), same_mention=(10.0, -5.0))
SIMILAR = np.array([[1, 0], [0.95, 0.3122], [0.9, 0.4359]], np.float32)
OTHERS = top_k([[1, 2], [0, 2], [0, 1]], np.full((3, 2), 0.9))


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_mean_over_group_equals_the_mean_of_each_candidate(seed, count):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, count)
    entities = np.array([rng.permutation(5)[:3] for _ in range(count)])
    entities[rng.random(entities.shape) < 0.3] = -1
    probabilities = np.where(entities >= 0, rng.random(entities.shape), 0)
    means = mean_over_group(group, entities, probabilities)
    for i in range(count):
        members = np.flatnonzero(group == group[i])
        for column, entity in enumerate(entities[i].tolist()):
            if entity >= 0:
                same = [probabilities[j][entities[j] == entity].sum() for j in members]
                assert means[i, column] == pytest.approx(np.mean(same))


def three_mentions(mentions=OTHERS):
    """Three similar mentions, the third of which fits entities 0 and 1 nearly equally well."""
    return neighbours_of(
        top_k([[0, 1], [0, 1], [1, 0]], [[0.9, 0.4], [0.8, 0.4], [0.52, 0.5]]),
        top_k([[4], [-1], [-1]], [[0.95], [0], [0]]),
        [[0], [-1], [-1]],
        mentions,
    )


def decide_three(inference, calibration=CURVES, min_logit=-np.inf, vectors=SIMILAR, **changes):
    return decide(inference, three_mentions(**changes), calibration, min_logit, vectors)


def test_the_group_decides_for_an_uncertain_mention():
    alone = decide_three(Consensus(weight=0.0))
    assert alone.entities.tolist() == [0, 0, 1]
    grouped = decide_three(Consensus())
    assert grouped.entities.tolist() == [0, 0, 0]
    probabilities = probability(CURVES.logits("entity", np.array([0.8, 0.5])))
    first = probability(CURVES.logits("exemplar", np.array([0.95])))[0]
    expected = 0.5 * probabilities[1] + 0.5 * (first + probabilities.sum()) / 3
    assert probability(grouped.logits[2]) == pytest.approx(expected, abs=1e-5)
    # It hangs under the surest mention of the group, which hangs under its exemplar.
    kinds = [(step.kind, step.ref) for step in grouped.paths[2]]
    assert kinds == [("entity", 0), ("exemplar", 4), ("mention", 0), ("mention", 2)]
    assert [step.kind for step in grouped.paths[1]] == ["entity", "mention"]


def test_dissimilar_mentions_decide_alone():
    far = np.eye(3, 2, dtype=np.float32)
    assert decide_three(Consensus(threshold=0.99), vectors=far).entities.tolist() == [0, 0, 1]
    assert decide_three(Consensus(), mentions=nothing(3)).entities.tolist() == [0, 0, 1]


def test_a_mention_without_neighbours_of_its_own_decides_alone_but_counts_for_others():
    one_way = top_k([[1, 2], [0, 2], [-1, -1]], np.full((3, 2), 0.9))
    decisions = decide_three(Consensus(), mentions=one_way)
    assert decisions.entities.tolist() == [0, 0, 1]
    alone = decide_three(Consensus(), mentions=nothing(3))
    assert decisions.logits[2] == alone.logits[2]
    # Group means of the others are those of all three mentions.
    assert decisions.logits[:2].tolist() == decide_three(Consensus()).logits[:2].tolist()
    assert decisions.logits[0] != alone.logits[0]


def test_a_certain_candidate_of_a_mention_without_neighbours_is_linked():
    neighbours = three_mentions(top_k([[1, 2], [0, 2], [-1, -1]], np.full((3, 2), 0.9)))
    ranking = rank_by_best_evidence(neighbours, CURVES, 64)
    logits = ranking.candidates.scores.copy()
    logits[2] = np.where(ranking.candidates.ids[2] == 1, 12.0, -np.inf)
    ranking = ranking.rescored(logits)
    decisions = Consensus().decide(ranked(neighbours, ranking, SIMILAR), CURVES, 5.0)
    assert decisions.entities[2] == 1 and decisions.logits[2] == pytest.approx(12.0, abs=0.1)


def test_consensus_handles_probabilities_that_are_nearly_one():
    steep = Calibration(entity=(400.0, -15.0), exemplar=(400.0, -15.0), same_mention=(10.0, -5.0))
    decisions = decide_three(Consensus(), steep)
    assert decisions.entities.tolist() == [0, 0, 1]
    assert all(np.isfinite(step.logit) for path in decisions.paths for step in path[-1:])


def test_consensus_rejects_weights_that_are_no_probabilities():
    with pytest.raises(ValueError, match="number from 0 to 1"):
        Consensus(weight=1.5)


def test_mentions_below_the_threshold_or_without_candidates_are_nil():
    decisions = decide_three(Consensus(), min_logit=50.0)
    assert decisions.entities.tolist() == [-1, -1, -1] and decisions.paths[0] == []
    assert (decisions.logits == -np.inf).all()
    empty = neighbours_of(nothing(3), mentions=OTHERS)
    decisions = decide(Consensus(), empty, CURVES, -np.inf, SIMILAR)
    assert decisions.entities.tolist() == [-1, -1, -1]
