"""Scores of outcomes, against cases counted by hand."""

import pytest

from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.scorer import score_outcomes
from spacy_arbo_el.mentions.annotations import Link


def outcome(gold, predicted, ids=(), label="X"):
    link = None if predicted is None else Link(predicted, 0.5, ids, [0.5] * len(ids))
    return Outcome(label, gold, predicted, link)


def test_scores_of_links_and_nil():
    results = [
        outcome(("A",), "A", ["A", "B"]),  # correct
        outcome(("A", "B"), "B", ["B"]),  # composite: one of its ids is correct
        outcome(("A",), "C", ["C", "A"]),  # wrong: a false positive and a miss
        outcome(("A",), "NIL", ["C"]),  # NIL: a miss
        outcome(("A",), None),  # mention not found: a miss
        outcome((), "NIL"),  # correct NIL
        outcome((), "A", ["A"]),  # a false positive
        outcome(None, "A", ["A"]),  # not a gold mention: a false positive
    ]
    scores = score_outcomes(results)
    assert scores["nel_micro_p"] == pytest.approx(2 / 5)
    assert scores["nel_micro_r"] == pytest.approx(2 / 5)
    assert scores["arbo_mentions"] == 7
    assert scores["arbo_acc"] == pytest.approx(3 / 7)
    assert scores["arbo_recall_at_1"] == pytest.approx(2 / 5)
    assert scores["arbo_recall_at_8"] == scores["arbo_recall_at_10"] == pytest.approx(3 / 5)
    assert scores["arbo_nil_p"] == pytest.approx(1 / 2)
    assert scores["arbo_nil_r"] == pytest.approx(1 / 2)


def test_scores_per_type():
    results = [outcome(("A",), "A", label="P"), outcome(("A",), "B", label="Q")]
    scores = score_outcomes(results)
    assert scores["nel_f_per_type"]["P"]["f"] == 1.0
    assert scores["nel_f_per_type"]["Q"]["f"] == 0.0
    assert scores["nel_macro_f"] == 0.5 and scores["nel_micro_f"] == 0.5


def test_scores_without_mentions_are_none():
    scores = score_outcomes([])
    assert scores["nel_micro_f"] is None and scores["arbo_acc"] is None
    assert scores["arbo_mentions"] == 0
