"""What the curves are fitted on."""

import numpy as np

from spacy_arbo_el.evaluation.calibrate import _mention_edges, _Observed
from spacy_arbo_el.inference.calibration import Calibration
from spacy_arbo_el.retrieval.neighbours import Neighbours


def test_edges_between_mentions_count_where_their_entities_differ():
    """Mentions 0 and 1 go to entity 5 anyway, 2 and 3 to others: 2 means what 0 means."""
    nearest = np.array([[5], [5], [7], [8]])
    none = np.zeros((4, 0))
    others = np.array([[1, 2], [0, 3], [0, 3], [2, -1]])
    similarity = np.array([[0.9, 0.8], [0.9, 0.4], [0.8, 0.3], [0.3, -np.inf]], np.float32)
    neighbours = Neighbours(
        document=np.zeros(4, np.int64),
        entities=nearest,
        entity_similarity=np.full((4, 1), 0.5, np.float32),
        exemplars=none.astype(np.int64),
        exemplar_similarity=none.astype(np.float32),
        exemplar_entity=none.astype(np.int64),
        mentions=others,
        mention_similarity=similarity,
    )
    observed = _Observed(neighbours, [{5}, {5}, {5}, set()], [{"a"}, {"a"}, {"a"}, {"new:1"}])
    ((kind, points, right),) = _mention_edges([observed], Calibration())
    assert kind == "mention"
    np.testing.assert_array_equal(points, np.array([0.8, 0.4, 0.8, 0.3, 0.3], np.float32))
    assert right.tolist() == [True, False, True, False, False]
