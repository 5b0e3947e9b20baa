"""Average a passage's n-grams into the fields of Figure 1. Passages are of hashed tokens."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from ....base.arrays import mix, offsets_of, ragged_ranges
from ....encoders.inputs import SpanInputs, assemble
from .hashing import BREAK, PLACE

MENTION_FIELDS = ("span", "left", "right", "sentence")
ENTITY_FIELDS = ("title", "description", "types")
# What tells the hashes of bigrams from those of words.
BIGRAM = 0xD6E8FEB86659FD93


@dataclass(frozen=True, eq=False)
class Field:
    """One field of ``n`` spans: tokens in a flat array.

    ids: (total,) numbers of tokens.
    offsets: (n + 1,) int64, the tokens of span ``i`` are ``ids[offsets[i]:offsets[i + 1]]``.
    """

    ids: np.ndarray
    offsets: np.ndarray


def mention_fields(inputs: SpanInputs, near: int) -> list[Field]:
    """Fields of a mention: itself, left, right, sentence. The sentence has ``PLACE`` instead of the
    mention.

    near: The number of tokens on the left and on the right.
    """
    start = inputs.offsets[inputs.passage]
    end = inputs.offsets[inputs.passage + 1]
    low = start + inputs.first
    high = start + inputs.last + 1
    left = np.maximum(low - near, start)
    right = np.minimum(high + near, end)
    flat = np.append(inputs.ids, np.int32(PLACE))
    place = np.full(len(inputs), len(flat) - 1)
    sentence = assemble(flat, [start, place, high], [low - start, np.ones_like(place), end - high])
    parts = [(low, high), (left, low), (high, right)]
    return [*(_cut(inputs.ids, *part) for part in parts), Field(*sentence)]


def entity_fields(inputs: SpanInputs) -> list[Field]:
    """The names, the description and the types."""
    start = inputs.offsets[inputs.passage]
    end = inputs.offsets[inputs.passage + 1]
    low = start + inputs.first
    high = start + inputs.last + 1
    types = start + inputs.marker
    return [_cut(inputs.ids, *part) for part in ((low, high), (high, types), (types, end))]


def _cut(ids: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Field:
    lengths = np.maximum(ends - starts, 0)
    return Field(ids[ragged_ranges(starts, lengths)], offsets_of(lengths))


def averages(field: Field, rows: int) -> tuple[csr_matrix, csr_matrix]:
    """Matrices that average a field's unigram and bigram vectors.

    Each is (n, rows). A product with the table of vectors gives the averages, zeros for none.
    No bigram goes across a break.

    rows: The number of rows of the table.
    """
    n = len(field.offsets) - 1
    owner = np.repeat(np.arange(n), np.diff(field.offsets))
    ids = field.ids.astype(np.int64)
    kept = ids != BREAK
    unigrams = _average(owner[kept], unigram_rows(ids[kept], rows), n, rows)
    pair = (owner[:-1] == owner[1:]) & kept[:-1] & kept[1:]
    bigrams = bigram_rows(ids[:-1][pair], ids[1:][pair], rows)
    return unigrams, _average(owner[:-1][pair], bigrams, n, rows)


def unigram_rows(ids: np.ndarray, rows: int) -> np.ndarray:
    """Table row of each token: (n,) int64."""
    return (mix(ids.astype(np.uint64)) % np.uint64(rows)).astype(np.int64)


def bigram_rows(left: np.ndarray, right: np.ndarray, rows: int) -> np.ndarray:
    """Table row of each pair of tokens: (n,) int64."""
    pair = mix(left.astype(np.uint64) + np.uint64(BIGRAM)) + right.astype(np.uint64)
    return (mix(pair) % np.uint64(rows)).astype(np.int64)


def _average(owner: np.ndarray, rows: np.ndarray, n: int, n_rows: int) -> csr_matrix:
    """A matrix that averages some rows for each owner; owners ascend."""
    counts = np.bincount(owner, minlength=n)
    weights = (1.0 / np.maximum(counts, 1)).astype(np.float32)[owner]
    return csr_matrix((weights, rows, offsets_of(counts)), shape=(n, n_rows))
