"""Encoding what has changed: texts of entities -> rows of vectors."""

import hashlib
import json
from itertools import islice
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..errors import Errors
from .database import Database
from .entity import Entity
from .store import EntityStore
from .texts import keys_of
from .vectors import VectorRows, check_vectors
from .verbalizations import Text, Verbalization

Encode = Callable[[List[Text]], np.ndarray]
Items = List[Tuple[int, Entity]]

# Entities whose texts are encoded, and saved, at a time.
CHUNK = 16384


class Encoded(NamedTuple):
    """Entities with texts, in the order of their rows.

    positions, counts: (n,) int64, entities and how many texts each has.
    keys: (rows,) int64, the keys of the texts.
    vectors: (rows, width) float32.
    """

    positions: np.ndarray
    counts: np.ndarray
    keys: np.ndarray
    vectors: np.ndarray

    @property
    def owners(self) -> np.ndarray:
        """(rows,) int64, the entity of each row."""
        return np.repeat(self.positions, self.counts)


class Encoder:
    """Encodes each text once, and takes the vectors of those that are there already.

    rows: Where these are.
    entities: The store that knows their rows; None to encode all, and remember the rows here.
    count: How many texts were encoded.
    """

    def __init__(self, encode: Encode, rows: VectorRows, entities: Optional[EntityStore]):
        self.encode, self.rows, self.entities = encode, rows, entities
        self.count = 0
        self._seen: Dict[int, int] = {}

    def vectors(self, texts: List[Text], keys: List[int]) -> np.ndarray:
        """(n, width) float32, the vectors of texts, which become the next rows."""
        known = self._seen if self.entities is None else rows_by_key(self.entities, keys)
        new = {key: text for key, text in zip(keys, texts) if key not in known}
        vectors = np.zeros((len(texts), self.rows.width), dtype=np.float32)
        if new:
            encoded = check_vectors(self.encode(list(new.values())), len(new))
            if len(self.rows) and encoded.shape[1] != self.rows.width:
                got, expected = encoded.shape[1], self.rows.width
                raise ValueError(Errors.E007.format(got=got, expected=expected))
            self.count += len(new)
            place = {key: i for i, key in enumerate(new)}
            fresh = np.array([place.get(key, -1) for key in keys], dtype=np.int64)
            vectors = encoded[fresh]
        old = [i for i, key in enumerate(keys) if key in known]
        if old:
            vectors[old] = self.rows.take(np.array([known[keys[i]] for i in old], dtype=np.int64))
        if self.entities is None:
            for i, key in enumerate(keys):
                self._seen.setdefault(key, len(self.rows) + i)
        return vectors


def chunks(items: Iterator[Tuple[int, Entity]]) -> Iterator[Items]:
    while chunk := list(islice(items, CHUNK)):
        yield chunk


def next_dirty(entities: EntityStore) -> List[int]:
    """Entities to encode next, in order."""
    rows = entities.database.rows("SELECT position FROM dirty ORDER BY position LIMIT ?", (CHUNK,))
    return [position for (position,) in rows]


def find_changed(entities: EntityStore, verbalize: Verbalization) -> List[int]:
    """The entities whose texts are others than those encoded."""
    found = (_changed(entities, chunk, verbalize) for chunk in chunks(entities.items()))
    return [position for part in found for position in part]


def identity_of(verbalize: Verbalization) -> str:
    """What a verbalization is and is set to: two that have the same do the same.

    "" where that can't be told.
    """
    code = getattr(verbalize, "__code__", None)
    if code is None:
        return ""
    cells = [cell.cell_contents for cell in getattr(verbalize, "__closure__", None) or ()]
    if not all(isinstance(value, (bool, int, float, str, type(None))) for value in cells):
        return ""
    defaults = (verbalize.__defaults__, verbalize.__kwdefaults__)  # type: ignore[attr-defined]
    nested = [part for part in code.co_consts if hasattr(part, "co_code")]
    plain = [part for part in code.co_consts if not hasattr(part, "co_code")]
    parts = [part.co_code for part in (code, *nested)]
    what = (verbalize.__module__, verbalize.__qualname__, parts, plain, code.co_names)
    return hashlib.blake2b(repr((what, cells, defaults)).encode("utf8"), digest_size=8).hexdigest()


def _changed(entities: EntityStore, items: Items, verbalize: Verbalization) -> List[int]:
    stored = stored_keys(entities, [position for position, _ in items])
    return [p for p, entity in items if stored.get(p) != keys_of(verbalize(entity))]


def stored_keys(entities: EntityStore, positions: List[int]) -> Dict[int, List[int]]:
    """The keys of the texts that entities' vectors were made of, for those that were encoded."""
    wanted = (json.dumps(positions),)
    owned = "owned WHERE position IN (SELECT value FROM json_each(?))"
    found: Dict[int, List[int]] = {
        position: []
        for (position,) in entities.database.rows(f"SELECT position FROM {owned}", wanted)
    }
    for position, key in entities.database.rows(
        f"SELECT position, key FROM (SELECT * FROM {owned}) "
        "JOIN text ON row >= first AND row < first + count ORDER BY row",
        wanted,
    ):
        found[position].append(key)
    return found


def rows_by_key(entities: EntityStore, keys: List[int]) -> Dict[int, int]:
    """A row that has the text of each key, where there is one."""
    wanted = json.dumps(list(dict.fromkeys(keys)))
    statement = (
        "SELECT key, min(row) FROM text WHERE key IN (SELECT value FROM json_each(?)) GROUP BY key"
    )
    return dict(entities.database.rows(statement, (wanted,)))


def encode_changed(
    entities: EntityStore, positions: List[int], verbalize: Verbalization, encoder: Encoder
) -> Encoded:
    """Vectors for those of the entities whose texts are not the ones encoded."""
    items = list(entities.at_all(positions).items())
    changed = set(_changed(entities, items, verbalize))
    return encode_chunk([item for item in items if item[0] in changed], verbalize, encoder)


def encode_chunk(items: Items, verbalize: Verbalization, encoder: Encoder) -> Encoded:
    """Vectors for all texts of entities."""
    texts = [verbalize(entity) for _, entity in items]
    flat = [text for group in texts for text in group]
    keys = keys_of(flat)
    return Encoded(
        np.array([position for position, _ in items], dtype=np.int64),
        np.array([len(group) for group in texts], dtype=np.int64),
        np.array(keys, dtype=np.int64),
        encoder.vectors(flat, keys),
    )


def joined(parts: Sequence[Encoded]) -> Encoded:
    """Parts one after the other, without their vectors."""
    none = np.zeros(0, dtype=np.int64)
    positions, counts, keys = (
        np.concatenate([none, *(part[i] for part in parts)]) for i in range(3)
    )
    return Encoded(positions, counts, keys, np.zeros((0, 0), dtype=np.float32))


def store_layout(database: Database, start: int, part: Encoded) -> None:
    """Note down whose the rows from ``start`` on are, and of which texts."""
    first = start + np.cumsum(part.counts) - part.counts
    owned = zip(part.positions.tolist(), first.tolist(), part.counts.tolist())
    database.many("INSERT INTO owned VALUES (?, ?, ?)", owned)
    database.many("INSERT INTO text VALUES (?, ?)", enumerate(part.keys.tolist(), start))


def replace_layout(database: Database, layout: Encoded) -> bool:
    """Note down all rows anew. RETURNS: Whether any has another number than before."""
    rows = database.rows("SELECT row, key FROM text ORDER BY row")
    owned = database.rows("SELECT position, count FROM owned ORDER BY position")
    dead = database.rows("SELECT 1 FROM dead LIMIT 1")
    before = [np.array(table, dtype=np.int64).reshape(-1, 2) for table in (rows, owned)]
    after = (
        np.stack([np.arange(len(layout.keys)), layout.keys], axis=1),
        np.stack([layout.positions, layout.counts], axis=1),
    )
    same = not dead and all(np.array_equal(*pair) for pair in zip(before, after))
    if not same:
        for table in ("text", "owned", "dead", "dirty"):
            database.many(f"DELETE FROM {table}", [()])
        store_layout(database, 0, layout)
    database.many("DELETE FROM block", [()])
    return not same


def as_stored(vectors: np.ndarray, dtype: str) -> np.ndarray:
    """Vectors in the type they are stored in; an error where one is too large for it."""
    with np.errstate(over="ignore"):
        stored = vectors.astype(dtype)
    if not np.isfinite(stored).all():
        raise ValueError(Errors.E022.format(largest=float(np.abs(vectors).max())))
    return stored
