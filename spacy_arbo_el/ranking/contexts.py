"""Compare the contexts of mentions with the descriptions of their candidates.

A sentence encoder was trained to bring texts of one subject together. So the text around a mention
is compared with the description of an entity, both encoded whole. Names need not be alike for
that, and where several entities share a name, nothing else tells them apart.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix

from ..base.arrays import (
    AppendOnly,
    int_array,
    minus_ones,
    numbered,
    offsets_of,
    take_rows,
    unit,
)
from ..encoders.dual import DualEncoder
from ..encoders.inputs import EncodingCache
from ..kb.texts import keys_of
from ..mentions.record import MentionRecord
from ..storage.locks import ForkableLock
from .features import CandidateFeatures, ContextFits
from .sources import SearchedEntities

# The most word pieces of a context and of a description, special tokens included.
CONTEXT_PIECES = 96
DESCRIPTION_PIECES = 64
# The kind of vectors, in their store.
KIND = "descriptions"
# How much a mention with no words around it counts: it says only what its name means mostly.
WITHOUT_CONTEXT = 0.5


class Descriptions:
    """The vectors of entities' texts, each encoded when a mention first needs it.

    An entity has two: that of its title with its description, and that of its title alone. They are
    one where it has no description.

    datastore: The datastore in its present state.
    """

    def __init__(self, datastore: SearchedEntities):
        self._entities = datastore.kb.entities
        self._datastore = datastore
        self._generation = self._entities.generation
        self._fingerprint = datastore.encoder.fingerprint
        # The rows of each entity's vectors, -1 for those that are not encoded yet.
        self._rows = minus_ones((self._entities.positions, 2))
        self._vectors = AppendOnly.empty()
        self._loading = ForkableLock()

    @classmethod
    def of(cls, datastore: SearchedEntities) -> "Descriptions":
        """The texts of a datastore's present state, cached there."""
        descriptions = datastore.derived(
            "descriptions",
            lambda: cls(datastore),
            lambda earlier: earlier._updated(datastore),
        )
        if descriptions._fingerprint != datastore.encoder.fingerprint:
            # Training changes vectors without changing the content of the datastore.
            descriptions._forget()
        return descriptions

    def _updated(self, datastore: SearchedEntities) -> "Descriptions":
        """The texts of a later state of the datastore."""
        entities = datastore.kb.entities
        if entities is not self._entities:
            return Descriptions(datastore)
        changed = entities.changed_since(self._generation)
        rows = minus_ones((entities.positions, 2))
        rows[: len(self._rows)] = self._rows[: len(rows)]
        rows[changed] = -1
        self._rows = rows
        self._generation = entities.generation
        return self

    def _forget(self) -> None:
        with self._loading:
            self._fingerprint = self._datastore.encoder.fingerprint
            self._rows = minus_ones(self._rows.shape)
            self._vectors = AppendOnly.empty()

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
        entities = self._entities.at_all(positions.tolist())
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
        cache = self._datastore.vector_cache(KIND, keys)
        missing = np.flatnonzero(~cache.has(keys))
        if len(missing):
            new = [joined(*texts[row]) for row in missing.tolist()]
            encode = self._datastore.encoder.encode_passages
            cache.put(keys[missing], encode("entity", new, DESCRIPTION_PIECES))
        return cache.get(keys)[1]


def joined(title: str, description: str) -> str:
    """A title with its description, if it has one."""
    return f"{title}. {description}" if description else title


def fits_of(
    records: Sequence[MentionRecord],
    candidates: CandidateFeatures,
    datastore: SearchedEntities,
    cache: EncodingCache | None = None,
) -> ContextFits:
    """Compare the texts of candidates with the contexts of mentions.

    Only the candidates that are worth it are looked at, and of a mention only if one of these has a
    description.

    cache: Keeps the vectors of contexts for the next call; None to keep none.
    """
    fits = ContextFits.none(candidates.entities.shape)
    mentions, columns = np.nonzero(candidates.worth_describing())
    if not len(mentions):
        return fits
    rows, vectors = Descriptions.of(datastore).of_entities(
        candidates.entities[mentions, columns]
    )
    has_description = rows[:, 0] != rows[:, 1]
    compared = np.unique(mentions[has_description])
    is_compared = np.isin(mentions, compared)
    if len(compared):
        records_compared = take_rows(records, compared)
        contexts = contexts_of(records_compared, datastore.encoder, cache)
        place = np.searchsorted(compared, mentions[is_compared])
        texts, titles = vectors[rows[is_compared].T]
        cell = mentions[is_compared], columns[is_compared]
        fit = np.einsum("nd,nd->n", contexts[place], texts)
        shared = _of_same_string(records_compared, contexts)
        # Such as one in a cell of a table.
        is_bare = [
            len(record.sentences) == 1
            and record.sentences[0][0] == " ".join(record.text.split())
            for record in records_compared
        ]
        shared[is_bare] *= WITHOUT_CONTEXT
        fits.fit[cell] = fit
        fits.beyond[cell] = fit - np.einsum("nd,nd->n", contexts[place], titles)
        fits.shared[cell] = np.einsum("nd,nd->n", shared[place], texts)
        fits.described[cell] = has_description[is_compared]
    return fits


def contexts_of(
    records: Sequence[MentionRecord], encoder: DualEncoder, cache: EncodingCache | None
) -> np.ndarray:
    """The vectors of mentions' contexts: (n, width) float32 of length 1.

    A context is the mean of the sentences around a mention, each of which is encoded once.
    """
    pairs = [pair for record in records for pair in record.sentences]
    texts, shares = zip(*pairs) if pairs else ((), ())
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    vectors = encode_contexts(encoder, list(place), cache)
    bounds = offsets_of([len(record.sentences) for record in records])
    cells = np.array(shares, dtype=np.float32), list(map(place.get, texts)), bounds
    return unit(csr_matrix(cells, shape=(len(records), len(place))) @ vectors)


def _of_same_string(
    records: Sequence[MentionRecord], contexts: np.ndarray
) -> np.ndarray:
    """The mean context of each mention's string in its document: (n, width) float32 of length 1.

    A string means one entity in a document, mostly.
    """
    keys = [(record.key[0], record.normalized.casefold()) for record in records]
    group = numbered(keys)
    sums = np.zeros((group.max(initial=-1) + 1, contexts.shape[1]), dtype=np.float32)
    np.add.at(sums, group, contexts)
    return unit(sums)[group]


def encode_contexts(
    encoder: DualEncoder, texts: Sequence[str], cache: EncodingCache | None = None
) -> np.ndarray:
    """The vectors of texts around mentions: (n, width) float32 of length 1. Equal ones are encoded
    once.
    """

    def encode(places: list[int]) -> np.ndarray:
        passages = [texts[place] for place in places]
        return unit(encoder.encode_passages("mention", passages, CONTEXT_PIECES))

    return (cache or EncodingCache()).of("contexts", texts, encode)
