"""Negatives that combine or limit others, on tables drawn at random."""

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_arbo_el.contrib.papers.moleman import BothNegatives, NegativesByFrequency
from spacy_arbo_el.contrib.papers.verbalized import NegativesWithinBudget

from ...expecting import raises

N_TEXTS = 20


@dataclass(frozen=True)
class Given:
    """Negatives that are given."""

    nodes: np.ndarray

    def __call__(self, queries, table, cache):
        return self.nodes


class Table:
    """The part of a gold table that limits look at."""

    n_texts = N_TEXTS
    text_lengths = np.arange(1, N_TEXTS + 1)

    def __init__(self, cluster):
        self.cluster = np.array(cluster)

    @property
    def cluster_sizes(self):
        return np.bincount(self.cluster[self.cluster >= 0])

    @property
    def n_labelled(self):
        return int((self.cluster >= 0).sum())

    def is_text(self, nodes):
        return nodes < N_TEXTS


def tables(low, high, min_width=0):
    width = st.integers(min_width, 5)
    node = st.integers(low, high)
    return width.flatmap(
        lambda w: st.lists(st.lists(node, min_size=w, max_size=w), min_size=1, max_size=5).map(
            lambda rows: np.array(rows, dtype=np.int64).reshape(len(rows), w)
        )
    )


@given(tables(-1, N_TEXTS - 1, 1), st.integers(1, 200))
def test_a_budget_takes_as_many_columns_as_their_distinct_texts_allow(nodes, budget):
    got = NegativesWithinBudget(Given(nodes), budget)(nodes[:, 0], Table([]), None)
    width = got.shape[1]
    assert np.array_equal(got, nodes[:, :width])
    assert width >= 1

    def cost(columns):
        texts = set(nodes[:, :columns].ravel().tolist()) - {-1}
        return sum(texts) + len(texts)

    assert width == 1 or cost(width) <= budget
    assert width == nodes.shape[1] or cost(width + 1) > budget


def test_a_budget_counts_texts_only():
    nodes = np.array([[0, N_TEXTS]])
    with raises("mention_share = 0.0"):
        NegativesWithinBudget(Given(nodes), 9)(nodes[:, 0], Table([0]), None)


@given(tables(-1, N_TEXTS + 9), tables(-1, N_TEXTS + 9))
def test_both_kinds_each_once(first, second):
    rows = min(len(first), len(second))
    first, second = first[:rows], second[:rows]
    got = BothNegatives(Given(first), Given(second))(np.zeros(rows), None, None)
    for i in range(rows):
        kept = [node for node in second[i].tolist() if node not in first[i].tolist()]
        assert [node for node in got[i].tolist() if node >= 0] == [
            node for node in [*first[i].tolist(), *kept] if node >= 0
        ]


@given(tables(-1, N_TEXTS + 9), st.lists(st.integers(0, 2), min_size=10, max_size=10))
def test_an_entity_is_no_negative_more_often_than_its_frequency_allows(nodes, cluster):
    table = Table([*cluster, 0, 1, 2])
    queries = np.arange(len(nodes))
    got = NegativesByFrequency(Given(nodes), 2.0)(queries, table, None)
    left_out = got != nodes
    assert (got[left_out] == -1).all()
    assert (nodes[left_out] >= N_TEXTS).all()
    mean = 2.0 * table.cluster_sizes * len(nodes) / 13
    by_column, got_by_column = nodes.T.ravel(), got.T.ravel()
    for entity in range(3):
        of_entity = [
            i for i, n in enumerate(by_column) if n >= N_TEXTS and table.cluster[n - 20] == entity
        ]
        kept = got_by_column[of_entity] >= 0
        # The first ones stay, as many as are allowed.
        assert kept.tolist() == sorted(kept.tolist(), reverse=True)
        least, most = int(np.floor(mean[entity])), int(np.ceil(mean[entity]))
        assert min(least, len(kept)) <= kept.sum() <= most


def test_what_is_over_a_whole_number_is_drawn():
    """One mention in ten, ratio 1: an entity may be a negative in every tenth step."""
    np.random.seed(0)
    table = Table([0] + [1] * 9)
    limited = NegativesByFrequency(Given(np.array([[N_TEXTS]])), 1.0)
    kept = sum(limited(np.zeros(1), table, None)[0, 0] >= 0 for _ in range(2000))
    assert kept > 150
    assert kept < 250
