"""Sums of decision trees, against the library that fits them and a walk from node to node."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.ranking.trees import Trees

from ..expecting import raises

N_COLUMNS = 3


@st.composite
def some_trees(draw):
    """Trees whose nodes lead to later ones."""
    sizes = draw(st.lists(st.integers(1, 7), max_size=4))
    numbers = st.floats(-2, 2)
    roots, rows = [], []
    for size in sizes:
        start = len(rows)
        roots.append(start)
        for place in range(size):
            left = size - place - 1
            is_leaf = left == 0 or draw(st.booleans())
            column = -1 if is_leaf else draw(st.integers(0, N_COLUMNS - 1))
            following = st.integers(start + place + 1, start + size - 1)
            two = (0, 0) if is_leaf else (draw(following), draw(following))
            rows.append((column, draw(numbers), *two, draw(numbers)))
    columns, limits, below, above, values = zip(*rows) if rows else ([], [], [], [], [])
    whole = [np.array(part, dtype=np.int64) for part in (roots, columns, below, above)]
    return Trees(
        roots=whole[0],
        feature=whole[1],
        threshold=np.array(limits, dtype=np.float64),
        left=whole[2],
        right=whole[3],
        values=np.array(values, dtype=np.float64),
    )


def walked(trees, row):
    """The sum for one row, node by node."""
    total = 0.0
    for node in trees.roots:
        while trees.feature[node] >= 0:
            is_below = row[trees.feature[node]] <= trees.threshold[node]
            node = trees.left[node] if is_below else trees.right[node]
        total += trees.values[node]
    return total


@given(some_trees(), st.lists(st.lists(st.floats(-2, 2), min_size=3, max_size=3), max_size=5))
def test_values_are_those_of_a_walk_from_node_to_node(trees, rows):
    evidence = np.array(rows, dtype=np.float64).reshape(-1, N_COLUMNS)
    expected = [walked(trees, row) for row in evidence]
    np.testing.assert_allclose(trees(evidence), expected, atol=1e-12)


@given(some_trees())
def test_arrays_are_read_back(trees):
    again = Trees.from_arrays(trees.to_arrays(), N_COLUMNS)
    for name, array in trees.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], array)


def test_no_trees_say_nothing():
    assert Trees.none()(np.ones((2, N_COLUMNS))).tolist() == [0.0, 0.0]


STUMP = Trees(
    roots=np.array([0]),
    feature=np.array([1, -1, -1]),
    threshold=np.array([0.5, 0.0, 0.0]),
    left=np.array([1, 0, 0]),
    right=np.array([2, 0, 0]),
    values=np.array([0.0, -1.0, 1.0]),
)


@pytest.mark.parametrize(
    "name, array, problem",
    [
        ("left", np.array([0, 0, 0]), "no trees"),
        ("right", np.array([3, 0, 0]), "no trees"),
        ("roots", np.array([3]), "no trees"),
        ("roots", np.array([-1]), "no trees"),
        ("feature", np.array([3, -1, -1]), "no trees"),
        ("feature", np.array([-2, -1, -1]), "no trees"),
        ("values", np.array([0.0, np.nan, 1.0]), "finite"),
        ("threshold", np.array([0.5]), "shape"),
        ("left", np.array([1.0, 0.0, 0.0]), "type"),
    ],
)
def test_nodes_that_are_no_trees_are_refused(name, array, problem):
    Trees.from_arrays(STUMP.to_arrays(), N_COLUMNS)
    damaged = replace(STUMP, **{name: array})
    with raises(problem):
        Trees.from_arrays(damaged.to_arrays(), N_COLUMNS)


def test_missing_arrays_are_named():
    with raises("feature"):
        Trees.from_arrays({"feature": STUMP.feature}, N_COLUMNS)
