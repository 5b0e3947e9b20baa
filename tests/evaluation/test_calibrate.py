"""The edges that the calibration is fitted on."""

import numpy as np

from spacy_arbo_el.arrays import TopK
from spacy_arbo_el.calibration.calibration import Calibration
from spacy_arbo_el.evaluation.calibrate import mention_edges
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
