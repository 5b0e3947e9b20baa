"""The edges into each mention, sorted from the lightest. What the algorithms here start from."""

from typing import Any, NamedTuple

import numpy as np

from ..compiling import jit_helper, numba_jit
from .arguments import Graph

# The key of an edge has its weight in the upper bits, as an integer of the same order, and its
# index in the lower bits. Comparing keys compares weights, then indices: no two keys are equal.
EDGE_BITS = 32
EDGE_MASK = (1 << EDGE_BITS) - 1
NO_KEY = np.iinfo(np.int64).max

# Above this many edges into one mention, NumPy's sort is faster than insertion sort.
_LONG = 48


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


def last_key(threshold: np.float32) -> int:
    """Largest key of an edge of weight ``threshold``."""
    bits = (np.float32(threshold) + np.float32(0)).view(np.int32)
    return int(edge_key(bits, EDGE_MASK))


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
        begin, end = first[group], first[group + 1]
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
