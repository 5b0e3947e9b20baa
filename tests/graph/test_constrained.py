"""Clusters that keep decisions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.graph.clusters import cluster
from spacy_arbo_el.graph.constrained import constrained


@st.composite
def graphs(draw):
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


@given(graphs())
def test_constrained_equals_a_literal_procedure(graph):
    n, source, target, weight, decided = graph
    (clusters,) = cluster(n, source, target, weight, [np.inf])
    found = constrained(clusters, decided, source, target, weight)
    sets = {frozenset(np.flatnonzero(found == c).tolist()) for c in range(found.max() + 1)}
    assert sets == literal(clusters, decided, source, target, weight)
    firsts = [int(np.flatnonzero(found == c)[0]) for c in range(found.max() + 1)]
    assert firsts == sorted(firsts), "numbered in order of their first nodes"
