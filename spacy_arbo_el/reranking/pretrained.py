"""The bundled encoder's ranker weights, shipped with the package.

They were fitted on public corpora by ``experiments/default_ranker.py``. They weigh similarities of
vectors, and each encoder has its own scale of these. So they are used only while the encoder gives
the vectors that it gave when they were fitted, as far as a few probes show.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Dict, List

import numpy as np

from ..arrays import unit
from ..encoders.protocol import Encoder
from ..errors import ArboError, Errors
from ..storage.files import pack_arrays, unpack_arrays
from .ranker_weights import RankerWeights

PRETRAINED = Path(__file__).with_name("pretrained.npz")
# Each is encoded as the text of an entity and as a mention.
PROBES = ("heart attack", "Paris, the capital of France", "tumour necrosis factor 2", "Hello")
# Linear layers of 8 bits (0.997) and lower precision on a GPU give at least this mean cosine;
# an encoder that has been trained for some steps does not.
SAME = 0.995


@dataclass(frozen=True, eq=False)
class PretrainedWeights:
    """Weights, and how to recognize the encoder they suit.

    weights: The weights.
    vectors: (2 * len(PROBES), width) float32, of length 1: the probes as texts, then as mentions.
    """

    weights: RankerWeights
    vectors: np.ndarray
    # Whether they suit an encoder, by its fingerprint.
    _suits: Dict[str, bool] = field(default_factory=dict, repr=False)

    @classmethod
    def for_encoder(cls, weights: RankerWeights, encoder: Encoder) -> "PretrainedWeights":
        """Weights for the encoder as it is now."""
        return cls(weights, _vectors_of_probes(encoder))

    def suit(self, encoder: Encoder) -> bool:
        """Return whether the encoder is theirs and untrained since."""
        if encoder.fingerprint not in self._suits:
            vectors = _vectors_of_probes(encoder)
            same = vectors.shape == self.vectors.shape
            same = same and float((vectors * self.vectors).sum(axis=1).mean()) >= SAME
            self._suits[encoder.fingerprint] = same
        return self._suits[encoder.fingerprint]

    def to_bytes(self) -> bytes:
        weights = np.frombuffer(self.weights.to_bytes(), dtype=np.uint8)
        return pack_arrays({"weights": weights, "vectors": self.vectors})

    @classmethod
    def from_bytes(cls, data: bytes) -> "PretrainedWeights":
        """Load the result of ``to_bytes``. Raises ValueError where it is damaged."""
        try:
            arrays = unpack_arrays(data)
            weights = RankerWeights.from_bytes(arrays["weights"].tobytes())
            vectors = arrays["vectors"]
        except Exception as error:  # zipfile and NumPy raise errors of many kinds
            raise ValueError(f"{type(error).__name__}: {error}") from error
        if vectors.dtype != np.float32 or vectors.ndim != 2 or len(vectors) != 2 * len(PROBES):
            raise ValueError(f"the probes have the type {vectors.dtype}, shape {vectors.shape}")
        return cls(weights, vectors)


@lru_cache(maxsize=1)
def pretrained_weights() -> PretrainedWeights:
    """The weights that come with the package."""
    try:
        return PretrainedWeights.from_bytes(PRETRAINED.read_bytes())
    except (OSError, ValueError) as error:
        raise ArboError(Errors.E505.format(path=PRETRAINED, problem=error)) from error


def _vectors_of_probes(encoder: Encoder) -> np.ndarray:
    texts: List[str] = list(PROBES)
    ends = np.array([len(text) for text in texts], dtype=np.int64)
    offsets = np.stack([np.zeros_like(ends), ends], axis=1)
    mentions = encoder.read_mentions(texts, np.arange(len(texts)), offsets)
    both = [
        encoder.encode_texts(encoder.read_texts([(text, "") for text in texts])),
        encoder.encode_mentions(mentions),
    ]
    return unit(np.concatenate(both)).astype(np.float32)
