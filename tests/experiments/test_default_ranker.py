"""What the default curves are fitted on."""

import sys
from pathlib import Path

import numpy as np
import pytest
from spacy.util import import_file

from spacy_arbo_el.base.arrays import TopK
from spacy_arbo_el.retrieval.neighbours import Neighbours

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
sys.path.insert(0, str(EXPERIMENTS))
default_ranker = import_file("default_ranker", EXPERIMENTS / "default_ranker.py")


@pytest.mark.parametrize("has_texts", [True, False])
def test_only_exemplar_edges_that_change_a_link_are_used(has_texts):
    """The nearest text of both mentions is one of entity 5, which is the gold entity of 0."""
    texts = TopK(np.array([[5, 6], [5, 6]]), np.array([[0.9, 0.1]] * 2, np.float32))
    exemplars = np.array([[10, 11], [12, -1]])
    neighbours = Neighbours(
        entities=texts if has_texts else TopK.empty(2),
        exemplars=TopK(exemplars, np.array([[0.8, 0.7], [0.6, -np.inf]], np.float32)),
        mentions=TopK.empty(2),
        exemplar_entities=np.array([[5, 7], [7, -1]]),
    )
    scores, correct = default_ranker.exemplar_edges(neighbours, np.array([[5], [7]]))
    kept = slice(1, None) if has_texts else slice(None)
    np.testing.assert_array_equal(scores, np.array([0.8, 0.7, 0.6], np.float32)[kept])
    assert correct.tolist() == [True, False, True][kept]
