"""Clusters that grow mention by mention, and never depend on what comes later."""

from typing import List, NamedTuple, Tuple

import numba
import numpy as np

from .union_find import find


class Attached(NamedTuple):
    """What became of m mentions that came to n others.

    cluster: (n + m,) int64, the number of each mention's cluster.
    leads: (c,) int64, for each number that of the cluster it has become part of, or its own.
    at_once: (m,) int64, the cluster of each new mention when its document was through.
    begun: (new clusters,) int64, the mention (0..m-1) that each new cluster began with.
    merges: For each merge the number that went, the one that stayed, and the mention (0..m-1) whose
        edges joined them.
    """

    cluster: np.ndarray
    leads: np.ndarray
    at_once: np.ndarray
    begun: np.ndarray
    merges: List[Tuple[int, int, int]]


def attach(
    cluster: np.ndarray,
    leads: np.ndarray,
    neighbours: np.ndarray,
    document: np.ndarray,
    apart: np.ndarray,
    closed: np.ndarray,
) -> Attached:
    """Put new mentions into clusters, one after the other.

    A mention joins the cluster of its nearest neighbour, and its other neighbours' clusters join
    too: the younger becomes part of the older. A mention without neighbours begins a cluster.

    cluster: (n,) int64, the clusters of earlier mentions. leads: (c,) int64, as in ``Attached``.
    neighbours: (m, k) int64, earlier mentions under the threshold, nearest first, -1 for none; of
        new mentions too, with numbers from n on.
    document: (m,) int64, equal for mentions of a document, which stand together.
    apart: (p, 2) int64, pairs of clusters that must not become one.
    closed: (c,) bool, clusters that take mentions and no other cluster.
    """
    count, known = len(neighbours), len(leads)
    whole = np.concatenate([cluster, np.full(count, -1, np.int64)])
    leads = np.concatenate([leads, np.arange(known, known + count)])
    closed = np.concatenate([closed, np.zeros(count, bool)])
    begun = np.empty(count, np.int64)
    at_once, merges, used = _attach(
        whole, leads, neighbours, document, apart, closed, len(cluster), known, begun
    )
    rows = [(gone, stays, mention) for gone, stays, mention in merges.tolist()]
    return Attached(whole, leads[:used], at_once, begun[: used - known], rows)


@numba.njit(cache=True, nogil=True)
def settled(leads):
    """What each cluster has become part of, all at once: (c,) int64."""
    found = np.empty_like(leads)
    for number in range(len(leads)):
        found[number] = find(leads, number)
    return found


@numba.njit(cache=True, nogil=True)
def _are_apart(leads, apart, a, b):
    for pair in range(len(apart)):
        left, right = find(leads, apart[pair, 0]), find(leads, apart[pair, 1])
        if (left == a and right == b) or (left == b and right == a):
            return True
    return False


@numba.njit(cache=True, nogil=True)
def _attach(
    cluster, leads, neighbours, document, apart, closed, first, used, starts
):  # pragma: no cover - compiled
    known = used
    count, width = neighbours.shape
    at_once = np.empty(count, np.int64)
    merges = np.empty((count * width, 3), np.int64)
    merged, begun = 0, 0
    for mention in range(count):
        here = np.int64(-1)
        for column in range(width):
            other = neighbours[mention, column]
            if other < 0:
                continue
            there = find(leads, cluster[other])
            if here < 0:
                here = there
            elif (
                there != here
                and not (closed[here] or closed[there])
                and not _are_apart(leads, apart, here, there)
            ):
                gone, here = max(here, there), min(here, there)
                leads[gone] = here
                merges[merged] = (gone, here, mention)
                merged += 1
        if here < 0:
            here = np.int64(used)
            starts[used - known] = mention
            used += 1
        cluster[first + mention] = here
        if mention + 1 == count or document[mention + 1] != document[mention]:
            for i in range(begun, mention + 1):
                at_once[i] = find(leads, cluster[first + i])
            begun = mention + 1
    for i in range(len(cluster)):
        cluster[i] = find(leads, cluster[i])
    return at_once, merges[:merged], used
