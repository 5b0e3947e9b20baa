"""What is known of the mentions of new entities, a row each; rows come a batch at a time."""

from typing import Callable, Dict, List, NamedTuple

import numpy as np

from ..encoders.sequences import Sequences
from ..retrieval.exemplars import Key
from .found import Member, Near


class Unlinked(NamedTuple):
    """m mentions that no entity fits, in the order of their documents.

    keys: What identifies each. members: Each in words. forms: What is read for each.
    near: For each the likeliest entities of the knowledge base, best first.
    windows: Their m sequences. vectors: (m, width) float32, raw as the encoder gave them.
    """

    keys: List[Key]
    members: List[Member]
    forms: List[str]
    near: List[List[Near]]
    windows: Sequences
    vectors: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def concat(cls, parts: List["Unlinked"]) -> "Unlinked":
        """One after the other, in order."""
        return cls(
            [key for part in parts for key in part.keys],
            [member for part in parts for member in part.members],
            [form for part in parts for form in part.forms],
            [near for part in parts for near in part.near],
            Sequences.concat([part.windows for part in parts]),
            np.concatenate([part.vectors for part in parts]),
        )


class Rows:
    """Unlinked mentions that grow. Vectors lie in an array that doubles, windows wait in parts, so
    that a document costs what it brings, not what is there."""

    def __init__(self) -> None:
        self.keys: List[Key] = []
        self.members: List[Member] = []
        self.forms: List[str] = []
        self.near: List[List[Near]] = []
        self._parts: List[Sequences] = []
        self._vectors = np.zeros((0, 0), dtype=np.float32)
        self._row: Dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def row(self, key: Key) -> int:
        """Where a mention stands, -1 where it isn't there."""
        return self._row.get(key, -1)

    @property
    def vectors(self) -> np.ndarray:
        """(n, width) float32, raw."""
        return self._vectors[: len(self)]

    @property
    def windows(self) -> Sequences:
        """The n sequences that mentions are encoded from."""
        if len(self._parts) != 1:
            self._parts = [Sequences.concat(self._parts) if self._parts else Sequences.empty()]
        return self._parts[0]

    def extend(self, mentions: Unlinked) -> None:
        """Add mentions, none of which is there yet."""
        start, end = len(self), len(self) + len(mentions)
        if end > len(self._vectors):
            grown = np.empty((max(end, 2 * start), mentions.vectors.shape[1]), dtype=np.float32)
            grown[:start] = self.vectors if start else 0
            self._vectors = grown
        self._vectors[start:end] = mentions.vectors
        self._row.update(zip(mentions.keys, range(start, end)))
        self.keys.extend(mentions.keys)
        self.members.extend(mentions.members)
        self.forms.extend(mentions.forms)
        self.near.extend(mentions.near)
        self._parts.append(mentions.windows)

    def take(self, rows: np.ndarray) -> Unlinked:
        """The mentions at ``rows``, in that order."""
        at = rows.tolist()
        return Unlinked(
            [self.keys[row] for row in at],
            [self.members[row] for row in at],
            [self.forms[row] for row in at],
            [self.near[row] for row in at],
            self.windows.take(rows),
            self.vectors[rows],
        )

    def keep(self, rows: np.ndarray) -> None:
        """Take out all mentions but those at ``rows``; these move up."""
        kept = self.take(rows)
        self.__init__()  # type: ignore[misc]
        self.extend(kept)

    def encode(self, encode: Callable[[Sequences], np.ndarray]) -> None:
        """Encode all mentions anew."""
        if len(self):
            self._vectors = encode(self.windows)
