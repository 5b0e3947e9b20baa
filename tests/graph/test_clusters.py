"""Clusters of mentions at many thresholds, compared with a slow procedure at each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import graph
from spacy_arbo_el.base import compiling
from spacy_arbo_el.graph.clusters import METHODS

from .strategies import cluster_slowly, graphs

methods = pytest.mark.parametrize("method", METHODS)
alone = graphs(most_entities=0, most_mentions=12, most_edges=50)
levels = st.lists(
    st.sampled_from([-np.inf, -2.0, -1.0, -0.25, 0.0, 0.5, 1.0, 2.5, np.inf]), max_size=9
)


@methods
@given(alone, levels)
def test_rows_equal_a_slow_procedure_at_each_threshold(method, drawn, thresholds):
    clusters = graph.cluster(*drawn[1:5], np.array(thresholds), method=method)
    assert clusters.shape == (len(thresholds), drawn[1])
    for row, threshold in zip(clusters, thresholds):
        assert row.tolist() == cluster_slowly(*drawn[1:5], threshold, method)


@methods
@given(alone)
def test_the_interpreter_gives_what_the_compiled_code_gives(method, drawn):
    with pytest.MonkeyPatch.context() as patch:
        compiled = graph.cluster(*drawn[1:5], [drawn[5]], method=method)
        patch.setattr(compiling.Compiled, "__call__", lambda f, *args: f.compiled.py_func(*args))
        interpreted = graph.cluster(*drawn[1:5], [drawn[5]], method=method)
    np.testing.assert_array_equal(compiled, interpreted)
    assert compiled.dtype == interpreted.dtype


def test_errors_say_what_is_wrong():
    edge = (np.array([0]), np.array([1]), np.array([1.0]))
    with pytest.raises(ValueError, match="threshold is NaN"):
        graph.cluster(2, *edge, [0.0, np.nan])
    with pytest.raises(ValueError, match="'weak', 'arborescence'"):
        graph.cluster(2, *edge, [0.0], method="single")
