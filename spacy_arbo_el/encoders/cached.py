"""An encoder that caches vectors, for repeated linking."""

from dataclasses import dataclass, field
from typing import Callable, Dict, Hashable, Sequence

import numpy as np

from .inputs import SpanInputs
from .protocol import Encoder, Text


@dataclass(frozen=True)
class CachedEncoder:
    """Encodes each mention once. The weights of the encoder inside must stay unchanged.

    encoder: What encodes.
    """

    encoder: Encoder
    _vectors: Dict[Hashable, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def is_ready(self) -> bool:
        return self.encoder.is_ready

    @property
    def fingerprint(self) -> str:
        return self.encoder.fingerprint

    @property
    def text_fingerprint(self) -> str:
        return self.encoder.text_fingerprint

    @property
    def is_trained(self) -> bool:
        return self.encoder.is_trained

    def read_mentions(
        self, texts: Sequence[str], text_of: np.ndarray, offsets: np.ndarray
    ) -> SpanInputs:
        return self.encoder.read_mentions(texts, text_of, offsets)

    def read_texts(self, texts: Sequence[Text]) -> SpanInputs:
        return self.encoder.read_texts(texts)

    def encode_texts(self, inputs: SpanInputs) -> np.ndarray:
        return self.encoder.encode_texts(inputs)

    def encode_mentions(self, inputs: SpanInputs) -> np.ndarray:
        return self._remembered(
            inputs.keys(), lambda rows: self.encoder.encode_mentions(inputs.take(rows))
        )

    @property
    def reads_passages(self) -> bool:
        return self.encoder.reads_passages

    def encode_passages(self, tower: str, texts: Sequence[str], size: int) -> np.ndarray:
        def encode(rows: np.ndarray) -> np.ndarray:
            return self.encoder.encode_passages(tower, [texts[row] for row in rows.tolist()], size)

        return self._remembered([(tower, text, size) for text in texts], encode)

    def _remembered(
        self, keys: Sequence[Hashable], encode: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """The vectors of keys.

        encode: Gives those at the places of the keys that are new, (n,) int64.
        """
        new = {key: i for i, key in enumerate(keys) if key not in self._vectors}
        if new or not keys:
            vectors = encode(np.array(list(new.values()), dtype=np.int64))
            if not keys:
                return vectors
            self._vectors.update(zip(new, vectors))
        return np.stack([self._vectors[key] for key in keys])
