"""Average linkage over edges, compared with SciPy's over all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score

from spacy_arbo_el.graph.averages import average_joins
from spacy_arbo_el.graph.levels import labels_at


def vectors_of(seed, count, width=6):
    vectors = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def clusters(vectors, source, target, limits, **settings):
    joins = average_joins(vectors, source, target, max(limits), **settings)
    return labels_at(len(vectors), joins, np.array(limits, dtype=np.float32))


@given(st.integers(0, 10_000), st.integers(2, 25), st.booleans())
def test_average_linkage_on_the_complete_graph_equals_scipy(seed, count, euclidean):
    vectors = vectors_of(seed, count)
    source, target = np.nonzero(~np.eye(count, dtype=bool))
    double = vectors.astype(np.float64)
    distance = -(double @ double.T)
    if euclidean:
        distance = ((double[:, None] - double[None]) ** 2).sum(axis=2)
    shift = 2.0  # SciPy wants distances that are not negative
    table = distance + shift * ~np.eye(count, dtype=bool)
    np.fill_diagonal(table, 0)
    tree = linkage(squareform(table, checks=False), "average")
    limits = np.sort(np.random.default_rng(seed).uniform(distance.min(), distance.max(), 3))
    rows = clusters(vectors, source, target, limits.tolist(), euclidean=euclidean)
    for labels, limit in zip(rows, limits):
        expected = fcluster(tree, limit + shift, "distance")
        assert adjusted_rand_score(expected, labels) == pytest.approx(1.0)


@given(st.integers(0, 10_000), st.integers(2, 25))
def test_average_linkage_joins_only_connected_nodes_at_rising_levels(seed, count):
    rng = np.random.default_rng(seed)
    vectors = vectors_of(seed, count)
    source, target = rng.integers(0, count, (2, count))
    joins = average_joins(vectors, source, target, 1.0)
    assert (np.diff(joins.level) >= 0).all()
    (labels,) = labels_at(count, joins, np.array([1.0], dtype=np.float32))
    (linked,) = clusters(vectors, source, target, [1.0])
    # With a limit above all dissimilarities, clusters are the graph's components.
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    graph = csr_matrix((np.ones(count), (source, target)), shape=(count, count))
    expected = connected_components(graph, directed=False)[1]
    assert adjusted_rand_score(expected, labels) == pytest.approx(1.0)
    assert (labels == linked).all()
