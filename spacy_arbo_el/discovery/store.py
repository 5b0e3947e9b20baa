"""Storage of unlinked mentions and their clusters, by number."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..encoders.inputs import SpanInputs
from ..mentions.record import MentionKey, MentionRecord
from .entities import NearestEntity


@dataclass(frozen=True)
class Unlinked:
    """Unlinked mentions, ``m`` of them, in order of documents.

    records: The record of each.
    documents: (m,) int64, ascending, the number of the document each is in.
    nearest: For each the most probable entities of the knowledge base, best first.
    inputs: The m spans that they are encoded from.
    vectors: (m, width) float32, prepared.
    """

    records: Sequence[MentionRecord]
    documents: np.ndarray
    nearest: Sequence[list[NearestEntity]]
    inputs: SpanInputs
    vectors: np.ndarray

    def __len__(self) -> int:
        return len(self.records)

    @property
    def keys(self) -> list[MentionKey]:
        """Keys that identify the mentions."""
        return [record.key for record in self.records]


class Rows:
    """The unlinked mentions that are stored, one row per mention.

    records: The record of each mention.
    nearest: For each mention the most probable entities of the knowledge base, best first.
    inputs: The n spans that mentions are encoded from.
    vectors: (n, width) float32, prepared.
    """

    def __init__(self) -> None:
        self.records: list[MentionRecord] = []
        self._documents: list[int] = []
        self.nearest: list[list[NearestEntity]] = []
        self.inputs = SpanInputs.empty()
        self.vectors = np.zeros((0, 0), dtype=np.float32)
        self._row_of: dict[MentionKey, int] = {}

    def __len__(self) -> int:
        return len(self.records)

    def row(self, key: MentionKey) -> int:
        """Row of a mention, -1 if it is not stored."""
        return self._row_of.get(key, -1)

    def keys_of(self, rows: np.ndarray) -> list[MentionKey]:
        """The keys of the mentions at ``rows``."""
        return [self.records[row].key for row in rows.tolist()]

    def extend(self, mentions: Unlinked) -> None:
        """Add mentions, none of which is stored yet."""
        if not len(mentions):
            return
        first_ones = not self.records
        self._row_of.update(zip(mentions.keys, range(len(self), len(self) + len(mentions))))
        self.records.extend(mentions.records)
        # Those of another run are numbered on.
        last = self._documents[-1:] or [0]
        first = int(mentions.documents[0])
        shift = last[0] + 1 - first if first < last[0] else 0
        self._documents.extend((mentions.documents + shift).tolist())
        self.nearest.extend(mentions.nearest)
        # Those of most discoveries are all new, and are not copied.
        if first_ones:
            self.inputs = mentions.inputs
            self.vectors = np.asarray(mentions.vectors, dtype=np.float32)
        else:
            self.inputs = SpanInputs.concat([self.inputs, mentions.inputs])
            self.vectors = np.concatenate([self.vectors, mentions.vectors])

    def all(self) -> Unlinked:
        """All mentions. Their vectors are not copied."""
        documents = np.array(self._documents, dtype=np.int64)
        return Unlinked(self.records, documents, self.nearest, self.inputs, self.vectors)

    def take(self, rows: np.ndarray) -> Unlinked:
        """The mentions at ``rows``, in that order."""
        places = rows.tolist()
        return Unlinked(
            [self.records[row] for row in places],
            np.array([self._documents[row] for row in places], dtype=np.int64),
            [self.nearest[row] for row in places],
            self.inputs.take(rows),
            self.vectors[rows],
        )

    def encode(self, encode: Callable[[SpanInputs], np.ndarray]) -> None:
        """Encode all mentions anew."""
        if len(self):
            self.vectors = encode(self.inputs)
