"""The arborescence and the minimax partition against slow, literal procedures."""

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_arbo_el import graph


@st.composite
def graphs(draw, symmetric=False):
    """Entities, mentions and edges with ties, self loops, doubles and unreachable parts."""
    entities, mentions = draw(st.integers(0, 3)), draw(st.integers(1, 7))
    nodes = st.integers(0, entities + mentions - 1)
    heads = st.integers(entities, entities + mentions - 1)
    weights = st.integers(0, 6)
    edges = draw(st.lists(st.tuples(nodes, heads, weights), max_size=24))
    source, target, weight = (np.array(c, dtype=np.int64) for c in zip(*edges)) if edges else (
        np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    )  # fmt: skip
    threshold = draw(st.sampled_from([np.inf, 3.0, 0.0]))
    return entities, mentions, source, target, weight.astype(np.float32), threshold


def reachable(entities, nodes, edges):
    found, todo = set(range(entities)), list(range(entities))
    while todo:
        node = todo.pop()
        for source, target in edges:
            if source == node and target not in found:
                found.add(target)
                todo.append(target)
    return found


def delete_literally(entities, mentions, source, target, weight, threshold):
    """Heaviest edge first (the later of equals first): delete it if its head stays reachable."""
    nodes = entities + mentions
    kept = [i for i in range(len(source)) if weight[i] <= threshold and source[i] != target[i]]
    for i in sorted(kept, key=lambda i: (-weight[i], -i)):
        rest = [j for j in kept if j != i]
        edges = [(source[j], target[j]) for j in rest]
        before = reachable(entities, nodes, [(source[j], target[j]) for j in kept])
        if target[i] in before and target[i] in reachable(entities, nodes, edges):
            kept = rest
    edges = [(source[j], target[j]) for j in kept]
    root = {}
    for entity in range(entities):
        for node in reachable_from(entity, edges):
            root[node] = entity
    return [root.get(entities + m, -1) for m in range(mentions)]


def reachable_from(start, edges):
    found, todo = {start}, [start]
    while todo:
        node = todo.pop()
        new = [t for s, t in edges if s == node and t not in found]
        found.update(new)
        todo.extend(new)
    return found


@settings(max_examples=500, deadline=None)
@given(graphs())
def test_arborescence_equals_literal_deletion(drawn):
    entities, mentions, source, target, weight, threshold = drawn
    links = graph.link(entities, mentions, source, target, weight, threshold=threshold)
    assert links.entity.tolist() == delete_literally(*drawn)


def smallest_bottleneck(entities, mentions, source, target, weight, threshold):
    best = dict.fromkeys(range(entities), -np.inf)
    todo = [(-np.inf, entity) for entity in range(entities)]
    while todo:
        so_far, node = heapq.heappop(todo)
        for s, t, w in zip(source, target, weight):
            worst = max(so_far, float(w))
            if s == node and w <= threshold and worst < best.get(t, np.inf):
                best[t] = worst
                heapq.heappush(todo, (worst, t))
    return [best.get(entities + m, np.inf) for m in range(mentions)]


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_minimax_finds_the_smallest_bottleneck(drawn):
    entities, mentions, source, target, weight, threshold = drawn
    links = graph.link(
        entities, mentions, source, target, weight, threshold=threshold, method="minimax"
    )
    assert links.score.tolist() == smallest_bottleneck(*drawn)
    assert ((links.entity >= 0) == np.isfinite(links.score)).all()


@pytest.mark.parametrize("method", ["arborescence", "minimax", "undirected"])
@settings(max_examples=200, deadline=None)
@given(graphs())
def test_paths_and_clusters_hold_together(method, drawn):
    entities, mentions, source, target, weight, threshold = drawn
    links = graph.link(
        entities, mentions, source, target, weight, threshold=threshold, method=method
    )
    for mention in range(mentions):
        same = links.cluster == links.cluster[mention]
        assert len(set(links.entity[same].tolist())) == 1, "one entity a cluster, or none"
        if links.entity[mention] < 0:
            continue
        heaviest, node = -np.inf, entities + mention
        while node >= entities:
            heaviest = max(heaviest, float(links.weight[node - entities]))
            node = int(links.parent[node - entities])
        assert node == links.entity[mention] and heaviest == links.score[mention] <= threshold


def test_the_example_of_the_design_where_the_partitions_differ():
    source, target = np.array([0, 1, 2]), np.array([2, 3, 3])
    weight = np.array([10, 1, 0.5], dtype=np.float32)
    assert graph.link(2, 2, source, target, weight).entity.tolist() == [0, 0]
    minimax = graph.link(2, 2, source, target, weight, method="minimax")
    assert minimax.entity.tolist() == [0, 1] and minimax.score.tolist() == [10.0, 1.0]


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10_000))
def test_gold_parents_are_the_arborescence_of_the_complete_graph(size, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(size, 4)).astype(np.float32)
    similarity = rng.normal(size=size).astype(np.float32)
    parents = graph.gold_parents(vectors, similarity, np.array([0, size]))
    pairs = vectors @ vectors.T
    source, target = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    off = source != target
    links = graph.link(
        1,
        size,
        np.concatenate([np.zeros(size, int), 1 + source[off]]),
        np.concatenate([1 + np.arange(size), 1 + target[off]]),
        -np.concatenate([similarity, pairs[off]]).astype(np.float32),
    )
    assert (links.parent - 1).tolist() == parents.tolist()


def test_the_graph_needs_neither_spacy_nor_torch():
    import subprocess
    import sys

    code = "import sys, spacy_arbo_el.graph; print({'spacy', 'torch'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.strip() == "set()", run.stderr
