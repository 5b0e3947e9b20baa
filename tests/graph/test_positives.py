"""Positives of gold clusters against the arborescence of the graph written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_arbo_el import graph


def similarities(vectors, metric):
    if metric == "ip":
        return vectors @ vectors.T
    return -np.square(vectors[:, None] - vectors[None]).sum(-1)


def written_out(pairs, entity_similarity, members):
    """Parents of the graph that joins ``members`` with each other and the entity with all."""
    size = len(members)
    source, target = np.nonzero(~np.eye(size, dtype=bool))
    weight = np.concatenate(
        [-entity_similarity[members], -pairs[members][:, members][source, target]]
    )
    parent = graph.arborescence(
        1,
        size,
        np.concatenate([np.zeros(size, int), 1 + source]),
        np.concatenate([1 + np.arange(size), 1 + target]),
        weight,
    ).parent
    return [members[p - 1] if p > 0 else -1 for p in parent]


@st.composite
def clusters(draw, smallest=1):
    sizes = draw(st.lists(st.integers(smallest, 9), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    vectors = rng.normal(size=(sum(sizes), 4)).astype(np.float32)
    similarity = rng.normal(size=sum(sizes)).astype(np.float32) * 3
    return vectors, similarity, np.concatenate([[0], np.cumsum(sizes)]), rng


@settings(max_examples=150, deadline=None)
@given(clusters(), st.sampled_from(["ip", "l2"]))
def test_parents_are_the_arborescence_of_the_complete_graph(drawn, metric):
    vectors, similarity, offsets, _ = drawn
    found = graph.gold_parents(vectors, similarity, offsets, metric=metric)
    pairs = similarities(vectors, metric)
    expected = []
    for begin, end in zip(offsets[:-1], offsets[1:]):
        expected += written_out(pairs, similarity, np.arange(begin, end))
    assert found.tolist() == expected


@settings(max_examples=100, deadline=None)
@given(clusters(), st.data())
def test_queries_get_what_all_would(drawn, data):
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


@settings(max_examples=150, deadline=None)
@given(clusters(), st.sampled_from(["ip", "l2"]))
def test_1nn_is_the_arborescence_of_entity_query_and_nearest_mention(drawn, metric):
    vectors, similarity, offsets, _ = drawn
    found = graph.gold_parents_1nn(vectors, similarity, offsets, metric=metric)
    pairs = similarities(vectors, metric)
    for begin, end in zip(offsets[:-1], offsets[1:]):
        for query in range(begin, end):
            others = [m for m in range(begin, end) if m != query]
            nearest = [max(others, key=lambda m: pairs[query, m])] if others else []
            expected = written_out(pairs, similarity, np.array([query, *nearest]))
            assert found[query] == expected[0]


@settings(max_examples=100, deadline=None)
@given(clusters())
def test_1rand_is_the_arborescence_of_entity_query_and_some_mention(drawn):
    vectors, similarity, offsets, rng = drawn
    found = graph.gold_parents_1rand(vectors, similarity, offsets, rng=rng)
    pairs = similarities(vectors, "ip")
    for begin, end in zip(offsets[:-1], offsets[1:]):
        for query in range(begin, end):
            others = [m for m in range(begin, end) if m != query]
            possible = {
                written_out(pairs, similarity, np.array([query, other]))[0] for other in others
            }
            assert found[query] in (possible or {-1})


def test_1rand_draws_every_other_mention_alike():
    n, rng = 5, np.random.default_rng(0)
    # Mentions all alike and far from their entity: the parent is the mention drawn, unless the
    # entity is as near to the query as to that mention.
    vectors, similarity = np.ones((n, 2), np.float32), np.full(n, -1.0, np.float32)
    similarity[0] = -2.0
    queries = np.zeros(4000, np.int64)
    found = graph.gold_parents_1rand(
        vectors, similarity, np.array([0, n]), rng=rng, queries=queries
    )
    counts = np.bincount(found, minlength=n)
    assert counts[0] == 0 and counts[1:].min() > 900 and counts.sum() == 4000


@pytest.mark.parametrize("function", [graph.gold_parents, graph.gold_parents_1nn])
def test_without_an_entity_mentions_have_each_other(function):
    vectors = np.array([[1, 0], [0.9, 0.1], [0, 1]], np.float32)
    unknown = np.full(3, -np.inf, np.float32)
    found = function(vectors, unknown, np.array([0, 3]))
    assert found[1] == 0 and found[2] in (0, 1)
    assert found[0] == (-2 if function is graph.gold_parents else 1)
    assert function(vectors[:1], unknown[:1], np.array([0, 1])).tolist() == [-2]


def test_many_large_clusters_are_as_one_by_one():
    # Enough work for threads.
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(5 * 1000, 8)).astype(np.float32)
    similarity = rng.normal(size=5000).astype(np.float32)
    whole = graph.gold_parents(vectors, similarity, np.arange(6) * 1000)
    for begin in range(0, 5000, 1000):
        part = slice(begin, begin + 1000)
        alone = graph.gold_parents(vectors[part], similarity[part], np.array([0, 1000]))
        assert np.where(alone >= 0, alone + begin, alone).tolist() == whole[part].tolist()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"offsets": [0, 2]}, "offsets must rise from 0 to the number of mentions, 3"),
        ({"offsets": [0, 2, 1, 3]}, "offsets must rise"),
        ({"entity_similarity": [1.0, 2.0]}, "3 mention_vectors, but 2 entity_similarity"),
        ({"entity_similarity": [1.0, np.nan, 2.0]}, "entity_similarity of mention 1 is NaN"),
        ({"mention_vectors": [[0, 1], [1, np.nan], [0, 1]]}, "mention_vectors of row 1 hold NaN"),
        ({"queries": [3]}, r"queries\[0\] is 3"),
        ({"metric": "cosine"}, "no metric 'cosine'"),
    ],
)
def test_faults_are_named(change, message):
    given = {
        "mention_vectors": np.eye(3, 2, dtype=np.float32),
        "entity_similarity": np.ones(3),
        "offsets": np.array([0, 3]),
    }
    given.update({k: np.array(v) if k != "metric" else v for k, v in change.items()})
    with pytest.raises(ValueError, match=message):
        graph.gold_parents(**given)
