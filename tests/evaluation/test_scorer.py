"""Scores of outcomes against cases counted by hand, and their errors against bootstrap samples."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Span

from spacy_arbo_el import ArboKB, Entity, Link
from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.scorer import score_outcomes
from spacy_arbo_el.evaluation.seen import Seen, score_by_seen, score_namesakes
from spacy_arbo_el.evaluation.uncertainty import accuracy_interval, standard_errors

NLP = spacy.blank("xx")


def outcome(gold, predicted, ids=(), label="X", doc=None, text="x"):
    """Of a mention in a document of its own, or in one that is given."""
    link = None if predicted is None else Link(predicted, 0.5, ids, [0.5] * len(ids))
    doc = NLP.make_doc(text) if doc is None else doc
    return Outcome(label, gold, predicted, link, Span(doc, 0, 1))


def said(gold, is_right, text="x", doc=None):
    return outcome((gold,), gold if is_right else "other", text=text, doc=doc)


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
    assert scores["arbo_recall_at_8"] == scores["arbo_recall_at_10"]
    assert scores["arbo_recall_at_10"] == pytest.approx(3 / 5)
    assert scores["arbo_nil_p"] == pytest.approx(1 / 2)
    assert scores["arbo_nil_r"] == pytest.approx(1 / 2)


def test_scores_per_type():
    results = [outcome(("A",), "A", label="P"), outcome(("A",), "B", label="Q")]
    scores = score_outcomes(results)
    assert scores["nel_f_per_type"]["P"]["f"] == 1.0
    assert scores["nel_f_per_type"]["Q"]["f"] == 0.0
    assert scores["nel_macro_f"] == 0.5
    assert scores["nel_micro_f"] == 0.5


def test_scores_without_mentions_are_none():
    scores = score_outcomes([])
    assert scores["nel_micro_f"] is None
    assert scores["arbo_acc"] is None
    assert scores["arbo_mentions"] == 0


# What training has shown


def test_entities_and_strings_that_training_has_shown():
    rows = [("a", True, "X"), ("a", True, "x"), ("a", True, "y"), ("a", False, "y"), ("b", False)]
    scores = score_by_seen([said(*row) for row in rows], Seen({"a"}, {"x"}))
    assert (scores["arbo_acc_seen"], scores["arbo_acc_unseen"]) == (0.75, 0.0)
    assert scores["arbo_balanced_acc"] == 0.375
    assert scores["arbo_acc_new_strings"] == 0.5, "of the two with the string y"


def test_without_unseen_entities_balanced_accuracy_is_that_of_the_seen():
    scores = score_by_seen([said("a", True), said("a", False)], Seen({"a"}))
    assert scores["arbo_balanced_acc"] == 0.5
    assert score_by_seen([], Seen())["arbo_balanced_acc"] is None


def test_namesakes_are_mentions_that_several_entities_have_as_a_name():
    entities = [Entity("a", "Mercury"), Entity("b", "b", aliases=("mercury",)), Entity("c", "Tea")]
    kb = ArboKB(NLP.vocab, entities)
    rows = [("a", True, "MERCURY"), ("b", False, "Mercury"), ("c", True, "Tea"), ("c", True, "x")]
    assert score_namesakes([said(*row) for row in rows], kb) == {"arbo_acc_namesakes": 0.5}
    assert score_namesakes([said(*rows[2])], kb) == {"arbo_acc_namesakes": None}
    assert score_namesakes([said(*rows[0])], None) == {"arbo_acc_namesakes": None}


# Standard errors and intervals


SEEN = Seen(frozenset({"A", "B"}), frozenset())


def documents(count, seed=0):
    """Outcomes of documents, some of which are harder than others."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        doc, ease = NLP.make_doc("one"), rng.random()
        results = []
        for _ in range(int(rng.integers(1, 9))):
            gold = (str(rng.choice(["A", "B", "C", "D"])),) if rng.random() < 0.8 else ()
            predicted = (
                (gold or ("NIL",))[0] if rng.random() < ease else str(rng.choice(["A", "NIL"]))
            )
            results.append(outcome(gold, predicted, [predicted], doc=doc))
        found.append(results)
    return found


def scores_of(found):
    results = [result for part in found for result in part]
    return {**score_outcomes(results), **score_by_seen(results, SEEN)}


def test_errors_are_those_of_bootstrap_samples():
    found = documents(60)
    errors = standard_errors([result for part in found for result in part], SEEN)
    rng = np.random.default_rng(1)
    samples = [scores_of([found[i] for i in rng.integers(60, size=60)]) for _ in range(300)]
    assert len(errors) == 6
    for name, error in errors.items():
        assert error == pytest.approx(np.std([one[name] for one in samples]), rel=0.25), name


def test_fewer_documents_have_larger_errors_and_one_has_none():
    many, few = (documents(count) for count in (80, 8))
    flat = [[result for part in found for result in part] for found in (many, few, few[:1])]
    errors = [standard_errors(results, SEEN) for results in flat]
    assert all(errors[1][name] > errors[0][name] for name in errors[0])
    assert errors[2] == {}
    assert standard_errors([], SEEN) == {}


def test_the_interval_is_over_documents(rng):
    right = rng.random(400) < 0.8
    single = [said("a", one) for one in right]
    low, high = accuracy_interval(single)
    # Of a share p of n: p ± 1.96 √(p (1 - p) / n).
    half = 1.96 * np.sqrt(right.mean() * (1 - right.mean()) / 400)
    assert (low, high) == pytest.approx((right.mean() - half, right.mean() + half), abs=0.01)
    docs = [NLP.make_doc("x") for _ in range(40)]
    alike = [said("a", right[i // 10], doc=docs[i // 10]) for i in range(400)]
    wide = np.diff(accuracy_interval(alike))[0]
    assert wide > 2 * (high - low), "mentions of one document are right or wrong together"
    assert accuracy_interval(alike[:10]) is None
