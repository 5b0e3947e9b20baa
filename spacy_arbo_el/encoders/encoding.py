"""The dual encoder as the rest of the package uses it: texts and windows in, NumPy vectors out."""

import hashlib
from typing import List, Sequence, Tuple

import numpy as np
from thinc.api import Model

from ..errors import Errors
from .sequences import Sequences
from .shim import shim_of
from .tokenization import PieceTokenizer
from .transformer import piece_tokenizer

TEXT_BLOCK = 65536


class DualEncoding:
    """Encodes with a dual encoder, and knows which weights it does it with.

    fingerprint: A hash of both towers' weights and of how they read text. Vectors are
        comparable when their fingerprints are equal. ``changed`` must be called whenever
        weights have changed.
    """

    def __init__(self, model: Model):
        self.model = model
        self._tokenizers: dict = {}
        self._fingerprint = ""

    @property
    def is_ready(self) -> bool:
        return shim_of(self.model.get_ref("mention"))._model is not None

    def require_ready(self, name: str) -> None:
        """Raise an error where the component ``name`` has no weights yet."""
        if not self.is_ready:
            raise ValueError(Errors.E504.format(name=name))

    @property
    def fingerprint(self) -> str:
        if not self._fingerprint:
            digest = hashlib.blake2b(digest_size=16)
            for layer in self.model.layers:
                settings = (layer.attrs["window"], layer.attrs["pooling"].__qualname__)
                digest.update(repr(settings).encode("utf8"))
                for name, weights in sorted(shim_of(layer)._model.state_dict().items()):
                    digest.update(name.encode("utf8"))
                    digest.update(weights.detach().cpu().numpy().tobytes())
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    def changed(self) -> None:
        """Forget what depended on the weights or the tokenizer."""
        self._fingerprint = ""
        self._tokenizers.clear()

    def tokenizer(self, tower: str) -> PieceTokenizer:
        """The tokenizer of the tower "mention" or "entity"."""
        if tower not in self._tokenizers:
            self._tokenizers[tower] = piece_tokenizer(self.model.get_ref(tower))
        return self._tokenizers[tower]

    def text_sequences(self, texts: Sequence[Tuple[str, str]]) -> Sequences:
        """Texts of entities, tokenized."""
        tokenizer = self.tokenizer("entity")
        blocks = range(0, len(texts), TEXT_BLOCK)
        return Sequences.concat(tokenizer.entity_texts(texts[i : i + TEXT_BLOCK]) for i in blocks)

    def encode_texts(self, texts: List[Tuple[str, str]]) -> np.ndarray:
        """Texts of entities -> (n, width) float32."""
        return self._predict("entity", self.text_sequences(texts))

    def encode_windows(self, windows: Sequences) -> np.ndarray:
        """Windows round mentions -> (n, width) float32."""
        return self._predict("mention", windows)

    def _predict(self, tower: str, sequences: Sequences) -> np.ndarray:
        encoder = self.model.get_ref(tower)
        return encoder.ops.to_numpy(encoder.predict(sequences))
