"""The edges into each mention, lightest first: what every algorithm here starts from."""

from typing import NamedTuple

import numba
import numpy as np

from .checks import Graph

# An edge's key is its weight, made an integer of the same order, above its index: comparing two
# keys compares weights and then edge order, so no two keys are equal.
EDGE_BITS = 32
EDGE_MASK = (1 << EDGE_BITS) - 1
NO_KEY = np.iinfo(np.int64).max

# Above this many edges into one mention, insertion sort loses to NumPy's.
_LONG = 48


class Incoming(NamedTuple):
    """Edges grouped by the mention they enter: those of mention m are keys[first[m]:first[m+1]]."""

    first: np.ndarray  # (M+1,) int64
    keys: np.ndarray  # (edges kept,) int64, ascending within a mention


@numba.njit(cache=True, nogil=True, inline="always")
def edge_of(key):
    """The index of the edge in the caller's arrays."""
    return key & EDGE_MASK


@numba.njit(cache=True, nogil=True, inline="always")
def edge_key(bits, edge):
    """The key of an edge from the bits of its float32 weight."""
    # Negative floats grow downwards as integers: turn every bit but the sign.
    ordered = np.int64(bits) if bits >= 0 else np.int64(bits ^ np.int32(0x7FFFFFFF))
    return (ordered << EDGE_BITS) | edge


def last_key(threshold: np.float32) -> int:
    """The largest key that an edge of weight ``threshold`` can have."""
    bits = (np.float32(threshold) + np.float32(0)).view(np.int32)
    return int(edge_key(bits, EDGE_MASK))


@numba.njit(cache=True, nogil=True)
def _count(n_entities, source, target, weight, threshold, first):
    """How many usable edges enter each mention, into first[2:]; the numbers of those before after.

    Counted one further on, so that filling moves every start to where it belongs.
    """
    for edge in range(len(target)):
        w = weight[edge]
        if w <= threshold and w < np.inf and source[edge] != target[edge]:
            first[target[edge] - n_entities + 2] += 1
    for at in range(2, len(first)):
        first[at] += first[at - 1]


@numba.njit(cache=True, nogil=True)
def _group(n_entities, source, target, weight, threshold, first, keys):
    bits = weight.view(np.int32)
    for edge in range(len(target)):
        w = weight[edge]
        if w <= threshold and w < np.inf and source[edge] != target[edge]:
            mention = target[edge] - n_entities + 1
            b = bits[edge] if w != 0 else np.int32(0)  # -0.0 is 0.0
            keys[first[mention]] = edge_key(b, edge)
            first[mention] += 1


@numba.njit(cache=True, nogil=True)
def _sort_groups(first, keys):
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
    """Group the edges by target and sort each group; O(E log k) for k edges into a mention.

    Left out: self loops, edges above the threshold, edges of weight +inf (which are no edges).
    """
    n_entities, n_mentions, source, target, weight = graph
    # Large arrays are NumPy's, not Numba's: NumPy asks for huge pages, and random access to
    # many small ones is what would cost most.
    first = np.zeros(n_mentions + 2, np.int64)
    _count(n_entities, source, target, weight, threshold, first)
    keys = np.empty(first[-1], np.int64)
    _group(n_entities, source, target, weight, threshold, first, keys)
    first = first[:-1]
    _sort_groups(first, keys)
    return Incoming(first, keys)
