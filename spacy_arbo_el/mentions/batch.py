"""Mentions on their way through the pipeline."""

from dataclasses import dataclass, replace
from typing import List, Optional, Sequence

import numpy as np

from ..arrays import concat_or_none, has_vector
from ..encoders.inputs import SpanInputs
from .record import MentionKey, MentionRecord


@dataclass(frozen=True)
class MentionBatch:
    """``m`` mentions of some documents, in document order.

    records: A record of each.
    inputs: The m spans that they are encoded from.
    documents: (m,) int64, ascending, the number of the document each is in.
    labels: (m,) uint64, their spans' labels as numbers of spaCy's string store.
    n_documents: How many documents there are, those without mentions included.
    vectors: (m, width) float32, prepared for comparing (see ``Similarity.prepare``); None before
        they are encoded.
    """

    records: Sequence[MentionRecord]
    inputs: SpanInputs
    documents: np.ndarray
    labels: np.ndarray
    n_documents: int
    vectors: Optional[np.ndarray] = None

    def __len__(self) -> int:
        return len(self.records)

    @property
    def encoded(self) -> np.ndarray:
        """The vectors; an error where the batch is not encoded."""
        if self.vectors is None:
            raise ValueError("The mentions are not encoded yet.")
        return self.vectors

    @property
    def has_vector(self) -> np.ndarray:
        """(m,) bool, the mentions that the encoder can read. The vectors of others are zeros."""
        return has_vector(self.encoded)

    @property
    def keys(self) -> List[MentionKey]:
        """Keys that identify the mentions."""
        return [record.key for record in self.records]

    @property
    def normalized(self) -> List[str]:
        """The normalized surface form of each mention."""
        return [record.normalized for record in self.records]

    @classmethod
    def empty(cls) -> "MentionBatch":
        none = np.zeros(0, dtype=np.int64)
        return cls([], SpanInputs.empty(), none, none.astype(np.uint64), 0)

    @classmethod
    def concat(cls, parts: Sequence["MentionBatch"]) -> "MentionBatch":
        """Concatenate batches, numbering their documents on."""
        if not parts:
            return cls.empty()
        starts = np.cumsum([0, *(part.n_documents for part in parts)])
        return cls(
            [record for part in parts for record in part.records],
            SpanInputs.concat([part.inputs for part in parts]),
            np.concatenate([part.documents + start for part, start in zip(parts, starts)]),
            np.concatenate([part.labels for part in parts]),
            int(starts[-1]),
            concat_or_none([part.vectors for part in parts]),
        )

    def take(self, rows: np.ndarray) -> "MentionBatch":
        """The mentions at ``rows``, in that order. Documents keep their numbers."""
        return MentionBatch(
            [self.records[row] for row in np.asarray(rows).tolist()],
            self.inputs.take(rows),
            self.documents[rows],
            self.labels[rows],
            self.n_documents,
            None if self.vectors is None else self.vectors[rows],
        )

    def with_vectors(self, vectors: np.ndarray) -> "MentionBatch":
        """The batch with its vectors, (m, width) float32, prepared."""
        return replace(self, vectors=vectors)
