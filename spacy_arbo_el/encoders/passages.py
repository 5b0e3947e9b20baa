"""Text -> inputs of a transformer that reads documents in passages with many mentions each.

A document is cut into passages (VERBALIZED, §3.2)::

    [CLS] ... mention ... mention ... [SEP]

There are no markers, so a passage runs through the transformer once for all its mentions. A
document that fits is one passage. Of a longer one, only the parts with mentions are read. Its
passages overlap, so that a mention has text on both sides.
"""

from dataclasses import dataclass
from typing import Iterator, List, Sequence, Tuple

import numpy as np
from thinc.api import Model

from ..settings import check_count
from .inputs import SpanInputs, assemble, check_offsets
from .protocol import Text
from .windows import check_size, entity_passages, piece_ranges, tokenizer_of
from .word_pieces import WordPieceTokenizer

# Of a passage, on either side: text that is read for the mentions between, but whose own mentions
# are read in the next passage.
CONTEXT_SHARE = 1 / 8


@dataclass(frozen=True)
class PassageReader:
    """Reads documents in passages, and the texts of entities each for itself.

    It is the ``TowerReader`` of ``DocumentEncoder.v1``.

    size: The most word pieces of a passage, special tokens included.
    text_size: The most word pieces of a text of an entity, special tokens included.
    max_mentions: The most mentions of a passage.
    """

    size: int
    text_size: int
    max_mentions: int

    def __post_init__(self) -> None:
        check_size("passage", self.size)
        check_size("text", self.text_size)
        check_count("max_mentions", self.max_mentions, least=1)

    def read_mentions(
        self, model: Model, texts: Sequence[str], text_of: np.ndarray, offsets: np.ndarray
    ) -> SpanInputs:
        """Passages of documents, see ``document_passages``; ``model`` is the tower."""
        tokenizer = tokenizer_of(model, self.size)
        return document_passages(tokenizer, self.size, self.max_mentions, texts, text_of, offsets)

    def read_texts(self, model: Model, texts: Sequence[Text]) -> SpanInputs:
        """One passage for each text, see ``entity_passages``; ``model`` is the tower."""
        return entity_passages(tokenizer_of(model, self.text_size), self.text_size, texts)


def document_passages(
    tokenizer: WordPieceTokenizer,
    size: int,
    max_mentions: int,
    texts: Sequence[str],
    text_of: np.ndarray,
    offsets: np.ndarray,
) -> SpanInputs:
    """Passages of documents, with their mentions.

    Each mention is in one passage as a whole. One that is longer than a passage keeps its two ends,
    in a passage of its own. Mentions may overlap.

    tokenizer: Cuts texts into word pieces.
    size: The most word pieces of a passage, special tokens included.
    max_mentions: The most mentions of a passage.
    texts: The documents.
    text_of: (n,) int64, which text each mention is in.
    offsets: (n, 2) int64 start and end character there, end exclusive.
    RETURNS: n spans. Their marker is their first word piece.

    Raises ValueError for a mention that lies outside of its text.
    """
    if not len(text_of):
        return SpanInputs.empty()
    check_offsets(texts, text_of, offsets)
    located = tokenizer.read_with_offsets(texts, text_of, offsets)
    ids, bounds = located.pieces
    low, high = piece_ranges(located, text_of, offsets)

    budget = size - 2
    passage = np.empty(len(low), dtype=np.int64)
    starts: List[int] = []
    ends: List[int] = []
    order = np.lexsort((high, low, text_of))
    cuts = np.flatnonzero(np.diff(text_of[order])) + 1
    for mentions in np.split(order, cuts):
        text = text_of[mentions[0]]
        borders = int(bounds[text]), int(bounds[text + 1])
        for group, start, end in _passages(low, high, mentions, borders, budget, max_mentions):
            passage[group] = len(starts)
            starts.append(start)
            ends.append(end)

    # A mention that is too long is alone in its passage, which is the mention itself.
    start, end = np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)
    tail = np.where(end - start > budget, budget // 2, 0)
    head = np.minimum(end - start, budget) - tail
    cls, sep = len(ids), len(ids) + 1
    one = np.ones(len(start), dtype=np.int64)
    assembled = assemble(
        np.concatenate([ids, tokenizer.specials[:2]]),
        [cls * one, start, end - tail, sep * one],
        [one, head, tail, one],
    )
    first = low - start[passage] + 1
    kept = np.minimum(high - low, budget)
    parts = [low, low + kept - tail[passage], high - tail[passage], high]
    # An empty mention at the end of a passage has no word piece of its own: its place is [SEP].
    last = np.where(tokenizer.are_readable(ids, parts), first + kept - 1, first - 1)
    places = (array.astype(np.int32) for array in (first, last, first))
    return SpanInputs(*assembled, passage, *places)


def _passages(
    low: np.ndarray,
    high: np.ndarray,
    mentions: np.ndarray,
    borders: Tuple[int, int],
    budget: int,
    max_mentions: int,
) -> Iterator[Tuple[np.ndarray, int, int]]:
    """The passages of a document: their mentions, and their first and last word piece.

    low, high: The word pieces of all mentions, end exclusive.
    mentions: Those of the document, by their first word piece.
    borders: The word pieces of the document, end exclusive.
    budget: The most word pieces of a passage, without special tokens.
    max_mentions: The most mentions of a passage.
    """
    too_long = high[mentions] - low[mentions] > budget
    for mention in mentions[too_long]:
        yield mentions[mentions == mention], int(low[mention]), int(high[mention])
    mentions = mentions[~too_long]
    reach = np.maximum.accumulate(high[mentions]) if len(mentions) else high[:0]
    context = int(budget * CONTEXT_SHARE)
    begin, at = borders[0], 0
    while at < len(mentions):
        start = max(int(low[mentions[at]]) - context, begin)
        fits = start + budget >= borders[1]
        limit = borders[1] if fits else start + budget - context
        until = int(np.searchsorted(reach[at:], limit, side="right")) + at
        until = min(max(until, at + 1), at + max_mentions, len(mentions))
        group = mentions[at:until]
        yield (group, *_extent(int(low[group[0]]), int(reach[until - 1]), borders, budget))
        at = until


def _extent(first: int, last: int, borders: Tuple[int, int], budget: int) -> Tuple[int, int]:
    """The word pieces of a passage round some mentions: as many before them as after them.

    What one side does not need goes to the other.

    first, last: The word pieces of the mentions, end exclusive.
    """
    before, after = first - borders[0], borders[1] - last
    spare = budget - (last - first)
    right = min(after, max(spare // 2, spare - before))
    left = min(before, spare - right)
    return first - left, last + right
