"""Encoding of entity texts, and ownership of vector rows."""

from itertools import islice
from typing import (
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import numpy as np

from ..arrays import has_vector
from ..encoders.protocol import Text
from ..errors import Errors
from .database import IN, Database
from .entity import Entity
from .store import EntityStore
from .texts import keys_of
from .vectors import VectorRows, check_vectors
from .verbalizations import Verbalization

Encode = Callable[[List[Text]], np.ndarray]
# (position, entity)
Items = List[Tuple[int, Entity]]

# The number of entities whose texts are encoded, and saved, at a time.
CHUNK = 16384


class EntityVectorRows(NamedTuple):
    """New rows of some entities' texts.

    positions: (n,) int64, the entities in the order of their rows.
    counts: (n,) int64, the number of texts of each.
    keys: (rows,) int64, the keys of the texts.
    owners: (rows,) int64, the entity of each row; -1 for a text that the encoder can't read.
    vectors: (rows, width) float32.
    """

    positions: np.ndarray
    counts: np.ndarray
    keys: np.ndarray
    owners: np.ndarray
    vectors: np.ndarray


class TextEncoder:
    """Encodes each text once, reusing stored vectors.

    encode: Texts -> vectors.
    rows: The stored vectors.
    entities: The store with the rows of texts. None to reuse only vectors that are encoded here.
    count: How many texts were encoded.
    """

    def __init__(self, encode: Encode, rows: VectorRows, entities: Optional[EntityStore]):
        self.encode, self.rows, self.entities = encode, rows, entities
        self.count = 0
        self._row_of: Dict[int, int] = {}

    def vectors(self, texts: List[Text], keys: List[int]) -> np.ndarray:
        """Encode texts as the next rows: (n, width) float32."""
        stored = self._row_of if self.entities is None else rows_by_key(self.entities, keys)
        new = {key: text for key, text in zip(keys, texts) if key not in stored}
        vectors = np.zeros((len(texts), self.rows.width), dtype=np.float32)
        if new:
            encoded = self._encode(list(new.values()))
            place = {key: i for i, key in enumerate(new)}
            # Stored texts get some vector here; they are filled in below.
            vectors = encoded[np.array([place.get(key, -1) for key in keys], dtype=np.int64)]
        old = [i for i, key in enumerate(keys) if key in stored]
        if old:
            rows = np.array([stored[keys[i]] for i in old], dtype=np.int64)
            vectors[old] = self.rows.take(rows)
        if self.entities is None:
            for i, key in enumerate(keys):
                self._row_of.setdefault(key, len(self.rows) + i)
        return vectors

    def _encode(self, texts: List[Text]) -> np.ndarray:
        vectors = check_vectors(self.encode(texts), len(texts))
        if len(self.rows) and vectors.shape[1] != self.rows.width:
            got, expected = vectors.shape[1], self.rows.width
            raise ValueError(Errors.E007.format(got=got, expected=expected))
        self.count += len(texts)
        return vectors


def chunks(items: Iterator[Tuple[int, Entity]]) -> Iterator[Items]:
    while chunk := list(islice(items, CHUNK)):
        yield chunk


def next_dirty(entities: EntityStore, after: int = -1) -> List[int]:
    """The entities to encode next, in order. after: Those up to this one are left out."""
    rows = entities.database.rows(
        "SELECT position FROM dirty WHERE position > ? ORDER BY position LIMIT ?", (after, CHUNK)
    )
    return [position for (position,) in rows]


def dirty_parts(entities: EntityStore, verbalize: Verbalization) -> Iterator[Items]:
    """Entities whose texts have changed, in parts. Parts have the sizes that ``next_dirty`` gives.

    None of them may be encoded meanwhile.
    """
    last = -1
    while dirty := next_dirty(entities, last):
        yield changed_items(entities, dirty, verbalize)
        last = dirty[-1]


def find_changed(entities: EntityStore, verbalize: Verbalization) -> List[int]:
    """The entities whose texts differ from those that were encoded."""
    return [
        position
        for chunk in chunks(entities.items())
        for position in _changed(entities, chunk, verbalize)
    ]


def _changed(entities: EntityStore, items: Items, verbalize: Verbalization) -> List[int]:
    stored = stored_keys(entities, [position for position, _ in items])
    return [p for p, entity in items if stored.get(p) != keys_of(verbalize(entity))]


def stored_keys(entities: EntityStore, positions: List[int]) -> Dict[int, List[int]]:
    """The keys of the texts that were encoded, by entity. Entities never encoded are left out."""
    among, owned = entities.database.rows_among, f"owned WHERE position {IN}"
    encoded = among(f"SELECT position FROM {owned}", positions)
    keys: Dict[int, List[int]] = {position: [] for (position,) in encoded}
    for position, key in among(
        f"SELECT position, key FROM (SELECT * FROM {owned}) "
        "JOIN text ON row >= first AND row < first + count ORDER BY row",
        positions,
    ):
        keys[position].append(key)
    return keys


def rows_by_key(entities: EntityStore, keys: List[int]) -> Dict[int, int]:
    """First row of each stored text, by key."""
    statement = f"SELECT key, min(row) FROM text WHERE key {IN} GROUP BY key"
    return dict(entities.database.rows_among(statement, dict.fromkeys(keys)))


def changed_items(entities: EntityStore, positions: List[int], verbalize: Verbalization) -> Items:
    """Entities whose texts differ from the encoded ones."""
    items = list(entities.at_all(positions).items())
    changed = set(_changed(entities, items, verbalize))
    return [item for item in items if item[0] in changed]


def new_texts(
    entities: EntityStore, parts: Iterable[Items], verbalize: Verbalization, *, stored: bool
) -> Iterator[List[Text]]:
    """Texts that a ``TextEncoder`` would encode, part by part.

    parts: Entities whose texts are encoded at a time.
    stored: Whether the vectors of texts that are stored already are used again.
    """
    seen: Set[int] = set()
    for items in parts:
        texts = [text for _, entity in items for text in verbalize(entity)]
        keys = keys_of(texts)
        known = rows_by_key(entities, keys) if stored else {}
        new = {k: t for k, t in zip(keys, texts) if k not in seen and k not in known}
        seen.update(new)
        if new:
            yield list(new.values())


def encode_items(items: Items, verbalize: Verbalization, encoder: TextEncoder) -> EntityVectorRows:
    """New rows for all texts of entities."""
    groups = [verbalize(entity) for _, entity in items]
    texts = [text for group in groups for text in group]
    keys = keys_of(texts)
    positions = np.array([position for position, _ in items], dtype=np.int64)
    counts = np.array([len(group) for group in groups], dtype=np.int64)
    vectors = encoder.vectors(texts, keys)
    owners = np.where(has_vector(vectors), np.repeat(positions, counts), -1)
    return EntityVectorRows(positions, counts, np.array(keys, dtype=np.int64), owners, vectors)


def joined(parts: Sequence[EntityVectorRows]) -> EntityVectorRows:
    """Parts one after the other, without their vectors."""
    none = np.zeros(0, dtype=np.int64)
    positions, counts, keys, owners = (
        np.concatenate([none, *(part[i] for part in parts)]) for i in range(4)
    )
    return EntityVectorRows(positions, counts, keys, owners, np.zeros((0, 0), dtype=np.float32))


def store_layout(database: Database, start: int, part: EntityVectorRows) -> None:
    """Store owners and texts of the rows from ``start`` on."""
    first = start + np.cumsum(part.counts) - part.counts
    owned = zip(part.positions.tolist(), first.tolist(), part.counts.tolist())
    database.many("INSERT INTO owned VALUES (?, ?, ?)", owned)
    database.many("INSERT INTO text VALUES (?, ?)", enumerate(part.keys.tolist(), start))
    if len(part.owners):
        database.many("INSERT INTO owner VALUES (?, ?)", [(start, part.owners.tobytes())])


def replace_layout(database: Database, layout: EntityVectorRows) -> bool:
    """Write down all rows anew. RETURNS: Whether any row changed its number."""
    moved = (
        bool(database.rows("SELECT 1 FROM dead LIMIT 1"))
        or database.rows("SELECT key FROM text ORDER BY row")
        != [(k,) for k in layout.keys.tolist()]
        or database.rows("SELECT position, count FROM owned ORDER BY position")
        != list(zip(layout.positions.tolist(), layout.counts.tolist()))
    )
    database.empty("text", "owned", "dead", "dirty", "owner")
    store_layout(database, 0, layout)
    return moved


def as_stored(vectors: np.ndarray, dtype: str) -> np.ndarray:
    """Vectors in the type they are stored in. ValueError where a value is too large for it."""
    with np.errstate(over="ignore"):
        stored = vectors.astype(dtype)
    if not np.isfinite(stored).all():
        raise ValueError(Errors.E022.format(largest=float(np.abs(vectors).max())))
    return stored
