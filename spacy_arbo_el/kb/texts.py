"""The different texts of a knowledge base, each once: what training works on."""

import hashlib
from typing import Dict, Iterable, List, Sequence

import numpy as np

from ..encoders.sequences import offsets_of
from .database import Database
from .store import EntityStore
from .vectors import VectorRows
from .verbalizations import Text, Verbalization


def text_key(text: Text) -> int:
    """A number that two texts have in common if they are the same (64 bits of a hash)."""
    title, description = text
    data = f"{title}\x1f{description}".encode("utf8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big", signed=True)


class DistinctTexts:
    """Distinct entity texts, and which entities have them.

    texts: r ``(title, description)`` pairs.
    rows: (r,) int64, for each the first row of the knowledge base's vectors that is of this text.
    row_offsets, row_entities: The entities (positions, ascending) of text ``t`` are
        ``row_entities[row_offsets[t]:row_offsets[t + 1]]``.
    entity_offsets, entity_rows: The other way round for each position, in the order of the
        verbalization.

    Two entities with the very same text share it: neither is a wrong answer for it.
    """

    def __init__(self, texts: Dict[Text, int], rows: Sequence[int], links: List[List[int]]):
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
        cls, entities: EntityStore, verbalize: Verbalization, database: Database
    ) -> "DistinctTexts":
        """The texts of all entities; their vectors must be up to date."""
        first = dict(database.rows("SELECT position, first FROM owned"))
        texts: Dict[Text, int] = {}
        rows: List[int] = []
        links: List[List[int]] = [[] for _ in range(entities.positions)]
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


def keys_of(texts: Iterable[Text]) -> List[int]:
    return [text_key(text) for text in texts]
