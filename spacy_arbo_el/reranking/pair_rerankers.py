"""Protocol of rerankers with a cross-encoder.

``CrossEncoder.v1`` is one. It needs torch, so it is imported only where a pipeline has one.
"""

from typing import Protocol, runtime_checkable

import numpy as np

from ..mentions.batch import MentionBatch
from ..retrieval.neighbours import Neighbours
from .protocol import RankingContext, Reranker


@runtime_checkable
class PairReranker(Reranker, Protocol):
    """A reranker that scores the first candidates of another one."""

    def turned(
        self, batch: MentionBatch, neighbours: Neighbours, context: RankingContext
    ) -> np.ndarray:
        """First candidates without and with scores: (m, 2) int64."""
        ...

    def cached(self) -> Reranker:
        """The same reranker with cached scores. They hold while weights stay unchanged."""
        ...

    def uncached(self) -> Reranker:
        """The reranker as it was before ``cached``."""
        ...

    def unfitted(self) -> Reranker:
        """The reranker without what ``fit`` has learned. The weights of its model stay."""
        ...


def cached(reranker: Reranker) -> Reranker:
    """The reranker with cached pair scores, where it reads pairs."""
    return reranker.cached() if isinstance(reranker, PairReranker) else reranker


def uncached(reranker: Reranker) -> Reranker:
    """The reranker as it was before ``cached``."""
    return reranker.uncached() if isinstance(reranker, PairReranker) else reranker


def unfitted(reranker: Reranker) -> Reranker:
    """The reranker without what ``fit`` has learned. The weights of a cross-encoder stay."""
    if isinstance(reranker, PairReranker):
        return reranker.unfitted()
    return reranker.from_bytes(b"")


def kind_of(reranker: Reranker) -> str:
    """A key that rerankers must share to exchange weights."""
    settings = getattr(reranker, "learned_with", {})
    named = ", ".join(f"{name} = {value}" for name, value in settings.items())
    return type(reranker).__name__ + (f" ({named})" if named else "")
