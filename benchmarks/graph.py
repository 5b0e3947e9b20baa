"""Times of the graph package: links, clusters, positives, and the paper's literal procedure.

    python benchmarks/graph.py

Graphs are float32, with edges from the 8 nearest mentions and, for seven mentions in eight, from
the nearest entity. Kernels are compiled before they are timed (the compiled code is cached on
disk). Each time is the best of several runs. Positives use all cores, the others one.
"""

import argparse
import json
import os
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np

from spacy_arbo_el import graph
from spacy_arbo_el.graph.clusters import METHODS as CLUSTERS
from spacy_arbo_el.graph.edges import Forest, check_graph, incoming
from spacy_arbo_el.graph.linking import arborescence_of

METHODS = ("arborescence", "minimax", "undirected")
K = 8
# From graphs that fit into a core's own cache to graphs that fit into none.
SIZES = (
    4_000,
    10_000,
    40_000,
    100_000,
    200_000,
    400_000,
    1_000_000,
    2_000_000,
    4_000_000,
)
LITERAL_SIZES = (125, 250, 500, 1_000, 2_000)
THRESHOLD = -0.5


def neighbour_graph(mentions: int, seed: int = 0):
    """A k-NN graph of mentions in clusters, as the arguments of ``graph.link``.

    Cluster sizes are skewed as in corpora. Most neighbours of a mention are in its own cluster and
    similar to it. The others are drawn from all mentions and less similar.
    """
    rng = np.random.default_rng(seed)
    entities = max(mentions // 8, 2)
    cluster = np.sort((entities * rng.random(mentions) ** 2).astype(np.int64))
    begin = np.searchsorted(cluster, np.arange(entities))[cluster]
    others = np.bincount(cluster, minlength=entities)[cluster] - 1
    place = np.arange(mentions) - begin
    # K different mentions, none of them the mention itself.
    shift = rng.integers(0, 1 << 40, mentions)[:, None] + np.arange(K)
    step = 1 + shift % np.maximum(others, 1)[:, None]
    inside = begin[:, None] + (place[:, None] + step) % (others + 1)[:, None]
    is_inside = (rng.random((mentions, K)) < 0.8) & (np.arange(K) < others[:, None])
    neighbour = np.where(is_inside, inside, rng.integers(0, mentions, (mentions, K)))
    similarity = np.where(
        is_inside, rng.beta(8, 3, (mentions, K)), rng.beta(3, 6, (mentions, K))
    )
    linked = rng.random(mentions) < 7 / 8
    correct = rng.random(mentions) < 0.8
    entity = np.where(correct, cluster, rng.integers(0, entities, mentions))
    entity_similarity = np.where(
        correct, rng.beta(6, 3, mentions), rng.beta(3, 5, mentions)
    )
    # Mentions of one entity are spread over the corpus.
    number = rng.permutation(mentions)
    order = np.argsort(number)
    # For each mention first the edge from its entity, then those from its neighbours.
    source = np.column_stack([entity, entities + number[neighbour]])[order]
    weight = -np.column_stack([entity_similarity, similarity])[order].astype(
        np.float32
    )
    target = np.broadcast_to(entities + np.arange(mentions)[:, None], source.shape)
    is_edge = np.column_stack([linked[order], np.ones((mentions, K), dtype=bool)])
    int32 = (array[is_edge].astype(np.int32) for array in (source, target))
    return entities, mentions, *int32, weight[is_edge]


def best_of(function, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def delete_literally(n_entities, n_mentions, source, target, weight):
    """The paper's procedure as written (§2.3): a search from the entities for each edge."""
    order = sorted(range(len(source)), key=lambda edge: (-weight[edge], -edge))
    out = [set() for _ in range(n_entities + n_mentions)]
    for edge in order:
        out[source[edge]].add((int(target[edge]), edge))

    def reached_without(edge):
        goal = target[edge]
        reached, todo = set(range(n_entities)), list(range(n_entities))
        while todo:
            for head, by in out[todo.pop()]:
                if by != edge and head not in reached:
                    if head == goal:
                        return True
                    reached.add(head)
                    todo.append(head)
        return False

    for edge in order:
        if reached_without(edge):
            out[source[edge]].discard((int(target[edge]), edge))
    return out


def resident() -> int:
    """Bytes of memory that the process uses now (Linux)."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory_of(function) -> float:
    """The largest memory of the process while the function runs, in GB.

    The graph and the libraries are included.
    """
    largest, done = [resident()], threading.Event()

    def watch():
        while not done.wait(0.002):
            largest.append(resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    function()
    done.set()
    watcher.join()
    return max(largest) / 1e9


def exponent(sizes, seconds) -> float:
    """The slope of log time over log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def time_growth(sizes) -> dict:
    print("\nlink() by size, seconds")
    print(
        f"{'mentions':>10} {'edges':>10} "
        + "".join(f"{m:>14}" for m in METHODS)
        + "   memory GB"
    )
    seconds = {method: [] for method in METHODS}
    memory = []
    for size in sizes:
        arrays = neighbour_graph(size)
        for method in METHODS:
            run = partial(graph.link, *arrays, method=method)
            seconds[method].append(best_of(run, 3 if size > 200_000 else 7))
        memory.append(memory_of(partial(graph.link, *arrays)))
        row = "".join(f"{seconds[method][-1]:>14.4f}" for method in METHODS)
        print(f"{size:>10} {len(arrays[2]):>10} {row} {memory[-1]:>11.2f}", flush=True)
    slopes = {method: exponent(sizes, seconds[method]) for method in METHODS}
    print(
        f"{'exponent':>21} "
        + "".join(f"{slopes[method]:>14.3f}" for method in METHODS)
    )
    return {
        "sizes": list(sizes),
        "seconds": seconds,
        "exponent": slopes,
        "memory_gb": memory,
    }


def arborescence(*arrays) -> Forest:
    checked = check_graph(*arrays)
    return arborescence_of(checked, incoming(checked, np.float32(np.inf)))


def time_literal(sizes) -> dict:
    print("\narborescence() compared with the literal deletion procedure, seconds")
    rows = []
    for size in sizes:
        arrays = neighbour_graph(size)
        ours = best_of(partial(arborescence, *arrays), 7)
        start = time.perf_counter()
        left = delete_literally(*arrays)
        literal = time.perf_counter() - start
        forest = arborescence(*arrays)
        kept = {edge for heads in left for _, edge in heads}
        same = set(forest.edge[forest.edge >= 0].tolist()) <= kept
        rows.append((size, ours, literal, literal / ours, same))
        print(f"{size:>10} ours {ours:.6f}  literal {literal:9.3f}  ratio {literal / ours:>9.0f}  "
              f"same edges: {same}", flush=True)  # fmt: skip
    slope = exponent(sizes, [literal for _, _, literal, _, _ in rows])
    print(f"exponent of the literal procedure: {slope:.2f}")
    return {"rows": rows, "exponent": slope}


def mentions_alone(entities, mentions, source, target, weight):
    """A graph without its entities, as the arguments of ``graph.cluster``."""
    among = source >= entities
    return mentions, source[among] - entities, target[among] - entities, weight[among]


def time_clusters(size: int) -> dict:
    alone = mentions_alone(*neighbour_graph(size))
    weight = alone[-1]
    print(f"\ncluster(), {size} mentions, seconds")
    sort = best_of(lambda: np.argsort(weight, kind="stable"), 3)
    print(f"{'one sort of the weights':<44}{sort:>10.3f}")
    figures = {"sort": sort}
    for method in CLUSTERS:
        seconds = best_of(partial(graph.cluster, *alone, THRESHOLD, method=method), 2)
        figures[method] = seconds
        print(f"{method:<44}{seconds:>10.3f}", flush=True)
    return figures


def all_products(blocks) -> None:
    for block in blocks:
        block @ block.T


def time_positives() -> dict:
    print("\npositives, 384 dimensions, seconds")
    rng = np.random.default_rng(0)
    figures = {}
    for clusters in (128, 8):
        vectors = rng.normal(size=(1000 * clusters, 384)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        similarity = rng.uniform(0, 0.2, len(vectors)).astype(np.float32)
        offsets = np.arange(clusters + 1) * 1000
        queries = np.sort(rng.choice(len(vectors), 128, replace=False))
        if clusters == 128:
            queries = offsets[:-1] + rng.integers(0, 1000, 128)
        blocks = np.split(vectors, clusters)
        product = best_of(partial(all_products, blocks), 3)
        for function in (graph.gold_parents, graph.gold_parents_1nn):
            run = partial(function, vectors, similarity, offsets, queries=queries)
            seconds = best_of(run, 5)
            name = f"{function.__name__}, 128 mentions in {clusters} clusters of 1,000"
            figures[name] = seconds
            print(
                f"{name:<60}{seconds:>8.3f}   (the similarities alone: {product:.3f})",
                flush=True,
            )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument(
        "--output", type=Path, help="write the figures to this JSON file"
    )
    parser.add_argument(
        "--part", choices=["growth", "literal", "clusters", "positives"]
    )
    options = parser.parse_args()
    small = neighbour_graph(200)
    for method in METHODS:  # compiles
        graph.link(*small, threshold=-0.5, method=method)
    for method in CLUSTERS:
        graph.cluster(*mentions_alone(*small), THRESHOLD, method=method)
    parts = {
        "growth": lambda: time_growth(SIZES[:4] if options.quick else SIZES),
        "literal": lambda: time_literal(
            LITERAL_SIZES[:3] if options.quick else LITERAL_SIZES
        ),
        "clusters": lambda: time_clusters(40_000 if options.quick else 1_000_000),
        "positives": time_positives,
    }
    chosen = [options.part] if options.part else list(parts)
    figures = {name: parts[name]() for name in chosen}
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(figures, indent=2), encoding="utf8")


if __name__ == "__main__":
    main()
