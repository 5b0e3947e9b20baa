"""Scores by what training has shown, and the interval of accuracy."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Span

from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.seen import Seen, accuracy_interval, score_by_seen
from spacy_arbo_el.mentions.annotations import Link

NLP = spacy.blank("en")


def outcome(gold, right, text="x", doc=None):
    doc = doc if doc is not None else NLP.make_doc(text)
    predicted = gold if right else "other"
    return Outcome("", (gold,), predicted, Link(predicted, 0.9, ()), Span(doc, 0, 1))


def test_entities_and_strings_that_training_has_shown():
    rows = [("a", True, "X"), ("a", True, "x"), ("a", True, "y"), ("a", False, "y"), ("b", False)]
    scores = score_by_seen([outcome(*row) for row in rows], Seen({"a"}, {"x"}))
    assert (scores["arbo_acc_seen"], scores["arbo_acc_unseen"]) == (0.75, 0.0)
    assert scores["arbo_balanced_acc"] == 0.375
    assert scores["arbo_acc_quarter_unseen"] == 0.75 * 0.75
    assert scores["arbo_acc_new_strings"] == 0.5, "of the two with the string y"


def test_without_unseen_entities_balanced_accuracy_is_that_of_the_seen():
    scores = score_by_seen([outcome("a", True), outcome("a", False)], Seen({"a"}))
    assert scores["arbo_balanced_acc"] == 0.5 and scores["arbo_acc_quarter_unseen"] is None
    assert score_by_seen([], Seen())["arbo_balanced_acc"] is None


def test_the_interval_is_over_documents():
    rng = np.random.default_rng(0)
    right = rng.random(400) < 0.8
    single = [outcome("a", one) for one in right]
    low, high = accuracy_interval(single)
    # Of a share p of n: p ± 1.96 √(p (1 - p) / n).
    half = 1.96 * np.sqrt(right.mean() * (1 - right.mean()) / 400)
    assert (low, high) == pytest.approx((right.mean() - half, right.mean() + half), abs=0.01)
    docs = [NLP.make_doc("x") for _ in range(40)]
    alike = [outcome("a", right[i // 10], doc=docs[i // 10]) for i in range(400)]
    wide = np.diff(accuracy_interval(alike))[0]
    assert wide > 2 * (high - low), "mentions of one document are right or wrong together"
    assert accuracy_interval(alike[:10]) is None
