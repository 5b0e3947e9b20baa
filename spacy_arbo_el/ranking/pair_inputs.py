"""Pairs of mention and entity, read by cross-encoders.

::

    [CLS] left [START] mention [END] right [SEP] title [TITLE] other names; types description [SEP]

(Arborescence paper, §3.3.) The first part has token type 0, the second part 1. The title is the
name that is most similar to the mention. A mention's part is cut from what the linker's encoder of
mentions reads, so that no document is tokenized again.
"""

from dataclasses import dataclass

import numpy as np

from ..encoders.inputs import SpanInputs, assemble
from ..encoders.windows import share_context
from .entity_pieces import EntityPieces

# A segment of passages: where it starts, and how long it is.
Segment = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class PairFormat:
    """Sizes of a passage's parts, and its special tokens.

    window: The most word pieces of the mention's part, [CLS] and [SEP] included.
    text: The most word pieces of the entity's part, [SEP] included.
    specials: (5,) int64, the ids of [CLS], [SEP], [START], [END] and [TITLE].
    """

    window: int
    text: int
    specials: np.ndarray

    def pairs(
        self,
        mentions: SpanInputs,
        pieces: EntityPieces,
        mention_of: np.ndarray,
        entity_of: np.ndarray,
        name_of: np.ndarray,
    ) -> SpanInputs:
        """The pairs of mentions and entities.

        mentions: What an encoder of mentions reads; all spans are readable.
        pieces: The word pieces of the entities.
        mention_of: (p,) int64, the mention of each pair.
        entity_of: (p,) int64, the row of its entity in ``pieces``.
        name_of: (p,) int64, the name that is its title; any where the entity has none.
        RETURNS: p passages with one span each: the entity's title and its marker.
        """
        n_mention = len(mentions.ids)
        flat = np.concatenate([mentions.ids, pieces.ids.rows, self.specials])
        first_special = n_mention + pieces.ids.length
        cls, sep, start, end, title = _special_segments(first_special, len(mention_of))
        left, head, tail, right = _mention_segments(mentions, mention_of, self.window - 4)
        first_part = [cls, left, start, head, tail, end, right, sep]
        name, before, after, types, description = (
            (starts + n_mention, lengths)
            for starts, lengths in self._entity_segments(pieces, entity_of, name_of)
        )
        segments = [*first_part, name, title, before, after, types, description, sep]
        ids, offsets = assemble(flat, *zip(*segments))
        first = np.sum([lengths for _, lengths in first_part], axis=0)
        last = first + name[1]
        return SpanInputs.one_span_each(ids, offsets, first, last, last)

    def _entity_segments(
        self, pieces: EntityPieces, rows: np.ndarray, names: np.ndarray
    ) -> tuple[Segment, Segment, Segment, Segment, Segment]:
        """Segments of entities: names, title, types and description. Names stand before and after
        the title.

        The description is cut first, then the other names.
        """
        zero = np.zeros(len(rows), dtype=np.int64)
        first, end = pieces.first_name.rows[rows].T
        has_name = end > first
        spans = pieces.names.rows if pieces.names.length else np.zeros((1, 2), dtype=np.int64)
        names = np.where(has_name, names, 0)
        last = np.where(has_name, end - 1, 0)
        first = np.where(has_name, first, 0)
        start, stop = spans[names].T
        # Up to the name after this one: without it, and without its separator.
        follower = np.where(names < last, spans[np.minimum(names + 1, last), 0], spans[last, 1])
        budget = np.full(len(rows), self.text - 2, dtype=np.int64)
        segments = [
            (start, stop - start),
            (spans[first, 0], start - spans[first, 0]),
            (follower, spans[last, 1] - follower),
        ]
        segments = [(begin, np.where(has_name, length, zero)) for begin, length in segments]
        lines = (table.rows[rows] for table in (pieces.types, pieces.description))
        segments += [(line[:, 0], line[:, 1] - line[:, 0]) for line in lines]
        kept = {}
        # In reverse order of cutting.
        for place in (0, 3, 1, 2, 4):
            begin, length = segments[place]
            length = np.minimum(length, budget)
            budget = budget - length
            kept[place] = (begin, length)
        return kept[0], kept[1], kept[2], kept[3], kept[4]


def _special_segments(first: int, count: int) -> list[Segment]:
    """A segment of each special token. first: Where they start. count: The number of pairs."""
    one = np.ones(count, dtype=np.int64)
    return [(np.full(count, first + i), one) for i in range(5)]


def _mention_segments(
    mentions: SpanInputs, rows: np.ndarray, budget: int
) -> tuple[Segment, Segment, Segment, Segment]:
    """Segments of mentions: left, the mention twice, right. The mention is in two pieces.

    A mention that is longer than the window keeps its two ends.

    budget: The most word pieces of all four.
    """
    passage = mentions.passage[rows]
    begin, end = mentions.offsets[passage], mentions.offsets[passage + 1]
    low = begin + mentions.first[rows]
    high = begin + mentions.last[rows] + 1
    # Windows have markers around the mention, passages of documents have none.
    marked = (mentions.marker[rows] != mentions.first[rows]).astype(np.int64)
    left_end, right_start = low - marked, high + marked
    kept = np.minimum(high - low, budget)
    tail = np.where(high - low > budget, kept // 2, 0)
    # Without [CLS] and [SEP] of the passage.
    available = left_end - begin - 1, end - 1 - right_start
    left, right = share_context(*available, budget - kept)
    return (
        (left_end - left, left),
        (low, kept - tail),
        (high - tail, tail),
        (right_start, right),
    )
