"""What a call sees: entities and exemplars in one state, with vectors and strings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.arrays import AppendOnly, int_array, minus_ones, unit
from ..base.errors import Warnings
from ..base.log import warn_once
from ..encoders.dual import DualEncoder
from ..kb.knowledge_base import ArboKB
from ..kb.texts import keys_of
from ..mentions.normalization.text import Normalizer
from ..mentions.record import MentionBatch
from ..storage.locks import ForkableLock, RevisionCache
from .entity_strings import EntityStrings
from .entity_texts import vector_cache
from .exemplars import ExemplarStore
from .neighbours import AllowedEntities
from .retriever import Retriever
from .settings import RetrieverSettings

# The entities of its exact name that a mention which the encoder can't read may have.
MOST_NAMED = 8
# The most word pieces of a description, special tokens included.
DESCRIPTION_PIECES = 64
# The kind of vectors, in their store.
KIND = "descriptions"


class Revision(NamedTuple):
    """A state of entities and exemplars, with the number of changes of each."""

    kb: ArboKB
    edits: int
    exemplars: ExemplarStore
    version: int


class Descriptions:
    """The vectors of entities' texts, each encoded when a mention first needs it.

    An entity has two: that of its title with its description, and that of its title alone. They are
    one where it has no description.

    kb: The entities in their present state.
    """

    def __init__(self, kb: ArboKB, encoder: DualEncoder):
        self._kb = kb
        self._encoder = encoder
        # The rows of each entity's vectors, -1 for those that are not encoded yet.
        self._rows = minus_ones((kb.entities.positions, 2))
        self._vectors = AppendOnly.empty()
        self._loading = ForkableLock()

    def of_entities(self, entities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The texts of entities, encoded where that was not done yet.

        entities: (n,) int64 positions in the knowledge base.
        RETURNS: (n, 2) int64 rows of the vectors, of the description and of the title; and the
            vectors of length 1, (rows, width) float32.
        """
        rows = self._rows[entities]
        if (rows < 0).any():
            with self._loading:
                unknown = np.unique(entities[(self._rows[entities] < 0).any(axis=1)])
                if len(unknown):
                    self._read(unknown)
            rows = self._rows[entities]
        return rows, self._vectors.rows

    def _read(self, positions: np.ndarray) -> None:
        """Encode the texts of some entities. positions: (n,) int64, each once."""
        entities = self._kb.entities.at_all(positions.tolist())
        # An entity may have been removed since it was retrieved.
        texts = [
            (entities[p].title, entities[p].description) if p in entities else ("", "")
            for p in positions.tolist()
        ]
        texts_and_titles = [*texts, *((title, "") for title, _ in texts)]
        distinct = list(dict.fromkeys(texts_and_titles))
        first = self._vectors.length
        vectors = unit(self._encoded(distinct)).astype(np.float32)
        self._vectors = self._vectors.with_rows(vectors)
        number = {text: first + i for i, text in enumerate(distinct)}
        rows = int_array([number[text] for text in texts_and_titles])
        # Last: another thread may compare with them from now on.
        self._rows[positions] = rows.reshape(2, -1).T

    def _encoded(self, texts: Sequence[tuple[str, str]]) -> np.ndarray:
        """The vectors of titles with descriptions, (n, width) float32, those stored too."""
        keys = int_array(keys_of(texts))
        cache = vector_cache(self._kb, self._encoder, KIND, keys)
        missing = np.flatnonzero(~cache.has(keys))
        if len(missing):
            new = [joined(*texts[row]) for row in missing.tolist()]
            encode = self._encoder.encode_passages
            cache.put(keys[missing], encode("entity", new, DESCRIPTION_PIECES))
        return cache.get(keys)[1]


def joined(title: str, description: str) -> str:
    """A title with its description, if it has one."""
    return f"{title}. {description}" if description else title


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Entities and exemplars in one state.

    revision: Which state it is.
    retriever: The search over both.
    encoder: The encoder of the vectors.
    settings: The texts, the similarity and the search.
    normalizer: Normalizes surface forms; None to keep them.
    cache: Keeps what is derived from a state, also for later ones.
    """

    revision: Revision
    retriever: Retriever
    encoder: DualEncoder
    settings: RetrieverSettings
    normalizer: Normalizer | None
    cache: RevisionCache

    @property
    def kb(self) -> ArboKB:
        return self.revision.kb

    @property
    def exemplars(self) -> ExemplarStore:
        return self.revision.exemplars

    @property
    def strings(self) -> EntityStrings:
        """The names of entities and the surface forms of exemplars."""
        state = self.kb, self.exemplars, self.normalizer
        return self.cache.get(
            "strings",
            self.revision,
            lambda: EntityStrings(*state),
            lambda earlier: EntityStrings(*state, earlier),
        )

    @property
    def descriptions(self) -> Descriptions:
        """The vectors of titles and descriptions."""
        return self.cache.get(
            "descriptions",
            (self.revision, self.encoder.text_fingerprint),
            lambda: Descriptions(self.kb, self.encoder),
        )

    def allowed_entities(self, batch: MentionBatch) -> AllowedEntities | None:
        """Entities that each mention may be linked to. None where types do not count.

        These are the entities with the mention's label as a type, and those without a type.
        """
        if not self.settings.match_types:
            return None
        _, first, numbers = np.unique(
            batch.labels, return_index=True, return_inverse=True
        )
        masks = [
            self._mask_of(batch.records[mention].label) for mention in first.tolist()
        ]
        shape = (len(masks), self.kb.entities.positions)
        return AllowedEntities(numbers, np.array(masks, dtype=bool).reshape(shape))

    def _mask_of(self, label: str) -> np.ndarray:
        """Entities that a label's mentions may have: (positions,) bool."""

        def build() -> np.ndarray:
            mask = np.zeros(self.kb.entities.positions, dtype=bool)
            mask[self.kb.entities.of_types([label])] = True
            if len(self.kb) and not mask.any():
                types = ", ".join(sorted(self.kb.entities.type_counts())[:5])
                warn_once(Warnings.W547.format(label=label, types=types))
            return mask

        return self.cache.get(("allowed", label), self.revision, build)

    def named_entities(self, batch: MentionBatch) -> np.ndarray | None:
        """Entities by name for unreadable mentions: (m, c) int64. Mentions that the encoder can't
        read.

        The more frequent ones come first; -1 for none. None where the encoder reads all mentions.
        """
        if batch.has_vector.all():
            return None
        entities = self.kb.entities
        table = minus_ones((len(batch), MOST_NAMED))
        for mention in np.flatnonzero(~batch.has_vector).tolist():
            named = entities.at_all(entities.with_name(batch.normalized[mention]))
            best = sorted(
                named, key=lambda position: (-named[position].frequency, position)
            )
            table[mention, : len(best)] = best[:MOST_NAMED]
        return table
