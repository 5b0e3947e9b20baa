"""Clusters that grow mention by mention, independent of later ones."""

from typing import Any, NamedTuple

import numpy as np

from ..base.compiling import jit_helper, numba_jit
from ..base.errors import ArboError, Errors
from .union_find import find

# Errors in arrays: none, or in which of them a number is out of range.
_PROBLEMS = (
    "",
    "a mention is in a cluster that does not exist",
    "a cluster was merged into one that does not exist",
    "clusters were merged in a circle",
    "a pair that is kept apart has a cluster that does not exist",
    "a mention has a neighbour that came later or does not exist",
)


class Attached(NamedTuple):
    """The clusters after m mentions were added to n others.

    of_mention: (n + m,) int64, the number of each mention's cluster.
    merged_into: (c,) int64, for each cluster the number of the one it was merged into, or its own.
    assigned: (m,) int64, the cluster of each new mention at the end of its document.
    first_mentions: (new clusters,) int64, the mention (0..m-1) that started each new cluster.
    merges: For each merge the number that is gone, the number that stays, and the mention (0..m-1)
        whose edges joined them.
    """

    of_mention: np.ndarray
    merged_into: np.ndarray
    assigned: np.ndarray
    first_mentions: np.ndarray
    merges: list[tuple[int, int, int]]


def attach(
    of_mention: np.ndarray,
    merged_into: np.ndarray,
    neighbours: np.ndarray,
    documents: np.ndarray,
    kept_apart: np.ndarray,
    closed: np.ndarray,
) -> Attached:
    """Add mentions to clusters, one after the other.

    A mention joins the cluster of its nearest neighbour. The clusters of its other neighbours are
    merged with that one; the newer cluster becomes part of the older. A mention without neighbours
    starts a cluster.

    of_mention: (n,) int64, the clusters of earlier mentions.
    merged_into: (c,) int64, as in ``Attached``.
    neighbours: (m, k) int64, earlier mentions within the threshold, nearest first, -1 for none. New
        mentions have the numbers from n on.
    documents: (m,) int64, equal for the mentions of a document, which are consecutive.
    kept_apart: (p, 2) int64, pairs of clusters that must not become one.
    closed: (c,) bool, clusters that mentions can join but other clusters cannot.

    Raises ValueError where the arrays do not fit together: the compiled code would read and write
    beyond them.
    """
    count, existing = len(neighbours), len(merged_into)
    check_clusters(of_mention, merged_into, kept_apart)
    if neighbours.ndim != 2 or len(documents) != count or len(closed) != existing:
        raise ArboError(Errors.E721.format(problem="arrays of different lengths"))
    if (neighbours >= (len(of_mention) + np.arange(count))[:, None]).any():
        raise ArboError(Errors.E721.format(problem=_PROBLEMS[5]))
    clusters = np.concatenate([of_mention, np.full(count, -1, np.int64)])
    merged_into = np.concatenate([merged_into, np.arange(existing, existing + count)])
    closed = np.concatenate([closed, np.zeros(count, bool)])
    starts = np.empty(count, np.int64)
    assigned, merges, used = _attach(
        clusters,
        merged_into,
        neighbours,
        documents,
        kept_apart,
        closed,
        len(of_mention),
        existing,
        starts,
    )
    rows = [(gone, stays, mention) for gone, stays, mention in merges.tolist()]
    return Attached(clusters, merged_into[:used], assigned, starts[: used - existing], rows)


def check_clusters(of_mention: np.ndarray, merged_into: np.ndarray, kept_apart: np.ndarray) -> None:
    """Raise ValueError for inconsistent clusters. They are given as to ``attach``."""
    problem = _problem(of_mention, merged_into, kept_apart)
    if problem:
        raise ArboError(Errors.E721.format(problem=_PROBLEMS[problem]))


@numba_jit()
def _problem(
    of_mention: np.ndarray, merged_into: np.ndarray, kept_apart: np.ndarray
) -> int:  # pragma: no cover - compiled
    count = len(merged_into)
    for number in merged_into:
        if number < 0 or number >= count:
            return 2
    for number in of_mention:
        if number < 0 or number >= count:
            return 1
    for number in kept_apart.ravel():
        if number < 0 or number >= count:
            return 4
    # The walk in which a cluster was met first, counted from 1.
    walk = np.zeros(count, np.int64)
    for start in range(count):
        number = start
        while walk[number] == 0:
            walk[number] = start + 1
            number = merged_into[number]
        if walk[number] == start + 1 and merged_into[number] != number:
            return 3
    return 0


@numba_jit()
def merged_numbers(merged_into: np.ndarray) -> np.ndarray:
    """The number of the cluster that each was merged into: (c,) int64."""
    numbers = np.empty_like(merged_into)
    for number in range(len(merged_into)):
        numbers[number] = find(merged_into, number)
    return numbers


@jit_helper
def _must_stay_apart(merged_into: np.ndarray, kept_apart: np.ndarray, a: Any, b: Any) -> bool:
    for pair in range(len(kept_apart)):
        left = find(merged_into, kept_apart[pair, 0])
        right = find(merged_into, kept_apart[pair, 1])
        if (left == a and right == b) or (left == b and right == a):
            return True
    return False


@numba_jit()
def _attach(
    clusters: np.ndarray,
    merged_into: np.ndarray,
    neighbours: np.ndarray,
    documents: np.ndarray,
    kept_apart: np.ndarray,
    closed: np.ndarray,
    first: int,
    used: int,
    starts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, int]:  # pragma: no cover - compiled
    existing = used
    count, width = neighbours.shape
    assigned = np.empty(count, np.int64)
    merges = np.empty((count * width, 3), np.int64)
    n_merges, document_start = 0, 0
    for mention in range(count):
        own = np.int64(-1)
        for column in range(width):
            neighbour = neighbours[mention, column]
            if neighbour < 0:
                continue
            other = find(merged_into, clusters[neighbour])
            if own < 0:
                own = other
            elif (
                other != own
                and not (closed[own] or closed[other])
                and not _must_stay_apart(merged_into, kept_apart, own, other)
            ):
                gone, own = max(own, other), min(own, other)
                merged_into[gone] = own
                merges[n_merges] = (gone, own, mention)
                n_merges += 1
        if own < 0:
            own = np.int64(used)
            starts[used - existing] = mention
            used += 1
        clusters[first + mention] = own
        if mention + 1 == count or documents[mention + 1] != documents[mention]:
            for i in range(document_start, mention + 1):
                assigned[i] = find(merged_into, clusters[first + i])
            document_start = mention + 1
    for i in range(len(clusters)):
        clusters[i] = find(merged_into, clusters[i])
    return assigned, merges[:n_merges], used
