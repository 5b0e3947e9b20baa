"""Word pieces of entities, each tokenized once. The pieces are of names, descriptions and types."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..base.arrays import AppendOnly, offsets_of
from ..encoders.windows import CHARACTERS_PER_PIECE
from ..encoders.word_pieces import WordPieceTokenizer
from ..kb.entity import Entity
from ..mentions.normalization.text import Normalizer
from ..retrieval.datastore import Datastore
from ..storage.locks import ForkableLock
from .entity_strings import StringIndex, normalized_names

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
