"""Scores by what training has shown."""

import spacy
from spacy.tokens import Span

from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.seen import Seen, score_by_seen, score_namesakes
from spacy_arbo_el.kb.entity import Entity
from spacy_arbo_el.kb.knowledge_base import ArboKB
from spacy_arbo_el.mentions.annotations import Link

NLP = spacy.blank("xx")


def outcome(gold, right, text="x", doc=None):
    doc = doc if doc is not None else NLP.make_doc(text)
    predicted = gold if right else "other"
    return Outcome("", (gold,), predicted, Link(predicted, 0.9, ()), Span(doc, 0, 1))


def test_entities_and_strings_that_training_has_shown():
    rows = [("a", True, "X"), ("a", True, "x"), ("a", True, "y"), ("a", False, "y"), ("b", False)]
    scores = score_by_seen([outcome(*row) for row in rows], Seen({"a"}, {"x"}))
    assert (scores["arbo_acc_seen"], scores["arbo_acc_unseen"]) == (0.75, 0.0)
    assert scores["arbo_balanced_acc"] == 0.375
    assert scores["arbo_acc_new_strings"] == 0.5, "of the two with the string y"


def test_without_unseen_entities_balanced_accuracy_is_that_of_the_seen():
    scores = score_by_seen([outcome("a", True), outcome("a", False)], Seen({"a"}))
    assert scores["arbo_balanced_acc"] == 0.5
    assert score_by_seen([], Seen())["arbo_balanced_acc"] is None


def test_namesakes_are_mentions_that_several_entities_have_as_a_name():
    entities = [Entity("a", "Mercury"), Entity("b", "b", aliases=("mercury",)), Entity("c", "Tea")]
    kb = ArboKB(NLP.vocab, entities)
    rows = [("a", True, "MERCURY"), ("b", False, "Mercury"), ("c", True, "Tea"), ("c", True, "x")]
    assert score_namesakes([outcome(*row) for row in rows], kb) == {"arbo_acc_namesakes": 0.5}
    assert score_namesakes([outcome(*rows[2])], kb) == {"arbo_acc_namesakes": None}
    assert score_namesakes([outcome(*rows[0])], None) == {"arbo_acc_namesakes": None}
