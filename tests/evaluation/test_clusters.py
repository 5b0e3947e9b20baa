"""Scores of clusters against their definitions, written out."""

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
def test_against_the_definitions(labels):
    gold, predicted = map(list, zip(*labels))
    scores = cluster_scores(gold, predicted)
    ours, theirs = clusters(predicted), clusters(gold)
    n = len(labels)

    def of(groups, i):
        return next(group for group in groups if i in group)

    shared = [len(of(ours, i) & of(theirs, i)) for i in range(n)]
    precision = sum(s / len(of(ours, i)) for i, s in enumerate(shared)) / n
    recall = sum(s / len(of(theirs, i)) for i, s in enumerate(shared)) / n
    assert scores["b3_p"] == pytest.approx(precision)
    assert scores["b3_r"] == pytest.approx(recall)
    assert scores["b3_f"] == pytest.approx(f1(precision, recall))

    def dice(a, b):
        return 2 * len(a & b) / (len(a) + len(b))

    few, many = sorted((ours, theirs), key=len)
    best = max(
        sum(dice(a, b) for a, b in zip(few, chosen)) for chosen in permutations(many, len(few))
    )
    assert scores["ceafe_p"] == pytest.approx(best / len(ours))
    assert scores["ceafe_r"] == pytest.approx(best / len(theirs))

    found = {pair for group in ours for pair in combinations(sorted(group), 2)}
    right = {pair for group in theirs for pair in combinations(sorted(group), 2)}
    assert scores["pairs_p"] == pytest.approx(len(found & right) / len(found) if found else 1.0)
    assert scores["pairs_r"] == pytest.approx(len(found & right) / len(right) if right else 1.0)
    purity = sum(max(len(group & other) for other in theirs) for group in ours) / n
    assert scores["purity"] == pytest.approx(purity)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_the_right_clusters_are_perfect_whatever_they_are_called(gold):
    scores = cluster_scores(gold, [f"cluster {label}" for label in gold])
    assert all(value == pytest.approx(1.0) for value in scores.values())


def test_nothing_and_unequal_lengths():
    assert set(cluster_scores([], []).values()) == {0.0}
    with pytest.raises(ValueError, match="2 gold labels but 1"):
        cluster_scores([1, 2], [1])
