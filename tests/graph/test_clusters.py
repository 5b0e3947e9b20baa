"""Clusters of mentions, also with decisions, compared with slow procedures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import graph
from spacy_arbo_el.graph.clusters import METHODS
from spacy_arbo_el.graph.constrained import constrained

from ..expecting import raises
from .strategies import assert_interpreted_alike, cluster_slowly, graphs

methods = pytest.mark.parametrize("method", METHODS)
alone = graphs(most_entities=0, most_mentions=12, most_edges=50)
levels = st.sampled_from([-np.inf, -2.0, -1.0, -0.25, 0.0, 0.5, 1.0, 2.5, np.inf])


@methods
@given(alone, levels)
def test_clusters_equal_those_of_a_slow_procedure(method, drawn, threshold):
    clusters = graph.cluster(*drawn[1:5], threshold, method=method)
    assert clusters.tolist() == cluster_slowly(*drawn[1:5], threshold, method)


@methods
@given(alone)
def test_the_interpreter_gives_what_the_compiled_code_gives(method, drawn):
    assert_interpreted_alike(lambda: [graph.cluster(*drawn[1:6], method=method)])


def test_errors_say_what_is_wrong():
    edge = (np.array([0]), np.array([1]), np.array([1.0]))
    with raises("threshold is NaN"):
        graph.cluster(2, *edge, np.nan)
    with raises("'weak', 'arborescence'"):
        graph.cluster(2, *edge, 0.0, method="single")


@st.composite
def decided_graphs(draw):
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node, st.integers(0, 3)), max_size=25))
    source, target, weight = (
        (np.array(c) for c in zip(*edges)) if edges else (np.zeros(0, int),) * 3
    )
    decided = draw(st.lists(st.sampled_from([-1, -1, -1, 0, 5, 9]), min_size=n, max_size=n))
    return n, source, target, weight.astype(np.float32), np.array(decided)


def literal(clusters, decided, source, target, weight):
    """Sets of nodes."""
    sets = [set(np.flatnonzero(clusters == c).tolist()) for c in np.unique(clusters)]
    for decision in np.unique(decided[decided >= 0]):
        nodes = set(np.flatnonzero(decided == decision).tolist())
        touched = [s for s in sets if s & nodes]
        sets = [s for s in sets if s not in touched] + [set().union(*touched)]
    result = []
    for whole in sets:
        decisions = {int(decided[node]) for node in whole} - {-1}
        if len(decisions) < 2:
            result.append(whole)
            continue
        parts = [{n for n in whole if decided[n] == decision} for decision in decisions]
        parts += [{node} for node in whole if decided[node] < 0]
        for edge in np.argsort(weight, kind="stable").tolist():
            ends = source[edge], target[edge]
            a, b = (next((p for p in parts if end in p), None) for end in ends)
            if a is None or b is None or a is b:
                continue
            if len({int(decided[node]) for node in a | b} - {-1}) < 2:
                parts = [p for p in parts if p is not a and p is not b] + [a | b]
        result += parts
    return {frozenset(part) for part in result}


@given(decided_graphs())
def test_constrained_equals_a_literal_procedure(drawn):
    n, source, target, weight, decided = drawn
    clusters = graph.cluster(n, source, target, weight, np.inf)
    found = constrained(clusters, decided, source, target, weight)
    sets = {frozenset(np.flatnonzero(found == c).tolist()) for c in range(found.max() + 1)}
    assert sets == literal(clusters, decided, source, target, weight)
    firsts = [int(np.flatnonzero(found == c)[0]) for c in range(found.max() + 1)]
    assert firsts == sorted(firsts), "numbered in order of their first nodes"
