"""Pairs of mention and entity, read by cross-encoders, and the word pieces of entities.

::

    [CLS] left [START] mention [END] right [SEP] title [TITLE] other names; types description [SEP]

(Arborescence paper, §3.3.) The first part has token type 0, the second part 1. The title is the
name that is most similar to the mention. A mention's part is cut from what the linker's encoder of
mentions reads, so that no document is tokenized again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....encoders.inputs import SpanInputs, assemble
from ....encoders.windows import CHARACTERS_PER_PIECE, share_context
from ....encoders.word_pieces import WordPieceTokenizer
from ....kb.entity import Entity
from ....mentions.normalization.text import Normalizer, normalized_names

# A segment of passages: where it starts, and how long it is.
Segment = tuple[np.ndarray | int, np.ndarray | int]
# The texts of an entity, the most important first: it is cut last.
Texts = tuple[str, str, str, str, str]
TITLE, TYPES, BEFORE, AFTER, DESCRIPTION = range(5)
# How they follow each other behind the title.
READ = (BEFORE, AFTER, TYPES, DESCRIPTION)
# A key is the position of an entity times this, and the number of a name.
NAMES = 1 << 32


@dataclass(frozen=True)
class EntityParts:
    """Second parts of pairs in word pieces: ``n`` of them.

    ids: (total,) int64, the word pieces.
    spans: (n, 3) int64, the first word piece of the title, the first of the rest, and the one after
        its last.
    """

    ids: np.ndarray
    spans: np.ndarray

    @classmethod
    def read(
        cls, tokenizer: WordPieceTokenizer, texts: Sequence[Texts], size: int
    ) -> "EntityParts":
        """The parts of entities' texts.

        size: The most word pieces of a part, [TITLE] and [SEP] included. The description is cut
            first.
        """
        characters = size * CHARACTERS_PER_PIECE
        budget = size - 2
        pieces = tokenizer.read(
            [text[:characters] for group in texts for text in group]
        )
        starts, lengths = (
            array.reshape(len(texts), -1)
            for array in (pieces.bounds[:-1], np.diff(pieces.bounds))
        )
        lengths = np.diff(
            np.minimum(lengths.cumsum(axis=1), budget), prepend=0, axis=1
        )
        order = [TITLE, *READ]
        segments = zip(starts[:, order].T, lengths[:, order].T)
        ids, ends = assemble(pieces.ids, *segments)
        spans = np.stack([ends[:-1], ends[:-1] + lengths[:, TITLE], ends[1:]], axis=1)
        return cls(ids.astype(np.int64), spans)


def entity_texts(
    entity: Entity, number: int, strings: Sequence[str], normalizer: Normalizer | None
) -> Texts:
    """The texts of an entity, with one of its names as the title.

    number: The number of a string that the name is made of; the title is the first name where it is
        made of none. Where an entity has no names, its exemplars' surface forms are compared.
    strings: The strings that mentions are compared with, in lower case.
    normalizer: What the strings were normalized by; None for nothing.
    """
    title = 0
    names = list(entity.names)
    for group in (normalized_names(normalizer, names), names):
        lower = [name.lower() for name in group]
        if number < len(strings) and strings[number] in lower:
            title = lower.index(strings[number])
    first = names[title] if names else ""
    before = "".join(f"{name}; " for name in names[:title])
    types = ", ".join(entity.types)
    return first, types, before, "; ".join(names[title + 1 :]), entity.description


def make_pairs(
    mentions: SpanInputs,
    entity_parts: EntityParts,
    mention_of: np.ndarray,
    part_of: np.ndarray,
    specials: np.ndarray,
    window: int,
) -> SpanInputs:
    """The pairs of mentions and entities.

    mentions: What an encoder of mentions reads; all spans are readable.
    mention_of: (p,) int64, the mention of each pair.
    part_of: (p,) int64, the part of its entity.
    specials: (5,) int64, the ids of [CLS], [SEP], [START], [END] and [TITLE].
    window: The most word pieces of the mention's part, [CLS] and [SEP] included.
    RETURNS: p passages with one span each: the entity's title and its marker.
    """
    n_mention = len(mentions.ids)
    flat = np.concatenate([mentions.ids, entity_parts.ids, specials])
    # A segment of each special token, at the end of what is cut.
    cls, sep, start, end, title = (
        (place, 1) for place in range(len(flat) - len(specials), len(flat))
    )
    before, head, tail, behind = _mention_segments(mentions, mention_of, window - 4)
    first_part: list[Segment] = [cls, before, start, head, tail, end, behind, sep]
    name, description, after = entity_parts.spans[part_of].T
    second_part = [
        (name + n_mention, description - name),
        title,
        (description + n_mention, after - description),
        sep,
    ]
    ids, offsets = assemble(flat, *first_part, *second_part)
    first = np.asarray(sum(length for _, length in first_part))
    last = first + description - name
    return SpanInputs.one_span_each(ids, offsets, first, last, last)


def _mention_segments(
    mentions: SpanInputs, rows: np.ndarray, budget: int
) -> tuple[Segment, Segment, Segment, Segment]:
    """Segments of mentions: left, the mention twice, right. The mention is in two pieces.

    A mention that is longer than the window keeps its two ends.

    budget: The most word pieces of all four.
    """
    passage = mentions.passage[rows]
    begin = mentions.offsets[passage]
    end = mentions.offsets[passage + 1]
    low = begin + mentions.first[rows]
    high = begin + mentions.last[rows] + 1
    # Windows have markers around the mention, passages of documents have none.
    marked = (mentions.marker[rows] != mentions.first[rows]).astype(np.int64)
    left_end = low - marked
    right_start = high + marked
    mention_length = np.minimum(high - low, budget)
    tail = np.where(high - low > budget, mention_length // 2, 0)
    # Without [CLS] and [SEP] of the passage.
    available = left_end - begin - 1, end - 1 - right_start
    before, behind = share_context(*available, budget - mention_length)
    return (
        (left_end - before, before),
        (low, mention_length - tail),
        (high - tail, tail),
        (right_start, behind),
    )
