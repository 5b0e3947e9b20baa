"""The graph as callers give it, and the edges into each mention, sorted from the lightest."""

from typing import Any, NamedTuple

import numpy as np

from ..base.compiling import jit_helper, numba_jit

MAX_NODES = 2**31 - 1
MAX_EDGES = 2**32 - 1


class Graph(NamedTuple):
    """A checked graph. Entities are nodes 0..n_entities-1, mentions are the nodes after them.

    source: (E,) int32 node ids.
    target: (E,) int32 node ids of mentions.
    weight: (E,) float32.
    """

    n_entities: int
    n_mentions: int
    source: np.ndarray
    target: np.ndarray
    weight: np.ndarray


@numba_jit()
def _first_fault(
    n_entities: int,
    n_nodes: int,
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
) -> int:
    """The first edge that a graph cannot have, -1 for none."""
    for edge in range(len(source)):
        joins_nodes = 0 <= source[edge] < n_nodes and 0 <= target[edge] < n_nodes
        enters_entity = target[edge] < n_entities and source[edge] != target[edge]
        if not joins_nodes or enters_entity or np.isnan(weight[edge]):
            return edge
    return -1


def check_graph(
    n_entities: int, n_mentions: int, source: Any, target: Any, weight: Any
) -> Graph:
    """Validate a graph's arrays as int32 and float32. They are copied only if needed.

    The arguments are those of ``link``. Raises ValueError where shapes or dtypes do not fit, a node
    id is out of range, a weight is NaN, or an edge enters an entity.
    """
    source = np.asarray(source)
    target = np.asarray(target)
    weight = np.ascontiguousarray(weight, dtype=np.float32)
    n_nodes = n_entities + n_mentions
    if min(n_entities, n_mentions) < 0:
        raise ValueError("A graph has at least 0 entities and mentions.")
    if n_nodes > MAX_NODES or weight.size > MAX_EDGES:
        raise ValueError(
            f"A graph has at most {MAX_NODES} nodes and {MAX_EDGES} edges. Number only the "
            "entities that an edge starts from, use fewer neighbours, or split the mentions."
        )
    shapes = {source.shape, target.shape, weight.shape}
    # An empty list has numbers of no kind.
    is_whole = all(one.dtype.kind in "iu" or not one.size for one in (source, target))
    if len(shapes) > 1 or weight.ndim != 1 or not is_whole:
        raise ValueError(
            "source, target and weight must have one number per edge, ids whole ones."
        )
    edge = _first_fault(n_entities, n_nodes, source, target, weight)
    if edge >= 0:
        raise ValueError(
            f"Edge {edge}, {source[edge]} -> {target[edge]} of weight {weight[edge]}, is wrong. "
            f"Nodes are {n_entities} entities, then {n_mentions} mentions; an edge leads from any "
            "node to a mention, and no weight is NaN."
        )
    return Graph(
        n_entities,
        n_mentions,
        np.ascontiguousarray(source, dtype=np.int32),
        np.ascontiguousarray(target, dtype=np.int32),
        weight,
    )


def check_threshold(threshold: float) -> np.float32:
    """Convert a threshold to float32, as weights are. So an edge of exactly this weight stays."""
    value = np.float32(threshold)
    if np.isnan(value):
        raise ValueError(
            "The threshold is NaN. Give the largest weight to keep, or infinity."
        )
    return value


# The key of an edge has its weight in the upper bits, as an integer of the same order, and its
# index in the lower bits. Comparing keys compares weights, then indices: no two keys are equal.
EDGE_BITS = 32
EDGE_MASK = (1 << EDGE_BITS) - 1
NO_KEY = np.iinfo(np.int64).max

# Above this many edges into one mention, NumPy's sort is faster than insertion sort.
_LONG = 48


class Forest(NamedTuple):
    """A forest with at most one edge into each mention.

    parent: (M,) int32, the node each mention hangs under, -1 if there is none.
    edge: (M,) int64, which of the input's edges that is, -1 if there is none.
    """

    parent: np.ndarray
    edge: np.ndarray


class Incoming(NamedTuple):
    """Edges grouped by the mention they enter. Those of mention m are keys[first[m]:first[m+1]].

    first: (M+1,) int64.
    keys: (edges kept,) int64, ascending within a mention.
    """

    first: np.ndarray
    keys: np.ndarray


@jit_helper(inline="always")
def edge_of(key: Any) -> Any:
    """The index of the edge in the caller's arrays."""
    return key & EDGE_MASK


def edge_keys(graph: Graph, threshold: np.float32) -> np.ndarray:
    """The keys of the edges that are used: int64.

    Self loops, edges above the threshold and edges of weight +inf (which are no edges) are left
    out.
    """
    weight = graph.weight
    usable = (weight <= threshold) & (weight < np.inf) & (graph.source != graph.target)
    edges = np.flatnonzero(usable)
    bits = (weight[edges] + np.float32(0)).view(np.int32)  # -0.0 is 0.0
    # As integers, negative floats are in reverse order: flip every bit but the sign.
    ordered = np.where(bits >= 0, bits, bits ^ np.int32(0x7FFFFFFF)).astype(np.int64)
    return (ordered << EDGE_BITS) | edges


@numba_jit()
def _group(
    groups: np.ndarray, keys: np.ndarray, first: np.ndarray, grouped: np.ndarray
) -> None:
    """Group keys by the numbers of their groups. ``first`` is zeros, two more than groups."""
    for group in groups:
        first[group + 2] += 1
    for at in range(2, len(first)):
        first[at] += first[at - 1]
    # Every start is moved to its own place.
    for i in range(len(keys)):
        grouped[first[groups[i] + 1]] = keys[i]
        first[groups[i] + 1] += 1


@numba_jit()
def _sort_groups(first: np.ndarray, keys: np.ndarray) -> None:
    for group in range(len(first) - 1):
        begin = first[group]
        end = first[group + 1]
        if end - begin > _LONG:
            keys[begin:end].sort()
            continue
        for i in range(begin + 1, end):
            key = keys[i]
            j = i - 1
            while j >= begin and keys[j] > key:
                keys[j + 1] = keys[j]
                j -= 1
            keys[j + 1] = key


def incoming(graph: Graph, threshold: np.float32, is_sorted: bool = True) -> Incoming:
    """Group the edges that are used by target, and sort each group.

    O(E log k) for k edges into a mention.

    is_sorted: Whether groups are sorted; otherwise their edges are in the order of the graph's.
    """
    keys = edge_keys(graph, threshold)
    # Large arrays are allocated by NumPy, not Numba: NumPy asks for huge pages, and random access
    # to many small pages would cost most.
    first = np.zeros(graph.n_mentions + 2, np.int64)
    grouped = np.empty(len(keys), np.int64)
    _group(graph.target[keys & EDGE_MASK] - graph.n_entities, keys, first, grouped)
    if is_sorted:
        _sort_groups(first[:-1], grouped)
    return Incoming(first[:-1], grouped)
