"""Positives of gold clusters, compared with the arborescence of the complete graph."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import graph

from ..expecting import raises


def similarities(vectors, metric):
    if metric == "ip":
        return vectors @ vectors.T
    return -np.square(vectors[:, None] - vectors[None]).sum(-1)


def arborescence_parents(pairs, entity_similarity, members):
    """Parents of the graph that joins ``members`` with each other and the entity with all."""
    size = len(members)
    source, target = np.nonzero(~np.eye(size, dtype=bool))
    weight = np.concatenate(
        [-entity_similarity[members], -pairs[members][:, members][source, target]]
    )
    parent = graph.link(
        1,
        size,
        np.concatenate([np.zeros(size, int), 1 + source]),
        np.concatenate([1 + np.arange(size), 1 + target]),
        weight,
    ).parent
    return [members[p - 1] if p > 0 else -1 for p in parent]


def queries_of(offsets):
    """Each mention with the others of its cluster."""
    for members in map(range, offsets[:-1], offsets[1:]):
        yield from ((query, [m for m in members if m != query]) for query in members)


@st.composite
def clusters(draw, smallest=1):
    sizes = draw(st.lists(st.integers(smallest, 9), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    vectors = rng.normal(size=(sum(sizes), 4)).astype(np.float32)
    similarity = rng.normal(size=sum(sizes)).astype(np.float32) * 3
    return vectors, similarity, np.concatenate([[0], np.cumsum(sizes)]), rng


@given(clusters(), st.sampled_from(["ip", "l2"]))
def test_gold_parents_equal_the_arborescence_of_the_complete_graph(drawn, metric):
    vectors, similarity, offsets, _ = drawn
    parents = graph.gold_parents(vectors, similarity, offsets, metric=metric)
    pairs = similarities(vectors, metric)
    expected = []
    for begin, end in zip(offsets[:-1], offsets[1:]):
        expected += arborescence_parents(pairs, similarity, np.arange(begin, end))
    assert parents.tolist() == expected


@given(clusters(), st.data())
def test_gold_parents_of_queries_equal_those_of_all_mentions(drawn, data):
    vectors, similarity, offsets, rng = drawn
    queries = np.array(
        data.draw(st.lists(st.integers(0, len(vectors) - 1), max_size=6)), dtype=np.int64
    )
    for function in (graph.gold_parents, graph.gold_parents_1nn):
        whole = function(vectors, similarity, offsets)
        assert (
            function(vectors, similarity, offsets, queries=queries).tolist()
            == whole[queries].tolist()
        )


@given(clusters(), st.sampled_from(["ip", "l2"]))
def test_gold_parents_1nn_equal_the_arborescence_of_three_nodes(drawn, metric):
    vectors, similarity, offsets, _ = drawn
    parents = graph.gold_parents_1nn(vectors, similarity, offsets, metric=metric)
    pairs = similarities(vectors, metric)
    for query, others in queries_of(offsets):
        nearest = [max(others, key=lambda m: pairs[query, m])] if others else []
        expected = arborescence_parents(pairs, similarity, np.array([query, *nearest]))
        assert parents[query] == expected[0]


@given(clusters())
def test_gold_parents_1rand_equal_the_arborescence_of_three_nodes(drawn):
    vectors, similarity, offsets, rng = drawn
    parents = graph.gold_parents_1rand(vectors, similarity, offsets, rng=rng)
    pairs = similarities(vectors, "ip")
    for query, others in queries_of(offsets):
        possible = {
            arborescence_parents(pairs, similarity, np.array([query, other]))[0] for other in others
        }
        assert parents[query] in (possible or {-1})


def test_gold_parents_1rand_of_a_mention_alone_does_not_look_at_others():
    vectors, similarity = np.array([[1.0], [np.nan]], np.float32), np.ones(2, np.float32)
    rng, bounds = np.random.default_rng(0), np.arange(3)
    assert graph.gold_parents_1rand(vectors, similarity, bounds, rng=rng, queries=bounds[:1]) == -1


def test_gold_parents_1rand_draws_other_mentions_uniformly():
    n, rng = 5, np.random.default_rng(0)
    # All mentions are equal and far from their entity. The parent is the mention drawn, unless the
    # entity is as similar to the query as to that mention.
    vectors, similarity = np.ones((n, 2), np.float32), np.full(n, -1.0, np.float32)
    similarity[0] = -2.0
    queries = np.zeros(4000, np.int64)
    parents = graph.gold_parents_1rand(
        vectors, similarity, np.array([0, n]), rng=rng, queries=queries
    )
    counts = np.bincount(parents, minlength=n)
    assert counts[0] == 0
    assert counts[1:].min() > 900
    assert counts.sum() == 4000


@pytest.mark.parametrize("function", [graph.gold_parents, graph.gold_parents_1nn])
def test_gold_parents_without_an_entity_are_other_mentions(function):
    vectors = np.array([[1, 0], [0.9, 0.1], [0, 1]], np.float32)
    unknown = np.full(3, -np.inf, np.float32)
    parents = function(vectors, unknown, np.array([0, 3]))
    assert parents[1] == 0
    assert parents[2] in (0, 1)
    assert parents[0] == (-2 if function is graph.gold_parents else 1)
    assert function(vectors[:1], unknown[:1], np.array([0, 1])).tolist() == [-2]


def test_gold_parents_of_many_clusters_in_threads_equal_those_of_single_clusters():
    # Enough work for threads.
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(5 * 1000, 8)).astype(np.float32)
    similarity = rng.normal(size=5000).astype(np.float32)
    whole = graph.gold_parents(vectors, similarity, np.arange(6) * 1000)
    for begin in range(0, 5000, 1000):
        part = slice(begin, begin + 1000)
        alone = graph.gold_parents(vectors[part], similarity[part], np.array([0, 1000]))
        assert np.where(alone >= 0, alone + begin, alone).tolist() == whole[part].tolist()


@pytest.mark.parametrize("vectors, similarity", [([1, np.nan, 0], 1), ([1, 1, 0], np.nan)])
def test_nan_is_an_error_that_names_the_mention(vectors, similarity):
    vectors = np.array(vectors, np.float32)[:, None]
    similarity = np.array([1, similarity, 1], np.float32)
    with raises("mention 1 is NaN"):
        graph.gold_parents(vectors, similarity, np.array([0, 3]))
