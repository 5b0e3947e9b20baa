"""Pairs of a mention and an entity, the input of a cross-encoder.

::

    [CLS] left [START] mention [END] right [SEP] title [TITLE] other names; types description [SEP]

(Arborescence paper, §3.3.) The first part has token type 0, the second part 1. Where several
candidates of a mention are read together, their parts follow each other, all with token type 1. The
title is the name that is most similar to the mention. A mention's part is cut from what the
linker's encoder of mentions reads, so that no document is tokenized again.
"""

from dataclasses import dataclass
from typing import List, Tuple

import numpy as np

from ..arrays import offsets_of
from ..encoders.inputs import SpanInputs, assemble
from ..encoders.windows import share_context
from .entity_pieces import EntityPieces

# A segment of passages: where it starts, and how long it is.
Segment = Tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class PairFormat:
    """The sizes of the parts of a passage, and its special tokens.

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
        set_of: np.ndarray,
    ) -> SpanInputs:
        """The pairs of mentions and entities.

        mentions: What an encoder of mentions reads; all spans are readable.
        pieces: The word pieces of the entities.
        mention_of: (p,) int64, the mention of each pair.
        entity_of: (p,) int64, the row of its entity in ``pieces``.
        name_of: (p,) int64, the name that is its title; any where the entity has none.
        set_of: (p,) int64, the passage of each pair: 0, 1 and so on, in this order. Pairs of one
            passage have the same mention.
        RETURNS: Passages with one span for each pair: the entity's title and its marker.
        """
        n_mention = len(mentions.ids)
        flat = np.concatenate([mentions.ids, pieces.ids.rows, self.specials])
        first_special = n_mention + pieces.ids.length
        cls, sep, start, end, title = _special_segments(first_special, len(mention_of))
        left, head, tail, right = _mention_segments(mentions, mention_of, self.window - 4)
        begins = np.diff(set_of, prepend=-1) > 0
        # The mention's part stands once in a passage, before the first candidate.
        first_part = [
            (starts, np.where(begins, lengths, 0))
            for starts, lengths in (cls, left, start, head, tail, end, right, sep)
        ]
        name, before, after, types, description = (
            (starts + n_mention, lengths)
            for starts, lengths in self._entity_segments(pieces, entity_of, name_of)
        )
        segments = [*first_part, name, title, before, after, types, description, sep]
        ids, ends = assemble(flat, *zip(*segments))
        offsets = ends[np.append(np.flatnonzero(begins), len(begins))]
        first = ends[:-1] - offsets[set_of] + sum(lengths for _, lengths in first_part)
        last = first + name[1]
        places = (array.astype(np.int32) for array in (first, last, last))
        return SpanInputs(ids, offsets, set_of, *places)

    def _entity_segments(
        self, pieces: EntityPieces, rows: np.ndarray, names: np.ndarray
    ) -> Tuple[Segment, Segment, Segment, Segment, Segment]:
        """The title, the names before and after it, the types and the description.

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
        # In the order of what is cut last.
        for place in (0, 3, 1, 2, 4):
            begin, length = segments[place]
            length = np.minimum(length, budget)
            budget = budget - length
            kept[place] = (begin, length)
        return kept[0], kept[1], kept[2], kept[3], kept[4]


def evenly_in_sets(
    mention_of: np.ndarray, keys: np.ndarray, size: int
) -> Tuple[np.ndarray, np.ndarray]:
    """Candidates in sets of at most ``size``, those of a mention in sets of about the same size.

    mention_of: (p,) int64, the mention of each candidate, in order.
    keys: (p,) int64, by which the candidates of a mention are ordered and distributed.
    RETURNS: (p,) int64, the candidates set by set, and (p,) int64, the set of each of these: 0, 1
        and so on.
    """
    _, first, number, counts = np.unique(
        mention_of, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((keys, mention_of))
    n_sets = -(-counts // size)
    place = np.arange(len(mention_of)) - first[number]
    sets = offsets_of(n_sets)[:-1][number] + place % n_sets[number]
    by_set = np.argsort(sets, kind="stable")
    return order[by_set], sets[by_set]


def _special_segments(first: int, count: int) -> List[Segment]:
    """A segment of each special token. first: Where they start. count: The number of pairs."""
    one = np.ones(count, dtype=np.int64)
    return [(np.full(count, first + i), one) for i in range(5)]


def _mention_segments(
    mentions: SpanInputs, rows: np.ndarray, budget: int
) -> Tuple[Segment, Segment, Segment, Segment]:
    """The text left of mentions, the mentions in two pieces, and the text right of them.

    A mention that is longer than the window keeps its two ends.

    budget: The most word pieces of all four.
    """
    passage = mentions.passage[rows]
    begin, end = mentions.offsets[passage], mentions.offsets[passage + 1]
    low = begin + mentions.first[rows]
    high = begin + mentions.last[rows] + 1
    # Windows have markers round the mention, passages of documents have none.
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
