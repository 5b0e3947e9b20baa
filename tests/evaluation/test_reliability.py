"""Reliability: bins against a loop, and the outcomes that count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.evaluation.outcomes import Outcome
from spacy_arbo_el.evaluation.reliability import reliability, reliability_of_links
from spacy_arbo_el.mentions.annotations import Link

PREDICTIONS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60)


def slow_error(predictions, bins):
    """The expected calibration error, as its definition reads."""
    total = 0.0
    for number in range(bins):
        inside = [(p, c) for p, c in predictions if min(int(p * bins), bins - 1) == number]
        if inside:
            gap = np.mean([p for p, _ in inside]) - np.mean([c for _, c in inside])
            total += abs(gap) * len(inside) / len(predictions)
    return total


@given(PREDICTIONS, st.integers(1, 12))
def test_error_is_that_of_the_definition(predictions, bins):
    probability = np.array([p for p, _ in predictions], dtype=float)
    correct = np.array([c for _, c in predictions], dtype=bool)
    result = reliability(probability, correct, bins)
    assert result.error == pytest.approx(slow_error(predictions, bins), abs=1e-9)
    assert result.count.sum() == len(predictions) and (result.count > 0).all()


def link(kb_id, score, *ids):
    return Link(kb_id, score, ids, (score,) * len(ids))


def test_outcomes_that_count():
    outcomes = [
        Outcome("X", ("a",), "a", link("a", 0.9, "a", "b")),
        # Linked to an entity that is not the first candidate.
        Outcome("X", ("a",), "b", link("b", 0.8, "a", "b")),
        # NIL: the first candidate was rejected, and was right.
        Outcome("X", ("a",), "NIL", link("NIL", 0.3, "a")),
        Outcome("X", (), "NIL", link("NIL", 0.1, "b")),
        # No gold mention, no predicted mention, no candidate.
        Outcome("X", None, "a", link("a", 1.0, "a")),
        Outcome("X", ("a",), None, None),
        Outcome("X", ("a",), "NIL", link("NIL", 0.0)),
    ]
    result = reliability_of_links(outcomes)
    assert result.count.tolist() == [1, 1, 1, 1]
    assert result.probability == pytest.approx([0.1, 0.3, 0.8, 0.9])
    assert result.accuracy.tolist() == [0, 1, 0, 1]
    assert result.error == pytest.approx((0.1 + 0.7 + 0.8 + 0.1) / 4)
    assert reliability_of_links([]).error == 0
