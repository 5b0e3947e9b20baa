"""Distinct texts of a knowledge base, for training."""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from ..base.arrays import offsets_of
from ..encoders.protocol import Text
from .store import EntityStore
from .vectors import VectorRows
from .verbalizations import Verbalization


def text_key(text: Text) -> int:
    """A hash of a text, 64 bits."""
    title, description = text
    data = f"{title}\x1f{description}".encode("utf8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big", signed=True)


def keys_of(texts: Iterable[Text]) -> list[int]:
    return [text_key(text) for text in texts]


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

    def __init__(self, texts: dict[Text, int], rows: Sequence[int], links: list[list[int]]):
        """Hold distinct texts.

        texts: Each text with its number, from 0.
        rows: A row of each text.
        links: The numbers of the texts of each entity, by position.
        """
        self.texts = list(texts)
        self.rows = np.array(rows, dtype=np.int64)
        self.entity_offsets = offsets_of(np.array([len(link) for link in links], dtype=np.int64))
        self.entity_rows = np.array([text for link in links for text in link], dtype=np.int64)
        owners = np.repeat(np.arange(len(links)), np.diff(self.entity_offsets))
        order = np.argsort(self.entity_rows, kind="stable")
        self.row_entities = owners[order]
        self.row_offsets = offsets_of(np.bincount(self.entity_rows, minlength=len(self.texts)))

    def __len__(self) -> int:
        return len(self.texts)

    @classmethod
    def read(
        cls, entities: EntityStore, verbalize: Verbalization, owners: np.ndarray
    ) -> "DistinctTexts":
        """The texts of all entities. Their vectors must be up to date.

        owners: (rows,) int64, the entity of each row, -1 for none.
        """
        found, places = np.unique(owners, return_index=True)
        first = dict(zip(found.tolist(), places.tolist()))
        texts: dict[Text, int] = {}
        rows: list[int] = []
        links: list[list[int]] = [[] for _ in range(entities.positions)]
        for position, entity in entities.items():
            for i, text in enumerate(verbalize(entity)):
                number = texts.setdefault(text, len(texts))
                if number == len(rows):
                    rows.append(first[position] + i)
                links[position].append(number)
        return cls(texts, rows, links)

    def vectors(self, rows: VectorRows) -> np.ndarray:
        """(r, width) float32, their vectors."""
        return rows.take(self.rows)
