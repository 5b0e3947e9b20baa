"""Mentions that no entity fits: those of one batch, and a store that more are added to."""

from dataclasses import dataclass
from typing import Callable, Dict, List, Sequence

import numpy as np

from ..arrays import AppendOnly
from ..encoders.inputs import SpanInputs
from ..mentions.batch import MentionBatch
from ..mentions.records import MentionKey, MentionRecord
from ..retrieval.mention_search import usable
from .clustering import Discovery
from .entities import NearestEntity


@dataclass(frozen=True)
class Unlinked:
    """``m`` mentions that no entity fits, in the order of their documents.

    records: The record of each.
    documents: (m,) int64, ascending, the number of the document each is in.
    nearest: For each the most probable entities of the knowledge base, best first.
    inputs: The m spans that they are encoded from.
    vectors: (m, width) float32, prepared.
    """

    records: Sequence[MentionRecord]
    documents: np.ndarray
    nearest: Sequence[List[NearestEntity]]
    inputs: SpanInputs
    vectors: np.ndarray

    def __len__(self) -> int:
        return len(self.records)

    @property
    def keys(self) -> List[MentionKey]:
        """What identifies each mention."""
        return [record.key for record in self.records]

    @property
    def normalized(self) -> List[str]:
        """The normalized surface form of each mention."""
        return [record.normalized for record in self.records]

    @classmethod
    def from_batch(
        cls, batch: MentionBatch, nearest: Sequence[List[NearestEntity]], first_document: int = 0
    ) -> "Unlinked":
        """The mentions of an encoded batch.

        nearest: For each mention the most probable entities, best first.
        first_document: The number of the batch's first document.
        """
        documents = batch.documents + first_document
        return cls(batch.records, documents, nearest, batch.inputs, batch.encoded)

    @classmethod
    def concat(cls, parts: Sequence["Unlinked"]) -> "Unlinked":
        """The mentions of several sets one after the other; at least one set."""
        return cls(
            [record for part in parts for record in part.records],
            np.concatenate([part.documents for part in parts]),
            [nearest for part in parts for nearest in part.nearest],
            SpanInputs.concat([part.inputs for part in parts]),
            np.concatenate([part.vectors for part in parts]),
        )


class Rows:
    """The unlinked mentions that are stored, one row per mention.

    Inputs are stored in parts, so the cost of adding a document does not depend on what is stored.

    records: The record of each mention.
    nearest: For each mention the most probable entities of the knowledge base, best first.
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.records: List[MentionRecord] = []
        self._documents: List[int] = []
        self.nearest: List[List[NearestEntity]] = []
        self._inputs: List[SpanInputs] = []
        self._vectors = AppendOnly.empty()
        self._features, self._ngram_weight = AppendOnly.empty(), 0.0
        self._usable: List[bool] = []
        self._row_of: Dict[MentionKey, int] = {}

    def __len__(self) -> int:
        return len(self.records)

    def row(self, key: MentionKey) -> int:
        """The row of a mention, -1 where it is not stored."""
        return self._row_of.get(key, -1)

    @property
    def vectors(self) -> np.ndarray:
        """(n, width) float32, prepared."""
        return self._vectors.rows

    @property
    def inputs(self) -> SpanInputs:
        """The n spans that mentions are encoded from."""
        if len(self._inputs) != 1:
            self._inputs = [SpanInputs.concat(self._inputs)]
        return self._inputs[0]

    def features(self, discovery: Discovery) -> np.ndarray:
        """What mentions are compared by: (n, width) float32. Those of new rows only are computed.

        discovery: Its ``features``.
        """
        weight = discovery.ngram_weight
        if weight != self._ngram_weight:
            self._features, self._ngram_weight, self._usable = AppendOnly.empty(), weight, []
        if not weight:
            return self.vectors
        done = self._features.length
        if done < len(self):
            normalized = [record.normalized for record in self.records[done:]]
            features = discovery.features(self.vectors[done:], normalized)
            self._features = self._features.with_rows(features)
        return self._features.rows

    def usable(self, discovery: Discovery) -> np.ndarray:
        """(n,) bool, the mentions that can be compared, see ``mention_search.usable``."""
        features = self.features(discovery)
        self._usable += usable(features[len(self._usable) :]).tolist()
        return np.array(self._usable, dtype=bool)

    def extend(self, mentions: Unlinked) -> None:
        """Add mentions, none of which is stored yet."""
        if not len(mentions):
            return
        self._row_of.update(zip(mentions.keys, range(len(self), len(self) + len(mentions))))
        self.records.extend(mentions.records)
        # Those of another run are numbered on.
        last, first = self._documents[-1:] or [0], int(mentions.documents[0])
        shift = last[0] + 1 - first if first < last[0] else 0
        self._documents.extend((mentions.documents + shift).tolist())
        self.nearest.extend(mentions.nearest)
        self._inputs.append(mentions.inputs)
        self._vectors = (
            self._vectors.with_rows(mentions.vectors)
            if self._vectors.length
            else AppendOnly.of(np.asarray(mentions.vectors, dtype=np.float32))
        )

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

    def keep(self, rows: np.ndarray) -> None:
        """Remove all mentions but those at ``rows``, which move up."""
        kept = self.take(rows)
        self._clear()
        self.extend(kept)

    def encode(self, encode: Callable[[SpanInputs], np.ndarray]) -> None:
        """Encode all mentions anew."""
        self._vectors, self._features, self._usable = AppendOnly.empty(), AppendOnly.empty(), []
        if len(self):
            self._vectors = self._vectors.with_rows(encode(self.inputs))
