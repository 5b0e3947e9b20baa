"""Sweeps give at each threshold the same as linking and clustering at that threshold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import graph
from spacy_arbo_el.graph.components import LEFTOVERS
from spacy_arbo_el.graph.linking import METHODS

from .strategies import cluster_one_by_one, graphs

levels = st.lists(
    st.sampled_from([-np.inf, -2.0, -1.0, -0.25, 0.0, 0.5, 1.0, 2.5, np.inf]), max_size=9
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("leftover", LEFTOVERS)
@given(graphs() | graphs(most_entities=0, most_mentions=12, most_edges=50), levels)
def test_sweep_rows_equal_linking_at_each_threshold(method, leftover, drawn, thresholds):
    options = {"method": method, "leftover": leftover}
    swept = graph.sweep(*drawn[:5], thresholds=np.array(thresholds), **options)
    assert swept.entity.shape == swept.cluster.shape == (len(thresholds), drawn[1])
    for row, threshold in enumerate(thresholds):
        links = graph.link(*drawn[:5], threshold=threshold, method=method)
        assert swept.entity[row].tolist() == links.entity.tolist()
        expected = cluster_one_by_one((*drawn[:5], threshold), method, leftover)
        assert swept.cluster[row].tolist() == expected.tolist()


def test_sweep_errors_say_what_is_wrong():
    edge = (np.array([0]), np.array([1]), np.array([1.0]))
    with pytest.raises(ValueError, match="threshold is NaN"):
        graph.sweep(1, 1, *edge, thresholds=[0.0, np.nan])
    with pytest.raises(ValueError, match="thresholds must have 1 dimension"):
        graph.sweep(1, 1, *edge, thresholds=[[0.0]])
    with pytest.raises(ValueError, match="no method"):
        graph.sweep(1, 1, *edge, thresholds=[0.0], method="single")
    with pytest.raises(ValueError, match="no leftover 'loose'"):
        graph.sweep(1, 1, *edge, thresholds=[0.0], leftover="loose")
