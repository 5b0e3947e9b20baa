"""Encoding of a knowledge base's texts, without duplicates."""

from collections.abc import Sequence

import numpy as np

from ..base.log import progress
from ..encoders.dual import DualEncoder
from ..encoders.protocol import Text
from ..kb.knowledge_base import ArboKB
from ..kb.vector_cache import VectorCache

# Fewer texts or mentions are encoded without a message.
MIN_LOGGED = 1000
TITLE = "Encoding the knowledge base (once, where a folder keeps its vectors)"
# Texts per step of the progress bar.
TEXTS_PER_STEP = 2048


def encode_texts(encoder: DualEncoder, texts: Sequence[Text]) -> np.ndarray:
    """(len(texts), width) float32, raw. Texts of about the same length are encoded at a time."""
    if len(texts) < MIN_LOGGED:
        return encoder.encode_texts(encoder.read_texts(texts))
    order = np.argsort(
        [len(title) + len(text) for title, text in texts], kind="stable"
    )
    encoded = []
    with progress(len(texts), TITLE, "text") as bar:
        for start in range(0, len(texts), TEXTS_PER_STEP):
            rows = order[start : start + TEXTS_PER_STEP].tolist()
            inputs = encoder.read_texts([texts[row] for row in rows])
            encoded.append(encoder.encode_texts(inputs))
            bar.update(len(rows))
    return np.concatenate(encoded)[np.argsort(order)]


def vector_cache(
    kb: ArboKB, encoder: DualEncoder, kind: str, keys: np.ndarray
) -> VectorCache:
    """Vectors of further texts by an encoder, to read and to extend.

    kind: What the texts are, such as "descriptions"; see ``VectorCaches.of``.
    keys: (n,) int64, see ``texts.keys_of``.
    """
    caches = kb.vectors.caches
    persist = not encoder.is_trained
    cache = caches.of(kind, encoder.text_fingerprint, persist=persist)
    return caches.to_fill(cache, keys)
