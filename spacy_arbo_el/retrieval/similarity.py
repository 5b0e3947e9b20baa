"""The similarity of two vectors: larger means more similar.

A weight in the graph is the negative of a similarity.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from spacy.util import registry

from ..base.arrays import unit


@dataclass(frozen=True)
class Similarity:
    """A similarity with its preparation of vectors.

    metric: "ip" where it is the inner product of prepared vectors, "l2" where it is their
        negative squared distance.
    normalize: Whether vectors are prepared by scaling them to length 1.
    """

    metric: ClassVar[str]
    normalize: ClassVar[bool]

    def prepare(self, vectors: np.ndarray) -> np.ndarray:
        """Prepare raw vectors (n, width) for searching and comparing."""
        return unit(vectors) if self.normalize else vectors

    def paired(self, queries: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Similarities of each vector to its own ``k`` others.

        Each similarity depends on its two vectors alone, never on the rest of the batch, so that
        links are the same for every batch size.

        queries: (n, width), prepared.
        targets: (n, k, width), prepared.
        RETURNS: (n, k).
        """
        if self.metric == "ip":
            return np.einsum("nd,nkd->nk", queries, targets)
        difference = queries[:, None, :] - targets
        return -np.einsum("nkd,nkd->nk", difference, difference)

    def of_equals(self, vectors: np.ndarray) -> np.ndarray:
        """Similarity of vectors (n, width) to themselves: (n,) float32."""
        if self.metric == "l2":
            return np.zeros(len(vectors), dtype=np.float32)
        if self.normalize:
            return np.ones(len(vectors), dtype=np.float32)
        return np.einsum("nd,nd->n", vectors, vectors)

    def rounding(self, queries: np.ndarray, largest: float) -> np.ndarray:
        """Rounding error between equal similarities of prepared queries (n, width): (n,).

        largest: The largest norm of the vectors that they are compared with.
        """
        norms = np.sqrt(np.einsum("nd,nd->n", queries, queries))
        # Of a sum of n products: n roundings, in either direction and in both of two similarities.
        eps = np.finfo(np.float32).eps
        return (4 * queries.shape[1] * eps * (norms + largest) ** 2 / 2).astype(
            np.float32
        )

    def largest_norm(self, vectors: np.ndarray) -> float:
        """The largest norm of prepared vectors."""
        if self.normalize or not len(vectors):
            return 1.0
        squares = np.einsum("nd,nd->n", vectors, vectors)
        return float(np.sqrt(squares[np.isfinite(squares)].max(initial=0.0)))

    def blocks(self, queries: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """All similarities of prepared (n, width) and (m, width), by matrix product: (n, m)."""
        product = queries @ targets.T
        if self.metric == "ip":
            return product
        squares = (queries * queries).sum(1)[:, None] + (targets * targets).sum(1)[
            None, :
        ]
        return 2 * product - squares


@registry.misc("spacy-arbo-el.Dot.v1")
@dataclass(frozen=True)
class Dot(Similarity):
    """The inner product (arborescence paper, Equation 4).

    Use it for an encoder that was trained with it::

        [components.arbo_linker.retriever.similarity]
        @misc = "spacy-arbo-el.Dot.v1"
    """

    metric = "ip"
    normalize = False


@registry.misc("spacy-arbo-el.Cosine.v1")
@dataclass(frozen=True)
class Cosine(Similarity):
    """The inner product of vectors of length 1. The default, and right for most encoders::

    [components.arbo_linker.retriever.similarity]
    @misc = "spacy-arbo-el.Cosine.v1"
    """

    metric = "ip"
    normalize = True


@registry.misc("spacy-arbo-el.NegativeSquaredEuclidean.v1")
@dataclass(frozen=True)
class NegativeSquaredEuclidean(Similarity):
    """Minus the squared Euclidean distance (VERBALIZED, §3).

    Use it to train as that paper does::

        [components.arbo_linker.retriever.similarity]
        @misc = "spacy-arbo-el.NegativeSquaredEuclidean.v1"
    """

    metric = "l2"
    normalize = False
