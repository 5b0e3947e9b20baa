"""Pairs of mention and entity, read by cross-encoders, and the word pieces of entities.

::

    [CLS] left [START] mention [END] right [SEP] title [TITLE] other names; types description [SEP]

(Arborescence paper, §3.3.) The first part has token type 0, the second part 1. The title is the
name that is most similar to the mention. A mention's part is cut from what the linker's encoder of
mentions reads, so that no document is tokenized again. Each entity is tokenized once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..base.arrays import AppendOnly, offsets_of
from ..encoders.inputs import SpanInputs, assemble
from ..encoders.windows import CHARACTERS_PER_PIECE, share_context
from ..encoders.word_pieces import WordPieceTokenizer
from ..kb.entity import Entity
from ..mentions.normalization.text import Normalizer, normalized_names
from ..retrieval.datastore import Datastore
from ..storage.locks import ForkableLock
from .entity_strings import StringIndex

# A segment of passages: where it starts, and how long it is.
Segment = tuple[np.ndarray, np.ndarray]
# What stands behind each name in a list of names.
SEPARATOR = ";"


def _numbers(columns: int) -> AppendOnly:
    shape = (0, columns) if columns else (0,)
    return AppendOnly.of(np.zeros(shape, dtype=np.int64))


@dataclass(frozen=True)
class EntityPieces:
    """The word pieces of ``e`` entities.

    row_of: (positions,) int64, the row of each entity of the knowledge base; -1 for none yet.
    ids: (total,) int64, the word pieces.
    names: (n, 2) int64, the first word piece of each name and the one after its last. A separator
        follows each name.
    first_name: (e, 2) int64, the first name of each entity and the one after its last.
    description, types: (e, 2) int64, the first word piece of the text and the one after its last.
    compared: (r,) int64, the name that each string of a ``StringIndex`` is, counted from the
        entity's first name.
    first_compared: (e,) int64, the first of these of each entity.
    """

    row_of: np.ndarray
    ids: AppendOnly = field(default_factory=lambda: _numbers(0))
    names: AppendOnly = field(default_factory=lambda: _numbers(2))
    first_name: AppendOnly = field(default_factory=lambda: _numbers(2))
    description: AppendOnly = field(default_factory=lambda: _numbers(2))
    types: AppendOnly = field(default_factory=lambda: _numbers(2))
    compared: AppendOnly = field(default_factory=lambda: _numbers(0))
    first_compared: AppendOnly = field(default_factory=lambda: _numbers(0))

    @classmethod
    def none(cls, positions: int) -> "EntityPieces":
        """No entity yet. positions: How many positions the knowledge base has."""
        return cls(np.full(positions, -1, dtype=np.int64))

    def with_entities(
        self,
        tokenizer: WordPieceTokenizer,
        entities: dict[int, Entity],
        index: StringIndex,
        normalizer: Normalizer | None,
        limit: int,
    ) -> "EntityPieces":
        """The same with further entities.

        entities: By position.
        index: The strings that mentions are compared with, to find the nearest name.
        normalizer: What the strings were normalized by; None for nothing.
        limit: The word pieces of a text that are used at most.
        """
        characters = limit * CHARACTERS_PER_PIECE
        groups = [entity.names for entity in entities.values()]
        texts = [name[:characters] for names in groups for name in names]
        texts += [entity.description[:characters] for entity in entities.values()]
        texts += [", ".join(entity.types)[:characters] for entity in entities.values()]
        texts.append(SEPARATOR)
        pieces = tokenizer.read(texts)
        n_names, n_entities = sum(map(len, groups)), len(groups)
        spans = np.stack([pieces.bounds[:-1], pieces.bounds[1:]], axis=1)
        separator = pieces.ids[slice(*spans[-1])]
        # A separator behind each name moves the later ones.
        shift = np.minimum(np.arange(len(spans)), n_names)[:, None] * len(separator)
        places = np.repeat(pieces.bounds[1 : n_names + 1], len(separator))
        ids = np.insert(pieces.ids, places, np.tile(separator, n_names))
        spans = spans + shift + self.ids.length
        counts = offsets_of(np.array([len(names) for names in groups], dtype=np.int64))
        compared = [
            _names_compared(index.names_of(position), entity, normalizer)
            for position, entity in entities.items()
        ]
        n_compared = offsets_of(np.array([len(numbers) for numbers in compared], dtype=np.int64))
        row_of = self.row_of.copy()
        row_of[list(entities)] = self.first_name.length + np.arange(n_entities)
        first_name = np.stack([counts[:-1], counts[1:]], axis=1) + self.names.length
        flat = np.array([number for numbers in compared for number in numbers], dtype=np.int64)
        return replace(
            self,
            row_of=row_of,
            ids=self.ids.with_rows(ids),
            names=self.names.with_rows(spans[:n_names]),
            first_name=self.first_name.with_rows(first_name),
            description=self.description.with_rows(spans[n_names : n_names + n_entities]),
            types=self.types.with_rows(spans[n_names + n_entities : -1]),
            compared=self.compared.with_rows(flat),
            first_compared=self.first_compared.with_rows(n_compared[:-1] + self.compared.length),
        )

    def nearest_names(self, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Names behind the strings of a ``StringIndex``: (p,) int64.

        rows: (p,) int64, the rows of entities that have names.
        numbers: (p,) int64, the numbers of the strings, see ``StringIndex.nearest_names``.
        """
        first = self.first_name.rows[rows, 0]
        return first + self.compared.rows[self.first_compared.rows[rows] + numbers]


def _names_compared(
    strings: Sequence[str], entity: Entity, normalizer: Normalizer | None
) -> list[int]:
    """Number of the name behind each string.

    The first name for a string that is made of none: where an entity has no names, the surface
    forms of its exemplars are compared. There is one number at least.
    """
    number_of: dict[str, int] = {}
    for names in (entity.names, normalized_names(normalizer, entity.names)):
        for number, name in enumerate(names):
            number_of.setdefault(name.lower(), number)
    return [number_of.get(string, 0) for string in strings] or [0]


class PiecesCache:
    """Cached word pieces of a datastore's entities.

    It belongs to one state of the datastore: to an edit belongs a new one.
    """

    def __init__(self, positions: int):
        self._pieces = EntityPieces.none(positions)
        self._adding = ForkableLock()

    def of(
        self,
        positions: np.ndarray,
        datastore: Datastore,
        tokenizer: WordPieceTokenizer,
        index: StringIndex,
        limit: int,
    ) -> EntityPieces:
        """The word pieces of at least these entities.

        The parameters are those of ``EntityPieces``.

        positions: (e,) int64, their positions in the knowledge base.
        """
        if (self._pieces.row_of[positions] >= 0).all():
            return self._pieces
        with self._adding:
            pieces = self._pieces
            missing = np.unique(positions[pieces.row_of[positions] < 0])
            entities = datastore.kb.entities.at_all(missing.tolist())
            normalizer = datastore.normalizer
            if entities:
                pieces = pieces.with_entities(tokenizer, entities, index, normalizer, limit)
            self._pieces = pieces
        return pieces


def cached_pieces(datastore: Datastore, key: tuple[object, ...]) -> PiecesCache:
    """The cache of a datastore in its present state.

    key: What word pieces depend on beside the datastore.
    """
    positions = datastore.kb.entities.positions
    return datastore.derived(("entity pieces", *key), lambda: PiecesCache(positions))


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
