"""Undirected linking against single linkage written naively."""

import numpy as np
from hypothesis import given, settings

from spacy_arbo_el import graph

from .strategies import graphs, naive_single_linkage, together


@settings(max_examples=1500, deadline=None)
@given(graphs())
def test_clusters_are_those_of_the_naive_procedure(drawn):
    entities, mentions = drawn[:2]
    links = graph.link(*drawn[:5], threshold=drawn[5], method="undirected")
    clusters = naive_single_linkage(*drawn)
    of = {node: number for number, cluster in enumerate(clusters) for node in cluster}
    expected = [of[entities + m] for m in range(mentions)]
    assert together(links.cluster) == together(expected)
    for mention in range(mentions):
        entity = [node for node in clusters[expected[mention]] if node < entities]
        assert links.entity[mention] == (entity[0] if entity else -1)


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_the_forest_hangs_from_entities_by_edges_of_the_graph(drawn):
    entities, mentions, source, target, weight, threshold = drawn
    forest = graph.undirected(*drawn[:5], threshold=threshold)
    for mention in np.flatnonzero(forest.edge >= 0):
        edge = forest.edge[mention]
        # An edge joins both ways here.
        assert {source[edge], target[edge]} == {forest.parent[mention], entities + mention}
        assert weight[edge] <= threshold
        assert graph.path(forest.parent, entities, int(mention))[0] < entities
