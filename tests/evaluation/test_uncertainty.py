"""Standard errors of scores against bootstrap samples of the documents."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Span

from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.scorer import score_outcomes
from spacy_arbo_el.evaluation.seen import Seen, score_by_seen
from spacy_arbo_el.evaluation.uncertainty import standard_errors
from spacy_arbo_el.mentions.annotations import Link

NLP = spacy.blank("en")
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
