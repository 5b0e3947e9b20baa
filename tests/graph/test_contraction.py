"""The arborescence, compared with the paper's deletion procedure."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from .strategies import arborescence, delete_literally, graphs


@given(graphs() | graphs(most_entities=2, most_mentions=14, most_edges=60))
def test_arborescence_keeps_the_same_edges_as_literal_deletion(drawn):
    entities, mentions, source, target, weight, threshold = drawn
    forest = arborescence(*drawn)
    left = delete_literally(*drawn)
    assert forest.edge.tolist() == [left.get(entities + m, -1) for m in range(mentions)]
    valid = forest.edge >= 0
    assert (forest.parent[valid] == source[forest.edge[valid]]).all()
    assert (forest.parent[~valid] == -1).all()


@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(1, 6))
def test_arborescence_of_neighbour_graphs_with_distinct_weights_equals_literal_deletion(
    seed, mentions, k
):
    rng = np.random.default_rng(seed)
    source = np.concatenate(
        [rng.integers(0, 3, mentions), rng.integers(3, 3 + mentions, mentions * k)]
    )
    target = 3 + np.concatenate([np.arange(mentions), np.repeat(np.arange(mentions), k)])
    weight = rng.normal(size=len(source)).astype(np.float32)
    drawn = (3, mentions, source, target, weight, 0.5)
    forest = arborescence(*drawn)
    left = delete_literally(*drawn)
    assert forest.edge.tolist() == [left.get(3 + m, -1) for m in range(mentions)]


def test_arborescence_of_long_chains_and_cycles_does_not_recurse():
    n = 50_000
    ring = np.arange(n)
    source = np.concatenate([[0], 1 + ring])
    target = np.concatenate([[1], 1 + (ring + 1) % n])
    weight = np.concatenate([[5.0], np.linspace(0, 1, n)])
    forest = arborescence(1, n, source, target, weight)
    assert forest.parent.tolist() == list(range(n))
