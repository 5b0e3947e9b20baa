"""A sum of decision trees over features, such as gradient boosting fits."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from ..base.arrays import int_array


@dataclass(frozen=True, eq=False)
class Trees:
    """Decision trees whose values add up.

    The nodes of all trees stand in one array; a tree's root comes before its other nodes.

    roots: (t,) int64, the node that each tree begins with.
    feature: (n,) int64, which feature a node asks for; -1 for a leaf.
    threshold: (n,) float64, what it compares the feature with.
    left: (n,) int64, the node that follows where the feature is at most the threshold.
    right: (n,) int64, the node that follows otherwise.
    values: (n,) float64, what a leaf adds.
    """

    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    values: np.ndarray

    @classmethod
    def none(cls) -> "Trees":
        """No trees: everything has the value 0."""
        integers = int_array()
        real = np.zeros(0)
        return cls(integers, integers, real, integers, integers, real)

    @cached_property
    def depth(self) -> int:
        """How many nodes the longest way from a root to a leaf passes before the leaf."""
        nodes = self.roots
        depth = 0
        while (nodes := nodes[self.feature[nodes] >= 0]).size:
            nodes = np.concatenate([self.left[nodes], self.right[nodes]])
            depth += 1
        return depth

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """The sum of the trees' values, (m,) float64, by features (m, f)."""
        nodes = np.broadcast_to(self.roots, (len(features), len(self.roots)))
        rows = np.arange(len(features))[:, None]
        for _ in range(self.depth):
            feature = self.feature[nodes]
            is_left = features[rows, feature] <= self.threshold[nodes]
            following = np.where(is_left, self.left[nodes], self.right[nodes])
            nodes = np.where(feature >= 0, following, nodes)
        return self.values[nodes].sum(axis=1)

    def with_prediction(self, features: np.ndarray) -> np.ndarray:
        """The features with the sum of the trees' values as its last column: (m, f + 1) float64."""
        return np.column_stack([features, self(features)])

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_features: int) -> "Trees":
        """Load the result of ``to_arrays``.

        n_features: How many features there are.

        Raises ValueError where an array is missing, has another type or shape, or where the nodes
        are no trees over so many features.
        """
        names = {field.name for field in fields(cls)}
        if set(arrays) != names:
            raise ValueError(f"the trees have the arrays {sorted(arrays)}")
        size = len(arrays["feature"])
        for name, array in arrays.items():
            kind = np.float64 if name in ("threshold", "values") else np.int64
            if (
                array.dtype != kind
                or array.ndim != 1
                or (name != "roots" and len(array) != size)
            ):
                raise ValueError(
                    f"{name} has the type {array.dtype} and the shape {array.shape}"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"{name} has numbers that are not finite")
        trees = cls(**arrays)
        inner = np.flatnonzero(trees.feature >= 0)
        following = np.concatenate([trees.left[inner], trees.right[inner]])
        # A node that leads to later ones only can't lead back to itself.
        is_wrong = (following <= np.tile(inner, 2)).any() or (following >= size).any()
        is_wrong = is_wrong or ((trees.roots < 0) | (trees.roots >= size)).any()
        if is_wrong or ((trees.feature < -1) | (trees.feature >= n_features)).any():
            raise ValueError("the nodes are no trees over so many features")
        return trees
