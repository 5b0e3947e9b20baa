"""Disjoint sets of nodes."""

from typing import Any

import numpy as np

from ..base.compiling import jit_helper, numba_jit


@jit_helper
def find(label: np.ndarray, node: Any) -> Any:
    """Find the node that represents a node's set, and halve the path to it.

    label: (n,) integers; a node whose label is itself represents its set.
    """
    while label[node] != node:
        label[node] = label[label[node]]
        node = label[node]
    return node


@numba_jit()
def find_all(label: np.ndarray) -> np.ndarray:
    """Find the node that represents each node's set: (n,) int64."""
    found = np.empty_like(label)
    for node in range(len(label)):
        found[node] = find(label, node)
    return found
