"""Disjoint sets of nodes."""

from typing import Any

import numpy as np

from ..base.compiling import jit_helper


@jit_helper
def find(label: np.ndarray, node: Any) -> Any:
    """Find the node that represents a node's set, and halve the path to it.

    label: (n,) integers; a node whose label is itself represents its set.
    """
    while label[node] != node:
        label[node] = label[label[node]]
        node = label[node]
    return node
