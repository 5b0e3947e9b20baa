"""Standard errors and intervals of scores against bootstrap samples of the documents."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Span

from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.scorer import score_outcomes
from spacy_arbo_el.evaluation.seen import Seen, score_by_seen
from spacy_arbo_el.evaluation.uncertainty import accuracy_interval, standard_errors
from spacy_arbo_el.mentions.annotations import Link

NLP = spacy.blank("xx")
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
            link = Link(predicted, 0.5, [predicted], [0.5])
            results.append(Outcome("X", gold, predicted, link, Span(doc, 0, 1, "X")))
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
    assert errors[2] == standard_errors([], SEEN) == {}


def test_the_interval_is_over_documents():
    rng = np.random.default_rng(0)
    right = rng.random(400) < 0.8

    def outcome(one, doc):
        predicted = "a" if one else "other"
        return Outcome("", ("a",), predicted, Link(predicted, 0.9), Span(doc, 0, 1))

    single = [outcome(one, NLP.make_doc("x")) for one in right]
    low, high = accuracy_interval(single)
    # Of a share p of n: p ± 1.96 √(p (1 - p) / n).
    half = 1.96 * np.sqrt(right.mean() * (1 - right.mean()) / 400)
    assert (low, high) == pytest.approx((right.mean() - half, right.mean() + half), abs=0.01)
    docs = [NLP.make_doc("x") for _ in range(40)]
    alike = [outcome(right[i // 10], docs[i // 10]) for i in range(400)]
    wide = np.diff(accuracy_interval(alike))[0]
    assert wide > 2 * (high - low), "mentions of one document are right or wrong together"
    assert accuracy_interval(alike[:10]) is None


def test_the_interval_does_not_depend_on_where_documents_are_in_memory():
    found = documents(12)
    copies = [
        result._replace(span=Span(doc, 0, 1, "X"))
        for part, doc in zip(found, [NLP.make_doc("one") for _ in found][::-1])
        for result in part
    ]
    flat = [result for part in found for result in part]
    assert accuracy_interval(copies) == accuracy_interval(flat)
