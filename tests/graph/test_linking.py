"""Links by each method, compared with slow procedures, and what every method has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import graph
from spacy_arbo_el.graph.linking import METHODS

from ..cases import cases
from ..expecting import raises
from .strategies import (
    arborescence,
    assert_interpreted_alike,
    delete_literally,
    graphs,
    naive_single_linkage,
    path_to,
    smallest_bottlenecks,
)

methods = pytest.mark.parametrize("method", METHODS)


def linked(drawn, method):
    return graph.link(*drawn[:5], threshold=drawn[5], method=method)


@methods
@given(graphs())
def test_the_interpreter_gives_what_the_compiled_code_gives(method, drawn):
    assert_interpreted_alike(lambda: linked(drawn, method))


@methods
@given(graphs())
def test_link_gives_consistent_paths_and_scores(method, drawn):
    entities, mentions, *_, threshold = drawn
    links = linked(drawn, method)
    for mention in range(mentions):
        if links.entity[mention] < 0:
            assert links.score[mention] == np.inf
            assert links.parent[mention] == -1
            continue
        nodes = path_to(links.parent, entities, mention)
        weights = links.weight[nodes[1:] - entities]
        assert nodes[0] == links.entity[mention]
        assert weights.max() == links.score[mention]
        assert links.score[mention] <= threshold


@methods
@given(graphs(), st.randoms(use_true_random=False))
def test_links_do_not_depend_on_the_order_of_nodes(method, drawn, random):
    entities, mentions, source, target, weight, threshold = drawn
    new_mention, new_entity = list(range(mentions)), list(range(entities))
    random.shuffle(new_mention)
    random.shuffle(new_entity)
    number = np.array(new_entity + [entities + m for m in new_mention])
    renumbered = (entities, mentions, number[source], number[target], weight)
    before = linked(drawn, method)
    after = graph.link(*renumbered, threshold=threshold, method=method)
    expected = [new_entity[e] if e >= 0 else -1 for e in before.entity]
    assert after.entity[new_mention].tolist() == expected
    assert after.score[new_mention].tolist() == before.score.tolist()


@pytest.mark.parametrize("arguments, message", cases("wrong_graphs"))
def test_link_errors_say_what_is_wrong(arguments, message):
    counts, arrays = arguments[:2], [np.array(a) for a in arguments[2:]]
    with raises(message):
        graph.link(*counts, *arrays)


def test_link_rejects_unknown_methods_and_nan_thresholds():
    edge = (np.array([0]), np.array([1]), np.array([1.0]))
    with raises("'arborescence', 'minimax'.*best"):
        graph.link(1, 1, *edge, method="best")
    with raises("threshold is NaN"):
        graph.link(1, 1, *edge, threshold=np.nan)


@given(graphs() | graphs(most_entities=2, most_mentions=14, most_edges=60))
def test_arborescence_keeps_the_same_edges_as_literal_deletion(drawn):
    entities, mentions, source, target, weight, threshold = drawn
    forest = arborescence(*drawn)
    left = delete_literally(*drawn)
    assert forest.edge.tolist() == [left.get(entities + m, -1) for m in range(mentions)]
    valid = forest.edge >= 0
    assert (forest.parent[valid] == source[forest.edge[valid]]).all()
    assert (forest.parent[~valid] == -1).all()


def test_arborescence_of_long_chains_and_cycles_does_not_recurse():
    n = 50_000
    ring = np.arange(n)
    source = np.concatenate([[0], 1 + ring])
    target = np.concatenate([[1], 1 + (ring + 1) % n])
    weight = np.concatenate([[5.0], np.linspace(0, 1, n)])
    forest = arborescence(1, n, source, target, weight)
    assert forest.parent.tolist() == list(range(n))


@given(graphs(most_mentions=5, most_edges=16))
def test_minimax_links_each_mention_to_an_entity_with_the_smallest_bottleneck(drawn):
    entities, mentions = drawn[:2]
    best = smallest_bottlenecks(*drawn)
    links = linked(drawn, "minimax")
    for mention in range(mentions):
        smallest = min((best.get((e, mention), np.inf) for e in range(entities)), default=np.inf)
        assert links.score[mention] == smallest
        entity = links.entity[mention]
        if entity >= 0:
            assert best[entity, mention] == smallest
        else:
            assert all((e, mention) not in best for e in range(entities))


@given(graphs())
def test_undirected_clusters_equal_naive_single_linkage(drawn):
    entities, mentions = drawn[:2]
    links = linked(drawn, "undirected")
    clusters = naive_single_linkage(*drawn)
    of = {node: number for number, cluster in enumerate(clusters) for node in cluster}
    expected = [of[entities + m] for m in range(mentions)]
    for mention in range(mentions):
        entity = [node for node in clusters[expected[mention]] if node < entities]
        assert links.entity[mention] == (entity[0] if entity else -1)
