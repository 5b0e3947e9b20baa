"""Each mention linked to its first candidate."""

import numpy as np

from spacy_arbo_el.base.calibration import Calibration
from spacy_arbo_el.ranking.decisions import Independent

from .examples import decide, neighbours_of, nothing, top_k


def test_independent_links_to_the_best_text_or_exemplar_at_the_threshold():
    neighbours = neighbours_of(
        top_k([[2, 0], [2, 0], [-1, -1]], [[0.9, 0.3], [0.6, 0.3], [0, 0]]),
        top_k([[5], [5], [-1]], [[0.9], [0.7], [0]]),
        [[1], [0], [-1]],
    )
    calibration = Calibration(entity=(10.0, -6.0), exemplar=(10.0, -5.0))
    decisions = decide(Independent(8), neighbours, calibration, -np.inf)
    # Equal ones would go to the first in the knowledge base; here exemplars have better curves.
    assert decisions.entities.tolist() == [1, 0, -1]
    assert decisions.logits.tolist() == [4.0, np.float32(2.0), -np.inf]
    kinds = [[(step.kind, step.ref) for step in path] for path in decisions.paths]
    assert kinds == [
        [("entity", 1), ("exemplar", 5), ("mention", 0)],
        [("entity", 0), ("exemplar", 5), ("mention", 1)],
        [],
    ]
    decisions = decide(Independent(8), neighbours, calibration, 3.0)
    assert decisions.entities.tolist() == [1, -1, -1] and decisions.paths[1] == []
    by_text = decide(Independent(), neighbours_of(neighbours.entities), calibration, -np.inf)
    assert by_text.entities.tolist() == [2, 2, -1]
    assert [step.kind for step in by_text.paths[0]] == ["entity", "mention"]


def test_independent_without_any_candidates_links_nothing():
    decisions = decide(Independent(), neighbours_of(nothing(2)), Calibration(), -np.inf)
    assert decisions.entities.tolist() == [-1, -1] and list(decisions.paths) == [[], []]
