"""Disjoint sets of nodes."""

import numba


@numba.njit(cache=True, nogil=True)
def find(label, node):
    """The node that stands for a node's set; halves the way there for the next caller.

    label: (n,) integers; a node whose label is itself stands for its set.
    """
    while label[node] != node:
        label[node] = label[label[node]]
        node = label[node]
    return node
