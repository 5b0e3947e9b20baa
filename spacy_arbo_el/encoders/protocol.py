"""Protocols of an encoder and of its towers."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .inputs import SpanInputs

# (title, description) of one text of an entity
Text = tuple[str, str]


class Encoder(Protocol):
    """Encodes mentions and entity texts in one vector space.

    ``DualEncoder`` is one over any two towers.
    """

    @property
    def is_ready(self) -> bool:
        """Return whether the encoder has its weights."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of all that vectors depend on. Vectors are comparable where it is equal."""
        ...

    @property
    def text_fingerprint(self) -> str:
        """A hash of all that vectors of entities' texts depend on."""
        ...

    @property
    def is_trained(self) -> bool:
        """Return whether the weights are in training. Their vectors are not kept for others."""
        ...

    def read_mentions(
        self, texts: Sequence[str], text_of: np.ndarray, offsets: np.ndarray
    ) -> SpanInputs:
        """Mentions in texts, ready to be encoded: n spans.

        texts: The documents.
        text_of: (n,) int64, which text each mention is in.
        offsets: (n, 2) int64 start and end character there, end exclusive.
        """
        ...

    def read_texts(self, texts: Sequence[Text]) -> SpanInputs:
        """Texts of entities, ready to be encoded: one span for each text."""
        ...

    def encode_mentions(self, inputs: SpanInputs) -> np.ndarray:
        """Encode spans of mentions: (n, width) float32, not normalized, zeros for no vector."""
        ...

    def encode_texts(self, inputs: SpanInputs) -> np.ndarray:
        """Encode texts of entities: (n, width) float32, not normalized, zeros for no vector."""
        ...

    @property
    def reads_passages(self) -> bool:
        """Return whether ``read_passages`` and ``encode_passages`` can be called."""
        ...

    def read_passages(self, tower: str, texts: Sequence[str], size: int) -> SpanInputs:
        """Whole texts, ready to be encoded: one span each. The arguments of ``encode_passages``."""
        ...

    def encode_passages(self, tower: str, texts: Sequence[str], size: int) -> np.ndarray:
        """Encode whole texts: contexts of mentions, and descriptions of entities.

        tower: "mention" for contexts, "entity" for descriptions.
        size: The most word pieces of a text that are read, special tokens included.
        RETURNS: (n, width) float32, not normalized. Zeros for no vector.
        """
        ...


class TowerReader(Protocol):
    """Reader of a tower's text. It stands in ``model.attrs["reader"]`` of the tower's thinc model.

    A tower is a thinc ``Model[SpanInputs, Floats2d]`` with one row of output for each span. The
    ``repr`` of its reader is part of the encoder's fingerprint: make it a frozen dataclass. An
    attribute ``text_identity`` may say how texts are read, where that depends on less.

    What the tower cannot read has no vector: its row of output is zeros. It is then neither
    searched nor a neighbour of anything. A reader may mark such spans, see ``SpanInputs.readable``.
    """

    def read_mentions(
        self, model: Any, texts: Sequence[str], text_of: np.ndarray, offsets: np.ndarray
    ) -> SpanInputs:
        """Read mentions; ``model`` is the tower. See ``Encoder.read_mentions``."""
        ...

    def read_texts(self, model: Any, texts: Sequence[Text]) -> SpanInputs:
        """Read texts; ``model`` is the tower. See ``Encoder.read_texts``."""
        ...


@runtime_checkable
class PassageTower(Protocol):
    """The reader of a tower that encodes whole texts too."""

    def read_passages(self, model: Any, texts: Sequence[str], size: int) -> SpanInputs:
        """Read whole texts, one span each; ``model`` is the tower."""
        ...
