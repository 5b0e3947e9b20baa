"""Undirected linking, compared with a naive single linkage."""

import numpy as np
from hypothesis import given

from spacy_arbo_el import graph
from spacy_arbo_el.graph.edges import check_graph
from spacy_arbo_el.graph.linkage import undirected_of

from .strategies import graphs, naive_single_linkage, path_to


@given(graphs())
def test_undirected_clusters_equal_naive_single_linkage(drawn):
    entities, mentions = drawn[:2]
    links = graph.link(*drawn[:5], threshold=drawn[5], method="undirected")
    clusters = naive_single_linkage(*drawn)
    of = {node: number for number, cluster in enumerate(clusters) for node in cluster}
    expected = [of[entities + m] for m in range(mentions)]
    for mention in range(mentions):
        entity = [node for node in clusters[expected[mention]] if node < entities]
        assert links.entity[mention] == (entity[0] if entity else -1)


@given(graphs())
def test_undirected_forest_hangs_from_entities_by_edges_of_the_graph(drawn):
    entities, mentions, source, target, weight, threshold = drawn
    forest = undirected_of(check_graph(*drawn[:5]), np.float32(threshold))
    for mention in np.flatnonzero(forest.edge >= 0):
        edge = forest.edge[mention]
        # Edges count in both directions here.
        assert {source[edge], target[edge]} == {forest.parent[mention], entities + mention}
        assert weight[edge] <= threshold
        assert path_to(forest.parent, entities, int(mention))[0] < entities
