"""Rankings from scored entries."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.base.arrays import TopK
from spacy_arbo_el.ranking.ranking import Ranking

from ..base.test_arrays import padded, rows_of, tables


@given(tables(), st.integers(0, 7))
def test_from_scored_sorts_by_score_then_id_and_keeps_each_id_once(table, count):
    expected = []
    for row in rows_of(TopK(*table)):
        best = {}
        for i, score in row:
            if i >= 0:
                best[i] = max(best.get(i, -np.inf), score)
        expected.append(padded(sorted(best.items(), key=lambda x: (-x[1], x[0])), count))
    ids, scores = table
    actual = Ranking.from_scored(ids, scores, ids, count)
    assert rows_of(actual.candidates) == expected
    assert actual.candidates.ids.dtype == np.int64
    assert actual.candidates.scores.dtype == np.float32
    assert actual.candidates.ids.shape == (len(ids), count)
    # Here the exemplar of each entry is its own id: both come from the same entry.
    assert actual.exemplars.tolist() == actual.candidates.ids.tolist()
