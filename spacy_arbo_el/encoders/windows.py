"""Inputs of a transformer: windows around mentions, and texts of entities.

The formats are those of the arborescence paper, §2.2::

    [CLS] left [START] mention [END] right [SEP]
    [CLS] title [TITLE] description [SEP]

Lengths are counted in word pieces. All windows are cut at once, and a text is tokenized
once, however many mentions it has. Mentions and texts of which the vocabulary knows nothing get
an empty span, see ``SpanInputs.readable``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from thinc.api import Model

from ..base.arrays import int_array
from ..base.errors import Errors
from ..base.settings import check_count
from .inputs import SpanInputs, assemble
from .protocol import Text
from .shim import loaded_shim
from .stretches import UNCUT, stretches_of
from .word_pieces import SEP_PLACE, WordPieces, WordPieceTokenizer

SHORTEST_WINDOW = 8
# Characters of an entity's text that are tokenized, for each word piece that is kept. Words are
# shorter: longer ones are unknown to the tokenizers of BERT's family.
CHARACTERS_PER_PIECE = 100
# Characters of a long text that are tokenized around mentions at first, for each word piece needed.
CHARACTERS_AROUND = 8


@dataclass(frozen=True)
class WindowReader:
    """Reads a window around each mention, and entity texts.

    It is the ``TowerReader`` of towers with an ``EncoderShim``, such as ``TransformerEncoder.v1``.

    size: The most word pieces of a window, special tokens included.
    text_size: The most word pieces of a text of an entity, where the transformer reads so many; 0
        for as many as of a window.
    """

    # What errors call what it reads of a mention.
    unit: ClassVar[str] = "window"
    size: int
    text_size: int = 0

    def __post_init__(self) -> None:
        check_size(self.unit, self.size)
        if self.text_size:
            check_size("text", self.text_size)

    @property
    def text_identity(self) -> str:
        """All that the vector of an entity's text depends on; not the window of mentions."""
        return f"texts of {self.text_size or self.size} word pieces"

    def read_mentions(
        self,
        model: Model,
        texts: Sequence[str],
        text_of: np.ndarray,
        offsets: np.ndarray,
    ) -> SpanInputs:
        """Read one window for each mention. See ``mention_windows``. ``model`` is the tower."""
        return mention_windows(
            tokenizer_of(model, self.size), self.size, texts, text_of, offsets
        )

    def read_passages(
        self, model: Model, texts: Sequence[str], size: int
    ) -> SpanInputs:
        """Read whole texts. See ``whole_passages``. ``model`` is the tower."""
        return whole_passages(model, texts, size)

    def read_texts(self, model: Model, texts: Sequence[Text]) -> SpanInputs:
        """Read one passage for each text. See ``entity_passages``. ``model`` is the tower."""
        size = within_limit(model, self.text_size or self.size)
        return entity_passages(tokenizer_of(model, size), size, texts)


def check_size(setting: str, size: int) -> None:
    """Raise ValueError for a window, passage or text too short."""
    check_count(setting, size)
    if size < SHORTEST_WINDOW:
        raise Errors.E204(what=setting, size=size, shortest=SHORTEST_WINDOW)


def within_limit(model: Model, size: int) -> int:
    """Limit a number of word pieces to what the transformer of a tower reads."""
    limit = loaded_shim(model).position_limit
    if limit:
        return min(size, limit)
    return size


def tokenizer_of(model: Model, size: int) -> WordPieceTokenizer:
    """The tokenizer of a tower. ValueError where it can't read so many word pieces."""
    shim = loaded_shim(model)
    if 0 < shim.position_limit < size:
        name = model.attrs["name"]
        raise Errors.E206(size=size, limit=shim.position_limit, name=name)
    return shim.word_pieces


def mention_windows(
    tokenizer: WordPieceTokenizer,
    size: int,
    texts: Sequence[str],
    text_of: np.ndarray,
    offsets: np.ndarray,
) -> SpanInputs:
    """A window of text around each mention.

    The mention is always inside. Both sides get the same amount of context; what one side does not
    need goes to the other. A mention longer than the window keeps its two ends.

    size: The most word pieces of a window, special tokens included.
    texts, text_of, offsets: As in ``TowerReader.read_mentions``.
    RETURNS: n passages with one span each.
    """
    if not len(text_of):
        return SpanInputs.empty()
    located = locate_mentions(tokenizer, texts, text_of, offsets, size - 4)
    (ids, _), low, high = located.pieces, located.low, located.high
    available = located.around()

    mention_length = np.minimum(high - low, size - 4)
    before, behind = share_context(*available, size - 4 - mention_length)
    tail = np.where(high - low > mention_length, mention_length // 2, 0)
    head = mention_length - tail
    cls, sep, start, end, _ = range(len(ids), len(ids) + len(tokenizer.specials))
    passages = assemble(
        np.concatenate([ids, tokenizer.specials]),
        (cls, 1),
        (low - before, before),
        (start, 1),
        (low, head),
        (high - tail, tail),
        (end, 1),
        (high, behind),
        (sep, 1),
    )
    marker = before + 1
    readable = tokenizer.are_readable(ids, [low, low + head, high - tail, high])
    last = np.where(readable, marker + mention_length, marker)
    return SpanInputs.one_span_each(*passages, marker + 1, last, marker)


def share_context(
    before: np.ndarray, behind: np.ndarray, spare: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Divide the word pieces of a context, (n,) on each side; ``spare`` (n,) of both are kept."""
    kept_right = np.minimum(behind, np.maximum(spare // 2, spare - before))
    return np.minimum(before, spare - kept_right), kept_right


class LocatedMentions(NamedTuple):
    """Mentions in the word pieces of texts, or of stretches.

    text_of: (n,) int64, which of these texts each mention is in.
    low, high: (n,) int64, the first word piece of each mention, and the one after its last.
    """

    pieces: WordPieces
    text_of: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def around(self) -> tuple[np.ndarray, np.ndarray]:
        """Count the word pieces on either side of each mention."""
        bounds = self.pieces.bounds
        return self.low - bounds[self.text_of], bounds[self.text_of + 1] - self.high


def locate_mentions(
    tokenizer: WordPieceTokenizer,
    texts: Sequence[str],
    text_of: np.ndarray,
    offsets: np.ndarray,
    around: int | None = None,
) -> LocatedMentions:
    """Find the word pieces of mentions, and those around them.

    texts, text_of, offsets: As in ``mention_windows``.
    around: The word pieces that are needed on either side of a mention. So much of long texts is
        read, where that gives the same word pieces. None for whole texts.
    """
    if (
        around is None
        or not tokenizer.reads_words
        or all(len(text) <= UNCUT for text in texts)
    ):
        return _locate(tokenizer, texts, text_of, offsets)
    lengths = int_array([len(text) for text in texts])
    reach = np.full(len(text_of), around * CHARACTERS_AROUND + 1, dtype=np.int64)
    while True:
        cut = stretches_of(texts, text_of, offsets, reach)
        located = _locate(tokenizer, cut.texts, cut.text_of, cut.offsets)
        before, behind = located.around()
        starts, ends = cut.places[cut.text_of].T
        lacks = ((before < around) & (starts > 0)) | (
            (behind < around) & (ends < lengths[text_of])
        )
        if not lacks.any():
            return located
        reach[lacks] *= 8


def _locate(
    tokenizer: WordPieceTokenizer,
    texts: Sequence[str],
    text_of: np.ndarray,
    offsets: np.ndarray,
) -> LocatedMentions:
    located = tokenizer.read_with_offsets(texts, text_of, offsets)
    characters = located.text_starts[text_of][:, None] + offsets
    low = np.searchsorted(located.ends, characters[:, 0], side="right")
    high = np.searchsorted(located.starts, characters[:, 1], side="left")
    low = np.minimum(low, located.pieces.bounds[text_of + 1])
    return LocatedMentions(located.pieces, text_of, low, np.maximum(high, low))


def entity_passages(
    tokenizer: WordPieceTokenizer, size: int, texts: Sequence[Text]
) -> SpanInputs:
    """The texts of entities, a passage each. The span is the title, or its marker if unreadable.

    size: The most word pieces of a text, special tokens included; the description is cut first.
    texts: Title and description of each; either may be empty.
    """
    if not texts:
        return SpanInputs.empty()
    limit = size * CHARACTERS_PER_PIECE
    titles = tokenizer.read([title[:limit] for title, _ in texts])
    descriptions = tokenizer.read([description[:limit] for _, description in texts])
    ids = np.concatenate([titles.ids, descriptions.ids, tokenizer.specials])
    cls, sep, _, _, title_end = range(len(ids) - len(tokenizer.specials), len(ids))
    description_starts = len(titles.ids) + descriptions.bounds[:-1]

    budget = size - 3
    title_lengths = np.minimum(np.diff(titles.bounds), budget)
    description_lengths = np.minimum(
        np.diff(descriptions.bounds), budget - title_lengths
    )
    passages = assemble(
        ids,
        (cls, 1),
        (titles.bounds[:-1], title_lengths),
        (title_end, 1),
        (description_starts, description_lengths),
        (sep, 1),
    )
    marker = title_lengths + 1
    title, description = (
        tokenizer.are_readable(ids, [starts, starts + lengths])
        for starts, lengths in (
            (titles.bounds[:-1], title_lengths),
            (description_starts, description_lengths),
        )
    )
    first = np.where(title, 1, marker)
    last = np.where(title, title_lengths, np.where(description, marker, marker - 1))
    return SpanInputs.one_span_each(*passages, first, last, marker)


def whole_passages(model: Model, texts: Sequence[str], size: int) -> SpanInputs:
    """Passages without markers, whose span is the passage with its special tokens.

    A sentence encoder was trained to average these. The span of an unreadable text is empty.

    size: The most word pieces of a passage, where the tower reads so many; the end is cut.
    """
    if not texts:
        return SpanInputs.empty()
    size = within_limit(model, size)
    tokenizer = tokenizer_of(model, size)
    pieces = tokenizer.read([text[: size * CHARACTERS_PER_PIECE] for text in texts])
    starts = pieces.bounds[:-1]
    lengths = np.minimum(np.diff(pieces.bounds), size - 2)
    ids = np.concatenate([pieces.ids, tokenizer.specials])
    cls = len(pieces.ids)
    passages = assemble(ids, (cls, 1), (starts, lengths), (cls + SEP_PLACE, 1))
    readable = tokenizer.are_readable(ids, [starts, starts + lengths])
    zeros = np.zeros_like(lengths)
    last = np.where(readable, lengths + 1, -1)
    return SpanInputs.one_span_each(*passages, zeros, last, zeros)
