"""Random graphs with everything that makes graphs hard, and slow procedures to compare with."""

import numpy as np
import pytest
from hypothesis import strategies as st

from spacy_arbo_el.base import compiling
from spacy_arbo_el.graph.edges import check_graph, incoming
from spacy_arbo_el.graph.linking import arborescence_of


def assert_interpreted_alike(call):
    """Assert that the interpreter gives the arrays that the compiled code gives."""
    with pytest.MonkeyPatch.context() as patch:
        compiled = call()
        patch.setattr(compiling.Compiled, "__call__", lambda f, *args: f.compiled.py_func(*args))
        interpreted = call()
    for array, other in zip(compiled, interpreted):
        np.testing.assert_array_equal(array, other)
        assert array.dtype == other.dtype


@st.composite
def graphs(draw, most_entities=3, most_mentions=7, most_edges=24):
    """(n_entities, n_mentions, source, target, weight, threshold).

    With ties, self loops, duplicate edges, unreachable parts, and weights of -inf and +inf.
    """
    entities = draw(st.integers(0, most_entities))
    mentions = draw(st.integers(1, most_mentions))
    nodes = st.integers(0, entities + mentions - 1)
    heads = st.integers(entities, entities + mentions - 1)
    # Few different weights, so that there are many ties.
    weights = st.sampled_from([-np.inf, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, np.inf])
    edges = draw(st.lists(st.tuples(nodes, heads, weights), max_size=most_edges))
    columns = list(zip(*edges)) if edges else [(), (), ()]
    source, target = (np.array(column, dtype=np.int64) for column in columns[:2])
    threshold = draw(st.sampled_from([np.inf, 2.0, 0.0, -1.0]))
    return entities, mentions, source, target, np.array(columns[2], np.float32), threshold


def usable(source, target, weight, threshold):
    """The edges that are used: no self loops, none of weight +inf, none above the threshold."""
    return [
        i
        for i in range(len(source))
        if source[i] != target[i] and weight[i] < np.inf and weight[i] <= threshold
    ]


def reachable(starts, edges):
    """The nodes that paths over ``edges`` (pairs) lead to from any of ``starts``."""
    reached, todo = set(starts), list(starts)
    while todo:
        node = todo.pop()
        for source, target in edges:
            if source == node and target not in reached:
                reached.add(target)
                todo.append(target)
    return reached


def delete_literally(entities, mentions, source, target, weight, threshold):
    """The paper's procedure (§2.3): the edges it leaves into mentions that entities reach.

    From the heaviest edge to the lightest (of equal edges, the later first), delete each edge whose
    head an entity still reaches without it.

    RETURNS: {target: edge}.
    """
    kept = usable(source, target, weight, threshold)
    reached = reachable(range(entities), [(source[i], target[i]) for i in kept])
    for i in sorted(kept, key=lambda i: (-weight[i], -i)):
        rest = [j for j in kept if j != i]
        if target[i] in reachable(range(entities), [(source[j], target[j]) for j in rest]):
            kept = rest
    return {int(target[i]): i for i in kept if target[i] in reached}


def naive_single_linkage(entities, mentions, source, target, weight, threshold):
    """The clusters (sets of nodes) after merging by rising weight, never two entities in one."""
    clusters = [{node} for node in range(entities + mentions)]
    edges = usable(source, target, weight, threshold)
    for i in sorted(edges, key=lambda i: (weight[i], i)):
        a = next(c for c in clusters if source[i] in c)
        b = next(c for c in clusters if target[i] in c)
        merged = a | b
        if a is not b and sum(node < entities for node in merged) <= 1:
            clusters = [c for c in clusters if c is not a and c is not b] + [merged]
    return clusters


def smallest_bottlenecks(entities, mentions, source, target, weight, threshold):
    """f(e, m) of Equation 1 for all pairs, from every simple path: {(entity, mention): f}."""
    edges = usable(source, target, weight, threshold)
    best = {}

    def walk(entity, node, worst, visited):
        for i in edges:
            head = int(target[i])
            if source[i] != node or head in visited:
                continue
            heavier = max(worst, float(weight[i]))
            key = (entity, head - entities)
            best[key] = min(best.get(key, np.inf), heavier)
            walk(entity, head, heavier, visited | {head})

    for entity in range(entities):
        walk(entity, entity, -np.inf, {entity})
    return best


def path_to(parent, entities, mention):
    """The nodes from the root of a mention's tree down to the mention."""
    nodes = [entities + mention]
    while nodes[0] >= entities and parent[nodes[0] - entities] != -1:
        nodes.insert(0, int(parent[nodes[0] - entities]))
    return np.array(nodes)


def cluster_slowly(mentions, source, target, weight, threshold, method):
    """The cluster of each mention at one threshold, numbered in order of their first mention."""
    edges = usable(source, target, weight, threshold)
    edges.sort(key=lambda i: (weight[i], i))
    pairs = [(int(source[i]), int(target[i])) for i in edges]
    if method == "arborescence":
        pairs = _lightest_into_each(mentions, pairs)
    both_ways = pairs + [(b, a) for a, b in pairs]
    first = [min(reachable([mention], both_ways)) for mention in range(mentions)]
    return np.unique(first, return_inverse=True)[1].tolist()


def _lightest_into_each(mentions, pairs):
    """The pairs that join when each node takes its lightest edge, and cycles become one node.

    pairs: The edges, from the lightest to the heaviest.
    """
    node = list(range(mentions))
    while True:
        chosen = {}
        for a, b in pairs:
            if node[a] != node[b]:
                chosen.setdefault(node[b], node[a])
        cycle = next(filter(None, (_cycle(chosen, start) for start in chosen)), None)
        if cycle is None:
            return [*enumerate(node), *chosen.items()]
        node = [min(cycle) if number in cycle else number for number in node]


def _cycle(chosen, start):
    path = [start]
    while chosen.get(path[-1]) not in (None, *path):
        path.append(chosen[path[-1]])
    last = chosen.get(path[-1])
    return path[path.index(last) :] if last is not None else None


def arborescence(entities, mentions, source, target, weight, threshold=np.inf):
    """The forest of the paper's procedure."""
    checked = check_graph(entities, mentions, source, target, weight)
    return arborescence_of(checked, incoming(checked, np.float32(threshold)))
