"""The graph as callers give it, and the edges into each mention, sorted from the lightest."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.compiling import jit_helper, numba_jit

MAX_NODES = 2**31 - 1
MAX_EDGES = 2**32 - 1

_VALID, _SOURCE, _TARGET, _ENTITY_TARGET, _NAN = range(5)


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
    n_entities: int, n_nodes: int, source: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> tuple[int, int]:
    for edge in range(len(source)):
        if source[edge] < 0 or source[edge] >= n_nodes:
            return edge, _SOURCE
        if target[edge] < 0 or target[edge] >= n_nodes:
            return edge, _TARGET
        if target[edge] < n_entities and source[edge] != target[edge]:
            return edge, _ENTITY_TARGET
        if np.isnan(weight[edge]):
            return edge, _NAN
    return -1, _VALID


def check_graph(n_entities: int, n_mentions: int, source: Any, target: Any, weight: Any) -> Graph:
    """Validate a graph's arrays as int32 and float32. They are copied only if needed.

    The arguments are those of ``link``. Raises ValueError where shapes or dtypes do not fit, a node
    id is out of range, a weight is NaN, or an edge enters an entity.
    """
    n_entities = check_count("n_entities", n_entities)
    n_mentions = check_count("n_mentions", n_mentions)
    n_nodes = n_entities + n_mentions
    if n_nodes > MAX_NODES:
        raise ValueError(
            f"The graph has {n_nodes} nodes, but node ids are int32: at most {MAX_NODES} fit. "
            "Number only the entities that an edge starts from, or split the mentions."
        )
    source = check_integers("source", source)
    target = check_integers("target", target)
    weight = check_floats("weight", weight)
    lengths = {len(source), len(target), len(weight)}
    if len(lengths) > 1:
        raise ValueError(
            f"source, target and weight hold one number per edge, but their lengths differ: "
            f"{len(source)}, {len(target)} and {len(weight)}."
        )
    if len(weight) > MAX_EDGES:
        raise ValueError(
            f"The graph has {len(weight)} edges; at most {MAX_EDGES} fit. Use fewer neighbours."
        )
    edge, fault = _first_fault(n_entities, n_nodes, source, target, weight)
    if fault != _VALID:
        raise ValueError(_explain(edge, fault, n_entities, n_nodes, source[edge], target[edge]))
    return Graph(
        n_entities,
        n_mentions,
        np.ascontiguousarray(source, dtype=np.int32),
        np.ascontiguousarray(target, dtype=np.int32),
        weight,
    )


def _explain(edge: int, fault: int, n_entities: int, n_nodes: int, source: int, target: int) -> str:
    if fault == _NAN:
        return (
            f"The weight of edge {edge} ({source} -> {target}) is NaN. Drop the edge, or check for "
            "zero vectors that were normalized."
        )
    if fault == _ENTITY_TARGET:
        return (
            f"Edge {edge} ({source} -> {target}) enters an entity (nodes below {n_entities}). "
            "Edges run from an entity or a mention to a mention: are source and target swapped?"
        )
    name, node = ("source", source) if fault == _SOURCE else ("target", target)
    return (
        f"The {name} of edge {edge} is node {node}, but nodes are numbered 0 to {n_nodes - 1} "
        f"({n_entities} entities first, then {n_nodes - n_entities} mentions). Drop padding "
        "(such as -1) and add n_entities to the numbers of mentions."
    )


def check_threshold(threshold: float) -> np.float32:
    """Convert a threshold to float32, as weights are. So an edge of exactly this weight stays."""
    value = np.float32(threshold)
    if np.isnan(value):
        raise ValueError("The threshold is NaN. Give the largest weight to keep, or infinity.")
    return value


def check_count(name: str, value: Any) -> int:
    """A count as a Python int."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ValueError(f"{name} must be a whole number, got {value!r}.")
    if value < 0:
        raise ValueError(f"{name} is {value}, but a count cannot be negative.")
    return int(value)


def check_integers(name: str, array: Any) -> np.ndarray:
    """A list of numbers as int32 or int64."""
    array = _shaped(name, array, 1)
    if array.size == 0:
        array = array.astype(np.int32)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, but its dtype is {array.dtype}.")
    if array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    return np.ascontiguousarray(array)


def check_floats(name: str, array: Any, ndim: int = 1) -> np.ndarray:
    """An array of ``ndim`` dimensions as contiguous float32."""
    array = _shaped(name, array, ndim)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must hold numbers, but its dtype is {array.dtype}.")
    return np.ascontiguousarray(array, dtype=np.float32)


def check_choice(name: str, value: str, choices: Sequence[str]) -> str:
    """The value, if it is one of the choices."""
    if value not in choices:
        raise ValueError(f"There is no {name} {value!r}. Choose one of: {', '.join(choices)}.")
    return value


def _shaped(name: str, array: Any, ndim: int) -> np.ndarray:
    array = np.asarray(array)
    if array.ndim != ndim:
        raise ValueError(
            f"{name} must have {ndim} dimension{'s' if ndim > 1 else ''}, but its shape is "
            f"{array.shape}."
        )
    return array


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


@jit_helper(inline="always")
def edge_key(bits: Any, edge: Any) -> Any:
    """Key of an edge, from the bits of its float32."""
    # As integers, negative floats are in reverse order: flip every bit but the sign.
    ordered = np.int64(bits) if bits >= 0 else np.int64(bits ^ np.int32(0x7FFFFFFF))
    return (ordered << EDGE_BITS) | edge


@numba_jit()
def _count(
    n_entities: int,
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    threshold: np.float32,
    first: np.ndarray,
) -> None:
    """Count edges into each mention into ``first``, shifted by one.

    ``_group`` then moves every start to its own place.
    """
    for edge in range(len(target)):
        w = weight[edge]
        if w <= threshold and w < np.inf and source[edge] != target[edge]:
            first[target[edge] - n_entities + 2] += 1
    for at in range(2, len(first)):
        first[at] += first[at - 1]


@numba_jit()
def _group(
    n_entities: int,
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    threshold: np.float32,
    first: np.ndarray,
    keys: np.ndarray,
) -> None:
    bits = weight.view(np.int32)
    for edge in range(len(target)):
        w = weight[edge]
        if w <= threshold and w < np.inf and source[edge] != target[edge]:
            mention = target[edge] - n_entities + 1
            b = bits[edge] if w != 0 else np.int32(0)  # -0.0 is 0.0
            keys[first[mention]] = edge_key(b, edge)
            first[mention] += 1


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


def incoming(graph: Graph, threshold: np.float32) -> Incoming:
    """Group edges by target and sort each group. It takes O(E log k) for k edges into a mention.

    Self loops, edges above the threshold and edges of weight +inf (which are no edges) are left
    out.
    """
    n_entities, n_mentions, source, target, weight = graph
    # Large arrays are allocated by NumPy, not Numba: NumPy asks for huge pages, and random access
    # to many small pages would cost most.
    first = np.zeros(n_mentions + 2, np.int64)
    _count(n_entities, source, target, weight, threshold, first)
    keys = np.empty(first[-1], np.int64)
    _group(n_entities, source, target, weight, threshold, first, keys)
    first = first[:-1]
    _sort_groups(first, keys)
    return Incoming(first, keys)
