"""Encoding of a knowledge base's texts, without duplicates."""

from collections.abc import Sequence

import numpy as np

from ..base.log import progress
from ..encoders.dual import DualEncoder
from ..encoders.protocol import Text

# Fewer texts or mentions are encoded without a message.
MIN_LOGGED = 1000
TITLE = "Encoding the knowledge base (once, where a folder keeps its vectors)"
# Texts per step of the progress bar.
TEXTS_PER_STEP = 512


def encode_texts(encoder: DualEncoder, texts: Sequence[Text]) -> np.ndarray:
    """(len(texts), width) float32, raw. Texts of about the same length are encoded at a time."""
    if len(texts) < MIN_LOGGED:
        return encode_batch(encoder, texts)
    batches = text_batches(texts)
    encoded = []
    with progress(len(texts), TITLE, "text") as bar:
        for rows in batches:
            encoded.append(
                encode_batch(encoder, [texts[row] for row in rows.tolist()])
            )
            bar.update(len(rows))
    vectors = np.empty((len(texts), encoded[0].shape[1]), dtype=np.float32)
    vectors[np.concatenate(batches)] = np.concatenate(encoded)
    return vectors


def text_batches(texts: Sequence[Text]) -> list[np.ndarray]:
    """Batches of texts by number, as ``encode_texts`` encodes them."""
    if len(texts) < MIN_LOGGED:
        return [np.arange(len(texts))]
    order = np.argsort(
        [len(title) + len(text) for title, text in texts], kind="stable"
    )
    starts = range(0, len(texts), TEXTS_PER_STEP)
    return [order[start : start + TEXTS_PER_STEP] for start in starts]


def encode_batch(encoder: DualEncoder, texts: Sequence[Text]) -> np.ndarray:
    """Encode texts at once: (len(texts), width) float32, raw."""
    return encoder.encode_texts(encoder.read_texts(texts))
