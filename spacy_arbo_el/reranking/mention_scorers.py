"""What the rest of the package needs of a part that scores the edges between mentions.

``MentionPairs.v1`` is one. It needs torch, so it is imported only where a pipeline has one.
"""

from typing import Any, Protocol, runtime_checkable

from ..arrays import TopK
from ..encoders.inputs import SpanInputs


@runtime_checkable
class MentionScorer(Protocol):
    """Gives the nearest mentions of mentions scores that take the place of similarities.

    A frozen dataclass: its fields are its settings, ``from_bytes`` gives a new one.
    """

    @property
    def is_trained(self) -> bool:
        """Whether it has been trained. Until then, similarities stay."""
        ...

    def __call__(self, inputs: SpanInputs, nearest: TopK, retriever: str, first: int = 0) -> TopK:
        """The nearest mentions with their scores, best first.

        inputs: The spans that all mentions in question are encoded from.
        nearest: (m, k), numbers of mentions, nearest first.
        retriever: The fingerprint of the encoder by which they are the nearest.
        first: The number of the mention of the first row.
        """
        ...

    def cached(self) -> "MentionScorer":
        """The same, with scores that are remembered while weights stay as they are."""
        ...

    def to_bytes(self) -> bytes:
        """What it has learned; empty for nothing."""
        ...

    def from_bytes(self, data: bytes) -> Any:
        """The scorer with what ``to_bytes`` gave; without anything learned for empty bytes."""
        ...
