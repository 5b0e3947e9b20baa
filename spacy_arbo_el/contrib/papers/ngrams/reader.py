"""What the n-gram encoder reads: passages of hashed tokens, and the fields of Figure 1 in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from ....base.arrays import int_array, mix, offsets_of, ragged_ranges
from ....base.settings import check_count
from ....encoders.inputs import SpanInputs, assemble, check_offsets
from ....encoders.protocol import Text
from .hashing import BREAK, PLACE, Tokens, number_tokens, tokenize

# The most tokens of a mention or of an entity's names, and of a description or its types.
NAME_TOKENS = 64
TEXT_TOKENS = 256
# Characters of a text of an entity that are read, for each token that is kept.
CHARACTERS_PER_TOKEN = 50
MENTION_FIELDS = ("span", "left", "right", "sentence")
ENTITY_FIELDS = ("title", "description", "types")
# What tells the hashes of bigrams from those of words.
BIGRAM = 0xD6E8FEB86659FD93


@dataclass(frozen=True)
class NgramReader:
    """Reads mentions' sentences and entity texts as hashed tokens.

    A passage of a mention is its sentence, or as much of it as the window has room for, and at
    least the tokens near the mention. Sentences are found by their punctuation, since an encoder
    gets texts. The span is the mention.

    A passage of an entity is its names, a break, the description, a break, the types. The span is
    the names. Each line of a title is a name, and each line of a description but the first is a
    type, see ``Fields.v1``.

    near: The tokens on either side that are separate fields.
    window: The most tokens of the sentence on either side.
    """

    near: int = 5
    window: int = 32

    def __post_init__(self) -> None:
        check_count("model.near", self.near)
        check_count("model.window", self.window)

    @property
    def text_identity(self) -> str:
        """Identify all that the vector of an entity's text depends on."""
        return "words and pairs of words"

    def read_mentions(
        self,
        model: Any,
        texts: Sequence[str],
        text_of: np.ndarray,
        offsets: np.ndarray,
    ) -> SpanInputs:
        """Read mentions without looking at ``model``. See ``TowerReader.read_mentions``."""
        check_offsets(texts, text_of, offsets)
        if not len(text_of):
            return SpanInputs.empty()
        text_starts = offsets_of(int_array([len(text) for text in texts]))
        characters = text_starts[text_of][:, None] + offsets.reshape(-1, 2)
        tokens = tokenize(texts, characters.ravel())
        low = np.searchsorted(tokens.starts, characters[:, 0])
        high = np.maximum(np.searchsorted(tokens.starts, characters[:, 1]), low)
        begin, end = self._context(tokens, text_of, low, high)
        lengths = np.minimum(high - low, NAME_TOKENS)
        passages = assemble(
            number_tokens(tokens),
            (begin, low - begin),
            (low, lengths),
            (high, end - high),
        )
        first = low - begin
        return SpanInputs.one_span_each(*passages, first, first + lengths - 1, first)

    def _context(
        self, tokens: Tokens, text_of: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> Sequence[np.ndarray]:
        """First token of each passage, and the end."""
        if not len(tokens):
            return low, high
        sentences = tokens.sentences
        last = len(tokens) - 1
        before = np.searchsorted(sentences, sentences[np.minimum(low, last)])
        behind = np.searchsorted(
            sentences, sentences[np.clip(high - 1, 0, last)], side="right"
        )
        begin = np.minimum(np.maximum(before, low - self.window), low - self.near)
        end = np.maximum(np.minimum(behind, high + self.window), high + self.near)
        begin = np.clip(begin, tokens.bounds[text_of], low)
        return begin, np.clip(end, high, np.maximum(tokens.bounds[text_of + 1], high))

    def read_texts(self, model: Any, texts: Sequence[Text]) -> SpanInputs:
        """Read texts without looking at ``model``. See ``TowerReader.read_texts``."""
        if not texts:
            return SpanInputs.empty()
        limits = (
            NAME_TOKENS * CHARACTERS_PER_TOKEN,
            TEXT_TOKENS * CHARACTERS_PER_TOKEN,
        )
        tokens = tokenize(
            [string[:n] for text in texts for string, n in zip(text, limits)]
        )
        first = tokens.bounds[:-1]
        lines = tokens.lines
        n_tokens = np.diff(tokens.bounds)
        breaks = np.zeros(len(tokens), dtype=bool)
        breaks[1:] = lines[1:] > lines[:-1]
        breaks[first[n_tokens > 0]] = False
        words = number_tokens(tokens)
        title = first[0::2]
        description = first[1::2]
        title_end = np.minimum(description, title + NAME_TOKENS)
        # The first line is the description, and the others are types.
        described = np.add.reduceat(np.append(lines == 0, False), first)[1::2]
        described = np.where(n_tokens[1::2] > 0, described, 0)
        types = description + described
        end = tokens.bounds[2::2]
        flat = np.concatenate(
            [words, np.insert(words, np.flatnonzero(breaks), BREAK), [BREAK]]
        )
        # Where each token, with the break before it, begins among those with breaks.
        at = len(words) + np.arange(len(words) + 1) + offsets_of(breaks)
        cut = np.minimum(described, TEXT_TOKENS)
        types_end = np.minimum(end, types + TEXT_TOKENS)
        length = at[title_end] - at[title]
        passages = assemble(
            flat,
            (at[title], length),
            (len(flat) - 1, 1),
            (description, cut),
            (len(flat) - 1, 1),
            (at[types], at[types_end] - at[types]),
        )
        readable = (length > 0) | (cut > 0)
        last = np.where(readable, np.maximum(length - 1, 0), -1)
        zeros = np.zeros_like(last)
        return SpanInputs.one_span_each(*passages, zeros, last, length + 1 + cut)


@dataclass(frozen=True, eq=False)
class Field:
    """One field of ``n`` spans: tokens in a flat array.

    ids: (total,) numbers of tokens.
    offsets: (n + 1,) int64, the tokens of span ``i`` are ``ids[offsets[i]:offsets[i + 1]]``.
    """

    ids: np.ndarray
    offsets: np.ndarray


def mention_fields(inputs: SpanInputs, window: int) -> list[Field]:
    """Fields of a mention: itself, left, right, sentence. The sentence has ``PLACE`` instead of the
    mention.

    window: The number of tokens on the left and on the right.
    """
    start, low, high, end = _bounds(inputs)
    window_start = np.maximum(low - window, start)
    window_end = np.minimum(high + window, end)
    flat = np.append(inputs.ids, np.int32(PLACE))
    sentence = assemble(
        flat, (start, low - start), (len(flat) - 1, 1), (high, end - high)
    )
    bounds = [(low, high), (window_start, low), (high, window_end)]
    return [*(_cut(inputs.ids, *pair) for pair in bounds), Field(*sentence)]


def entity_fields(inputs: SpanInputs) -> list[Field]:
    """The names, the description and the types."""
    start, low, high, end = _bounds(inputs)
    types = start + inputs.marker
    return [
        _cut(inputs.ids, *pair) for pair in ((low, high), (high, types), (types, end))
    ]


def _bounds(inputs: SpanInputs) -> tuple[np.ndarray, ...]:
    """Where the passage of each span begins, where the span does, and where both end."""
    start = inputs.offsets[inputs.passage]
    end = inputs.offsets[inputs.passage + 1]
    return start, start + inputs.first, start + inputs.last + 1, end


def _cut(ids: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Field:
    lengths = np.maximum(ends - starts, 0)
    return Field(ids[ragged_ranges(starts, lengths)], offsets_of(lengths))


def averages(field: Field, rows: int) -> tuple[csr_matrix, csr_matrix]:
    """Matrices that average a field's unigram and bigram vectors.

    Each is (n, rows). A product with the table of vectors gives the averages, zeros for none.
    No bigram goes across a break.
    """
    n = len(field.offsets) - 1
    owner = np.repeat(np.arange(n), np.diff(field.offsets))
    ids = field.ids.astype(np.uint64)
    is_token = ids != BREAK
    pair = (owner[:-1] == owner[1:]) & is_token[:-1] & is_token[1:]
    bigrams = mix(ids[:-1][pair] + np.uint64(BIGRAM)) + ids[1:][pair]
    return (
        _average(owner[is_token], ids[is_token], n, rows),
        _average(owner[:-1][pair], bigrams, n, rows),
    )


def _average(owner: np.ndarray, ids: np.ndarray, n: int, n_rows: int) -> csr_matrix:
    """A matrix that averages the rows of n-grams for each owner; owners ascend."""
    rows = (mix(ids) % np.uint64(n_rows)).astype(np.int64)
    counts = np.bincount(owner, minlength=n)
    weights = (1.0 / np.maximum(counts, 1)).astype(np.float32)[owner]
    return csr_matrix((weights, rows, offsets_of(counts)), shape=(n, n_rows))
