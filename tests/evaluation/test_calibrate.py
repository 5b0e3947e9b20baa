"""The edges that the calibration is fitted on."""

import numpy as np
import pytest

from spacy_arbo_el.arrays import TopK
from spacy_arbo_el.calibration.calibration import Calibration
from spacy_arbo_el.evaluation.calibrate import exemplar_edges, mention_edges
from spacy_arbo_el.reranking.best_evidence import rank_by_best_evidence
from spacy_arbo_el.retrieval.neighbours import Neighbours


def test_only_mention_edges_between_different_entities_are_used():
    """The best candidate of mentions 0 and 1 is entity 5. Mention 2 has the gold entity of 0."""
    nearest = np.array([[5], [5], [7], [8]])
    others = np.array([[1, 2], [0, 3], [0, 3], [2, -1]])
    similarity = np.array([[0.9, 0.8], [0.9, 0.4], [0.8, 0.3], [0.3, -np.inf]], np.float32)
    neighbours = Neighbours(
        entities=TopK(nearest, np.full((4, 1), 0.5, np.float32)),
        exemplars=TopK.empty(4),
        mentions=TopK(others, similarity),
        exemplar_entities=TopK.empty(4).ids,
    )
    ranking = rank_by_best_evidence(neighbours, Calibration(), 1)
    identities = [{"a"}, {"a"}, {"a"}, {"new:1"}]
    scores, correct = mention_edges(ranking, neighbours.mentions, identities)
    np.testing.assert_array_equal(scores, np.array([0.8, 0.4, 0.8, 0.3, 0.3], np.float32))
    assert correct.tolist() == [True, False, True, False, False]


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
    scores, correct = exemplar_edges(neighbours, np.array([[5], [7]]))
    kept = slice(1, None) if has_texts else slice(None)
    np.testing.assert_array_equal(scores, np.array([0.8, 0.7, 0.6], np.float32)[kept])
    assert correct.tolist() == [True, False, True][kept]
