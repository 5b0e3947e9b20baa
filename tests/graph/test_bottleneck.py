"""The minimax partition, compared with all simple paths."""

import numpy as np
from hypothesis import given

from spacy_arbo_el import graph

from .strategies import graphs, smallest_bottlenecks


@given(graphs(most_mentions=5, most_edges=16))
def test_minimax_links_each_mention_to_an_entity_with_the_smallest_bottleneck(drawn):
    entities, mentions, *_, threshold = drawn
    best = smallest_bottlenecks(*drawn)
    links = graph.link(*drawn[:5], threshold=threshold, method="minimax")
    for mention in range(mentions):
        smallest = min((best.get((e, mention), np.inf) for e in range(entities)), default=np.inf)
        assert links.score[mention] == smallest
        entity = links.entity[mention]
        if entity >= 0:
            assert best[entity, mention] == smallest
        else:
            assert all((e, mention) not in best for e in range(entities))
