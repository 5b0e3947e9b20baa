"""The texts of the entities of a knowledge base. Vectors are found by these."""

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from spacy.util import minibatch

from ..base.arrays import int_array, offsets_of
from ..encoders.protocol import Text
from .entity import Entity
from .store import EntityStore
from .verbalizations import Verbalization

# The number of entities whose texts are encoded, and saved, at a time.
CHUNK = 16384


def keys_of(texts: Iterable[Text]) -> list[int]:
    """Hashes of texts, 64 bits each."""
    encoded = (
        f"{title}\x1f{description}".encode("utf8", "surrogatepass")
        for title, description in texts
    )
    digests = (hashlib.blake2b(data, digest_size=8).digest() for data in encoded)
    return [int.from_bytes(digest, "big", signed=True) for digest in digests]


@dataclass(frozen=True, eq=False)
class TextRows:
    """The texts of all entities in one state of a knowledge base, a row for each.

    Texts of entities that are added or changed come at the end, so that the other rows keep their
    numbers.

    uuid: The knowledge base's.
    generation: The number of its edits that are taken in.
    identity: The ``verbalization_identity`` of what gave the texts.
    owners: (rows,) int64, the position of the entity that has the text, -1 for none any more.
    keys: (rows,) int64, see ``keys_of``.
    """

    uuid: str = ""
    generation: int = -1
    identity: str = ""
    owners: np.ndarray = field(default_factory=int_array)
    keys: np.ndarray = field(default_factory=int_array)

    @property
    def live(self) -> np.ndarray:
        """(rows,) bool, the texts that an entity has."""
        return self.owners >= 0

    def updated(self, entities: EntityStore, verbalize: Verbalization) -> "TextRows":
        """The texts of the present state. Only entities that have changed are read."""
        # An edit by another program in the meantime is taken in again the next time.
        uuid = entities.database.get("uuid")
        generation = entities.generation
        positions = entities.changed_since(self.generation)
        before = self._keys_of(positions)
        owners: list[int] = []
        new: list[int] = []
        for position, entity in items_at(entities, positions):
            keys = keys_of(verbalize(entity))
            if before.get(position) == keys:
                del before[position]
                continue
            owners.extend([position] * len(keys))
            new.extend(keys)
        owners_before = np.where(np.isin(self.owners, list(before)), -1, self.owners)
        return replace(
            self,
            uuid=uuid,
            generation=generation,
            owners=np.concatenate([owners_before, int_array(owners)]),
            keys=np.concatenate([self.keys, int_array(new)]),
        )

    def _keys_of(self, positions: list[int]) -> dict[int, list[int]]:
        rows = (
            np.flatnonzero(np.isin(self.owners, positions)) if positions else positions
        )
        keys: dict[int, list[int]] = {}
        for position, key in zip(self.owners[rows].tolist(), self.keys[rows].tolist()):
            keys.setdefault(position, []).append(key)
        return keys

    def compacted(self) -> "TextRows":
        """The same without the texts that no entity has. Rows get other numbers."""
        return replace(self, owners=self.owners[self.live], keys=self.keys[self.live])

    def limited_to(self, positions: np.ndarray | None) -> "TextRows":
        """The texts of some entities alone, (positions,) bool; None for all."""
        if positions is None:
            return self
        return replace(
            self, owners=np.where(self.live & positions[self.owners], self.owners, -1)
        )

    def extends(self, earlier: "TextRows") -> bool:
        """Return whether the rows of another state have the same texts here."""
        return np.array_equal(self.keys[: len(earlier.keys)], earlier.keys)

    def to_bytes(self) -> bytes:
        state = json.dumps([self.uuid, self.generation, self.identity]).encode("utf8")
        rows = np.stack([self.owners, self.keys]).astype("<i8")
        data = state + b"\n" + rows.tobytes()
        return zlib.crc32(data).to_bytes(4, "little") + data

    @classmethod
    def from_bytes(cls, data: bytes) -> "TextRows":
        """Load the output of ``to_bytes``. ValueError where it is damaged, or something else."""
        if zlib.crc32(data[4:]).to_bytes(4, "little") != data[:4]:
            raise ValueError("its checksum is wrong")
        try:
            state, _, rows = data[4:].partition(b"\n")
            uuid, generation, identity = json.loads(state)
            owners, keys = np.frombuffer(rows, "<i8").reshape(2, -1)
        except (TypeError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        if [type(uuid), type(generation), type(identity)] != [str, int, str]:
            raise ValueError("its values are of other types")
        return cls(uuid, generation, identity, owners, keys)

    def fits(self, manifest: dict[str, Any]) -> bool:
        """Return whether these are texts of an earlier state, by a verbalization with a name."""
        is_earlier = (
            self.uuid == manifest["uuid"] and self.generation <= manifest["generation"]
        )
        return (
            is_earlier
            and self.identity != ""
            and int(self.owners.max(initial=-1)) < manifest["positions"]
        )


def file_of(identity: str) -> str:
    """The name of the file of the texts that a verbalization gives."""
    digest = hashlib.blake2b(identity.encode("utf8", "surrogatepass"), digest_size=8)
    return f"texts-{digest.hexdigest()}.bin"


def items_at(
    entities: EntityStore, positions: list[int]
) -> Iterator[tuple[int, Entity]]:
    """Entities with their positions, in order; positions without an entity are left out."""
    for batch in minibatch(positions, CHUNK):
        yield from sorted(entities.at_all(batch).items())


def texts_of(
    entities: EntityStore, verbalize: Verbalization, rows: TextRows, chosen: np.ndarray
) -> Iterator[dict[int, Text]]:
    """Texts of some rows, (rows,) bool, by their keys, each once, in parts."""
    missing = set(rows.keys[chosen].tolist())
    positions = np.unique(rows.owners[chosen]).tolist()
    for batch in minibatch(positions, CHUNK):
        new: dict[int, Text] = {}
        for _, entity in items_at(entities, batch):
            texts = verbalize(entity)
            new.update(
                (key, text)
                for key, text in zip(keys_of(texts), texts)
                if key in missing
            )
        missing.difference_update(new)
        if new:
            yield new


class DistinctTexts:
    """Distinct texts of all entities, with their owners.

    Entities with an identical text share it: neither is a wrong answer for it.

    texts: r ``(title, description)`` pairs.
    rows: (r,) int64, the first row of the knowledge base's vectors that is of each text.
    row_offsets: (r + 1,) int64, where each text's entities begin in ``row_entities``.
    row_entities: The positions of the entities of text ``t``, ascending, are
        ``row_entities[row_offsets[t]:row_offsets[t + 1]]``.
    entity_offsets: (positions + 1,) int64, where each entity's texts begin in ``entity_rows``.
    entity_rows: The texts of the entity at position ``p``, in the order of the verbalization, are
        ``entity_rows[entity_offsets[p]:entity_offsets[p + 1]]``.
    """

    def __init__(
        self, entities: EntityStore, verbalize: Verbalization, owners: np.ndarray
    ):
        """Read the texts of all entities, whose vectors must be up to date.

        owners: (rows,) int64, the entity of each row, -1 for none.
        """
        entities_with_text, places = np.unique(owners, return_index=True)
        first = dict(zip(entities_with_text.tolist(), places.tolist()))
        texts: dict[Text, int] = {}
        rows: list[int] = []
        links: list[list[int]] = [[] for _ in range(entities.positions)]
        for position, entity in entities.items():
            for i, text in enumerate(verbalize(entity)):
                number = texts.setdefault(text, len(texts))
                if number == len(rows):
                    rows.append(first[position] + i)
                links[position].append(number)
        self.texts = list(texts)
        self.rows = int_array(rows)
        self.entity_offsets = offsets_of([len(link) for link in links])
        self.entity_rows = int_array([text for link in links for text in link])
        linked = np.repeat(np.arange(len(links)), np.diff(self.entity_offsets))
        self.row_entities = linked[np.argsort(self.entity_rows, kind="stable")]
        self.row_offsets = offsets_of(
            np.bincount(self.entity_rows, minlength=len(self.texts))
        )

    def __len__(self) -> int:
        return len(self.texts)
