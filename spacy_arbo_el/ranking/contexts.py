"""Compare the contexts of mentions with the descriptions of their candidates.

A sentence encoder was trained to bring texts of one subject together. So the text around a mention
is compared with the description of an entity, both encoded whole. Names need not be alike for
that, and where several entities share a name, nothing else tells them apart.
"""

from collections.abc import Sequence

import numpy as np

from ..base.arrays import AppendOnly, take_or, unit
from ..encoders.kept_results import KeptResults
from ..encoders.protocol import Encoder
from ..kb.entity import Entity
from ..kb.texts import keys_of
from ..mentions.record import MentionRecord
from ..retrieval.datastore import Datastore
from ..storage.locks import ForkableLock
from .features import CandidateFeatures

# The most word pieces of a context and of a description, special tokens included.
CONTEXT_PIECES, DESCRIPTION_PIECES = 96, 64
# The kind of vectors, in their store.
KIND = "descriptions"
# What stands in place of a row of the vectors.
UNKNOWN, NOTHING = -2, -1


class Descriptions:
    """The vectors of entities' descriptions, each encoded when a mention first needs it.

    datastore: The datastore in its present state.
    """

    def __init__(self, datastore: Datastore):
        self._entities, self._datastore = datastore.kb.entities, datastore
        self._changes = self._entities.changes.total
        self._fingerprint = datastore.encoder.fingerprint
        # The row of each entity's vector.
        self._rows = np.full(self._entities.positions, UNKNOWN, dtype=np.int64)
        self._vectors = AppendOnly.empty("float32")
        self._loading = ForkableLock()

    @classmethod
    def of(cls, datastore: Datastore) -> "Descriptions":
        """The descriptions of a datastore's present state, cached there."""
        found = datastore.derived(
            "descriptions", lambda: cls(datastore), lambda earlier: earlier._updated(datastore)
        )
        if found._fingerprint != datastore.encoder.fingerprint:
            # Training changes vectors without changing the content of the datastore.
            found._forget()
        return found

    def _updated(self, datastore: Datastore) -> "Descriptions":
        """The descriptions of a later state of the datastore."""
        entities = datastore.kb.entities
        changed = entities.changes.since(self._changes)
        if entities is not self._entities or changed is None:
            return Descriptions(datastore)
        rows = np.full(entities.positions, UNKNOWN, dtype=np.int64)
        rows[: len(self._rows)] = self._rows[: len(rows)]
        rows[[position for position in changed if position < len(rows)]] = UNKNOWN
        self._rows, self._changes = rows, entities.changes.total
        return self

    def _forget(self) -> None:
        with self._loading:
            self._fingerprint = self._datastore.encoder.fingerprint
            self._rows = np.full(len(self._rows), UNKNOWN, dtype=np.int64)
            self._vectors = AppendOnly.empty("float32")

    def of_entities(self, entities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The descriptions of entities, encoded where that was not done yet.

        entities: (n,) int64 positions in the knowledge base.
        RETURNS: (n,) int64, the row of each description, -1 for none; and the vectors, (rows,
            width) float32 of length 1.
        """
        rows = take_or(self._rows, entities, NOTHING)
        if (rows == UNKNOWN).any():
            with self._loading:
                unknown = np.unique(entities[take_or(self._rows, entities, NOTHING) == UNKNOWN])
                self._read(unknown)
            rows = take_or(self._rows, entities, NOTHING)
        return rows, self._vectors.rows

    def _read(self, positions: np.ndarray) -> None:
        """Encode the descriptions of some entities.

        positions: (n,) int64, each once.
        """
        entities = self._entities.at_all(positions.tolist())
        described = [
            position for position, entity in sorted(entities.items()) if entity.description
        ]
        rows = np.full(len(positions), NOTHING, dtype=np.int64)
        if described:
            vectors = self._encoded([entities[position] for position in described])
            first = self._vectors.length
            self._vectors = self._vectors.with_rows(unit(vectors).astype(np.float32))
            rows[np.isin(positions, described)] = np.arange(first, first + len(described))
        # Last: another thread may compare with them from now on.
        self._rows[positions] = rows

    def _encoded(self, entities: Sequence[Entity]) -> np.ndarray:
        """The vectors of entities' descriptions, (n, width) float32, those that are stored too."""
        keys = np.array(keys_of((one.title, one.description) for one in entities), dtype=np.int64)
        cache = self._datastore.vector_cache(KIND)
        missing = np.flatnonzero(~cache.has(keys))
        if len(missing):
            texts = [description_text(entities[row]) for row in missing.tolist()]
            encode = self._datastore.encoder.encode_passages
            cache.put(keys[missing], encode("entity", texts, DESCRIPTION_PIECES))
        return cache.get(keys)[1]


def description_text(entity: Entity) -> str:
    """The text that a description is encoded from. It begins with the title."""
    return f"{entity.title}. {entity.description}"


def read_contexts(
    records: Sequence[MentionRecord],
    candidates: CandidateFeatures,
    datastore: Datastore,
    kept: KeptResults | None = None,
) -> CandidateFeatures:
    """Return candidates of mentions with the features of their contexts.

    kept: Keeps the vectors of contexts for the next call; None to keep none.
    """
    columns = candidates.worth_describing()
    some = np.take_along_axis(candidates.entities, columns, axis=1)
    fit = np.zeros(candidates.entities.shape, dtype=np.float32)
    described = np.zeros(candidates.entities.shape, dtype=bool)
    for whole, part in zip((fit, described), fits(datastore, records, some, kept)):
        np.put_along_axis(whole, columns, part, axis=1)
    return candidates.with_contexts(fit, described)


def fits(
    datastore: Datastore,
    records: Sequence[MentionRecord],
    entities: np.ndarray,
    kept: KeptResults | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The similarity of mentions' contexts to the descriptions of candidates.

    records: The m mentions.
    entities: (m, c) int64 positions of the candidates to look at, -1 for none.
    kept: As in ``read_contexts``.
    RETURNS: (m, c) float32, the cosines; and (m, c) bool, where there is a description.
    """
    similarity = np.zeros(entities.shape, dtype=np.float32)
    described = np.zeros(entities.shape, dtype=bool)
    mentions, columns = np.nonzero(entities >= 0)
    if not len(mentions):
        return similarity, described
    rows, vectors = Descriptions.of(datastore).of_entities(entities[mentions, columns])
    has = rows >= 0
    mentions, columns, rows = mentions[has], columns[has], rows[has]
    if not len(mentions):
        return similarity, described
    read = np.unique(mentions)
    texts = [records[row].passage for row in read.tolist()]
    contexts = _contexts(datastore.encoder, texts, kept)
    place = np.searchsorted(read, mentions)
    similarity[mentions, columns] = np.einsum("nd,nd->n", contexts[place], vectors[rows])
    described[mentions, columns] = True
    return similarity, described


def _contexts(encoder: Encoder, texts: list[str], kept: KeptResults | None) -> np.ndarray:
    """(n, width) float32 of length 1. Equal contexts are encoded once."""

    def encode(places: list[int]) -> np.ndarray:
        passages = [texts[place] for place in places]
        return unit(encoder.encode_passages("mention", passages, CONTEXT_PIECES))

    return (kept or KeptResults()).of("contexts", texts, encode)
