"""How near two vectors are: larger is nearer. A weight is a similarity with its sign turned."""

from dataclasses import dataclass
from typing import Tuple

import numpy as np
from spacy.util import registry


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors (n, width) brought to length 1; those of length 0 stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True)
class Similarity:
    """A similarity and what it means for an index and for gradients.

    metric: "ip" where it is the inner product of prepared vectors, "l2" where it is their
        negative squared distance.
    normalise: Whether vectors are prepared by bringing them to length 1.
    scale: What similarities are multiplied with to become the logits of a loss (an
        inverse temperature). Retrieval and graph use the bare similarity.
    """

    metric: str
    normalise: bool
    scale: float

    def prepare(self, vectors: np.ndarray) -> np.ndarray:
        """(n, width) raw vectors -> the form in which they are stored and searched."""
        if not self.normalise:
            return vectors
        return unit(vectors)

    def prepare_backward(self, vectors: np.ndarray, d_prepared: np.ndarray) -> np.ndarray:
        """The gradient with respect to raw vectors from that of the prepared ones."""
        if not self.normalise:
            return d_prepared
        norms = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        units = vectors / norms
        along = (units * d_prepared).sum(axis=1, keepdims=True)
        return (d_prepared - units * along) / norms

    def paired(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """(n, width) and (n, k, width) prepared vectors -> (n, k) similarities.

        A similarity computed here depends on its two vectors alone, never on what else is in
        the batch, so links are the same for every batch size.
        """
        if self.metric == "ip":
            return np.einsum("nd,nkd->nk", left, right)
        difference = left[:, None, :] - right
        return -np.einsum("nkd,nkd->nk", difference, difference)

    def paired_backward(
        self, left: np.ndarray, right: np.ndarray, d_similarity: np.ndarray
    ) -> Tuple[np.ndarray, np.ndarray]:
        """Gradients of ``paired`` with respect to left (n, width) and right (n, k, width)."""
        if self.metric == "ip":
            d_left = np.einsum("nk,nkd->nd", d_similarity, right)
            return d_left, d_similarity[:, :, None] * left[:, None, :]
        d_right = 2 * d_similarity[:, :, None] * (left[:, None, :] - right)
        return -d_right.sum(axis=1), d_right

    def blocks(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """(n, width) and (m, width) prepared vectors -> (n, m) similarities, by matrix product."""
        product = left @ right.T
        if self.metric == "ip":
            return product
        squares = (left * left).sum(1)[:, None] + (right * right).sum(1)[None, :]
        return 2 * product - squares


@registry.misc("spacy-arbo-el.Dot.v1")
def dot(scale: float = 1.0) -> Similarity:
    """The inner product (arborescence paper, Equation 4)."""
    return Similarity("ip", normalise=False, scale=scale)


@registry.misc("spacy-arbo-el.Cosine.v1")
def cosine(scale: float = 20.0) -> Similarity:
    """The inner product of vectors of length 1."""
    return Similarity("ip", normalise=True, scale=scale)


@registry.misc("spacy-arbo-el.NegativeSquaredEuclidean.v1")
def negative_squared_euclidean(scale: float = 1.0) -> Similarity:
    """Minus the squared Euclidean distance (VERBALIZED, §3)."""
    return Similarity("l2", normalise=False, scale=scale)
