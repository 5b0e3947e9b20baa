"""B³ against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.fitting.thresholds import b_cubed

LABELS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9)


def cluster_of(labels, i):
    return {j for j, other in enumerate(labels) if other == labels[i]}


@given(LABELS)
def test_b_cubed_equals_its_definition(labels):
    gold, system = map(list, zip(*labels))
    mentions = range(len(labels))
    shared = [len(cluster_of(system, i) & cluster_of(gold, i)) for i in mentions]
    precision = np.mean([s / len(cluster_of(system, i)) for i, s in enumerate(shared)])
    recall = np.mean([s / len(cluster_of(gold, i)) for i, s in enumerate(shared)])
    scores = b_cubed(np.array(gold), np.array(system))
    assert scores[:2] == pytest.approx((precision, recall))
    assert scores[2] == pytest.approx(2 * precision * recall / (precision + recall))
    assert b_cubed(np.array(gold), np.array(gold)) == pytest.approx((1.0, 1.0, 1.0))
