"""Scores of clusters against their definitions."""

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.evaluation.clusters import cluster_scores

LABELS = st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abcde")), min_size=1, max_size=9)


def clusters(labels):
    return [{i for i, other in enumerate(labels) if other == one} for one in dict.fromkeys(labels)]


def f1(p, r):
    return 2 * p * r / (p + r) if p + r else 0.0


@given(LABELS)
def test_scores_equal_their_definitions(labels):
    gold, predicted = map(list, zip(*labels))
    scores = cluster_scores(gold, predicted)
    system, expected = clusters(predicted), clusters(gold)
    n = len(labels)

    def cluster_of(groups, i):
        return next(group for group in groups if i in group)

    shared = [len(cluster_of(system, i) & cluster_of(expected, i)) for i in range(n)]
    precision = sum(s / len(cluster_of(system, i)) for i, s in enumerate(shared)) / n
    recall = sum(s / len(cluster_of(expected, i)) for i, s in enumerate(shared)) / n
    assert scores["b3_p"] == pytest.approx(precision)
    assert scores["b3_r"] == pytest.approx(recall)
    assert scores["b3_f"] == pytest.approx(f1(precision, recall))

    def dice(a, b):
        return 2 * len(a & b) / (len(a) + len(b))

    few, many = sorted((system, expected), key=len)
    best = max(
        sum(dice(a, b) for a, b in zip(few, chosen)) for chosen in permutations(many, len(few))
    )
    assert scores["ceafe_p"] == pytest.approx(best / len(system))
    assert scores["ceafe_r"] == pytest.approx(best / len(expected))

    pairs = {pair for group in system for pair in combinations(sorted(group), 2)}
    correct = {pair for group in expected for pair in combinations(sorted(group), 2)}
    both = len(pairs & correct)
    assert scores["pairs_p"] == pytest.approx(both / len(pairs) if pairs else 1.0)
    assert scores["pairs_r"] == pytest.approx(both / len(correct) if correct else 1.0)
    purity = sum(max(len(group & other) for other in expected) for group in system) / n
    assert scores["purity"] == pytest.approx(purity)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_correct_clusters_score_one_whatever_their_labels(gold):
    scores = cluster_scores(gold, [f"cluster {label}" for label in gold])
    assert all(value == pytest.approx(1.0) for value in scores.values())


def test_scores_without_mentions_and_error_for_unequal_lengths():
    assert set(cluster_scores([], []).values()) == {0.0}
    with pytest.raises(ValueError, match="2 gold labels but 1"):
        cluster_scores([1, 2], [1])
