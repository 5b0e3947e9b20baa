"""Protocols of the readers of an encoder's towers."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .inputs import SpanInputs

# (title, description) of one text of an entity
Text = tuple[str, str]


class TowerReader(Protocol):
    """Reader of a tower's text. It stands in ``model.attrs["reader"]`` of the tower's thinc model.

    A tower is a thinc ``Model[SpanInputs, Floats2d]`` with one row of output for each span. The
    ``repr`` of its reader is part of the encoder's fingerprint: make it a frozen dataclass. An
    attribute ``text_identity`` may say how texts are read, where that depends on less.

    What the tower cannot read has no vector: its row of output is zeros. It is then neither
    searched nor a neighbour of anything. A reader may mark such spans, see ``SpanInputs.readable``.
    """

    def read_mentions(
        self,
        model: Any,
        texts: Sequence[str],
        text_of: np.ndarray,
        offsets: np.ndarray,
    ) -> SpanInputs:
        """Mentions in texts, ready to be encoded: n spans.

        model: The tower.
        texts: The documents.
        text_of: (n,) int64, which text each mention is in.
        offsets: (n, 2) int64 start and end character there, end exclusive.
        """
        ...

    def read_texts(self, model: Any, texts: Sequence[Text]) -> SpanInputs:
        """Texts of entities, ready to be encoded: one span for each text."""
        ...


@runtime_checkable
class PassageTower(Protocol):
    """The reader of a tower that encodes whole texts too."""

    def read_passages(self, model: Any, texts: Sequence[str], size: int) -> SpanInputs:
        """Read whole texts, one span each; ``model`` is the tower."""
        ...
