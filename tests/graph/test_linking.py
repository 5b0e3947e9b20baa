"""Properties of ``link`` that every method has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el import graph
from spacy_arbo_el.base import compiling
from spacy_arbo_el.graph.linking import METHODS

from ..cases import cases
from .strategies import graphs, path_to

methods = pytest.mark.parametrize("method", METHODS)


@methods
@given(graphs())
def test_the_interpreter_gives_what_the_compiled_code_gives(method, drawn):
    with pytest.MonkeyPatch.context() as patch:
        compiled = graph.link(*drawn[:5], threshold=drawn[5], method=method)
        patch.setattr(compiling.Compiled, "__call__", lambda f, *args: f.compiled.py_func(*args))
        interpreted = graph.link(*drawn[:5], threshold=drawn[5], method=method)
    for one, other in zip(compiled, interpreted):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


@methods
@given(graphs())
def test_link_gives_consistent_paths_and_scores(method, drawn):
    entities, mentions, *_, threshold = drawn
    links = graph.link(*drawn[:5], threshold=threshold, method=method)
    for mention in range(mentions):
        if links.entity[mention] < 0:
            assert links.score[mention] == np.inf and links.parent[mention] == -1
            continue
        nodes = path_to(links.parent, entities, mention)
        weights = links.weight[nodes[1:] - entities]
        assert nodes[0] == links.entity[mention]
        assert weights.max() == links.score[mention] <= threshold


@methods
@given(graphs(), st.randoms(use_true_random=False))
def test_links_do_not_depend_on_the_order_of_nodes(method, drawn, random):
    entities, mentions, source, target, weight, threshold = drawn
    new_mention, new_entity = list(range(mentions)), list(range(entities))
    random.shuffle(new_mention)
    random.shuffle(new_entity)
    number = np.array(new_entity + [entities + m for m in new_mention])
    renumbered = (entities, mentions, number[source], number[target], weight)
    before = graph.link(*drawn[:5], threshold=threshold, method=method)
    after = graph.link(*renumbered, threshold=threshold, method=method)
    expected = [new_entity[e] if e >= 0 else -1 for e in before.entity]
    assert after.entity[new_mention].tolist() == expected
    assert after.score[new_mention].tolist() == before.score.tolist()


def test_arborescence_and_minimax_differ_on_the_example_of_the_docs():
    source, target = np.array([0, 1, 2]), np.array([2, 3, 3])
    weight = np.array([10, 1, 0.5], dtype=np.float32)
    assert graph.link(2, 2, source, target, weight).entity.tolist() == [0, 0]
    minimax = graph.link(2, 2, source, target, weight, method="minimax")
    assert minimax.entity.tolist() == [0, 1] and minimax.score.tolist() == [10.0, 1.0]


@pytest.mark.parametrize("arguments, message", cases("wrong_graphs"))
def test_link_errors_say_what_is_wrong(arguments, message):
    counts, arrays = arguments[:2], [np.array(a) for a in arguments[2:]]
    with pytest.raises(ValueError, match=message):
        graph.link(*counts, *arrays)


def test_link_rejects_unknown_methods_and_nan_thresholds():
    edge = (np.array([0]), np.array([1]), np.array([1.0]))
    with pytest.raises(ValueError, match="'arborescence', 'minimax'.*best"):
        graph.link(1, 1, *edge, method="best")
    with pytest.raises(ValueError, match="threshold is NaN"):
        graph.link(1, 1, *edge, threshold=np.nan)


def test_link_takes_empty_graphs():
    empty = np.empty(0, np.int64)
    links = graph.link(0, 0, empty, empty, np.empty(0))
    assert [len(column) for column in links] == [0] * 4
    alone = graph.link(3, 2, empty, empty, np.empty(0))
    assert alone.entity.tolist() == [-1, -1]
    assert graph.cluster(2, empty, empty, np.empty(0), [0.0]).tolist() == [[0, 1]]
