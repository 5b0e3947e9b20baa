"""What is known of the mentions of new entities, a row each; rows come a batch at a time."""

from typing import Callable, Dict, List, NamedTuple, Sequence

import numpy as np

from ..encoders.sequences import Sequences
from ..retrieval.exemplars import Key
from .found import Member, Near

# From vectors and what is read for mentions to what they are compared by.
MakeFeatures = Callable[[np.ndarray, Sequence[str]], np.ndarray]


class Unlinked(NamedTuple):
    """m mentions that no entity fits, in the order of their documents.

    keys: What identifies each. members: Each in words. forms: What is read for each.
    near: For each the likeliest entities of the knowledge base, best first.
    windows: Their m sequences. vectors: (m, width) float32, prepared for comparing.
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


class Growing:
    """Rows of numbers to which more come: the array behind them doubles when it is full."""

    def __init__(self) -> None:
        self._whole = np.zeros((0, 0), dtype=np.float32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def array(self) -> np.ndarray:
        """(n, width) float32."""
        return self._whole[: self._count]

    def extend(self, rows: np.ndarray) -> None:
        """Add rows (m, width), m > 0."""
        start, self._count = self._count, self._count + len(rows)
        if self._count > len(self._whole):
            grown = np.empty((max(self._count, 2 * start), rows.shape[1]), dtype=np.float32)
            if start:
                grown[:start] = self._whole[:start]
            self._whole = grown
        self._whole[start : self._count] = rows


class Rows:
    """Unlinked mentions that grow. Windows wait in parts, so that a document costs what it brings,
    not what is there."""

    def __init__(self) -> None:
        self.keys: List[Key] = []
        self.members: List[Member] = []
        self.forms: List[str] = []
        self.near: List[List[Near]] = []
        self._parts: List[Sequences] = []
        self._vectors = Growing()
        self._features, self._kind = Growing(), 0.0
        self._row: Dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def row(self, key: Key) -> int:
        """Where a mention stands, -1 where it isn't there."""
        return self._row.get(key, -1)

    @property
    def vectors(self) -> np.ndarray:
        """(n, width) float32, prepared."""
        return self._vectors.array

    @property
    def windows(self) -> Sequences:
        """The n sequences that mentions are encoded from."""
        if len(self._parts) != 1:
            self._parts = [Sequences.concat(self._parts) if self._parts else Sequences.empty()]
        return self._parts[0]

    def features(self, make: MakeFeatures, letters: float) -> np.ndarray:
        """What mentions are compared by: (n, width) float32. Only that of new ones is made.

        letters: What letters count for; with 0.0, vectors are all.
        """
        if not letters:
            return self.vectors
        if letters != self._kind:
            self._features, self._kind = Growing(), letters
        done = len(self._features)
        if done < len(self):
            self._features.extend(make(self.vectors[done:], self.forms[done:]))
        return self._features.array

    def extend(self, mentions: Unlinked) -> None:
        """Add mentions, none of which is there yet."""
        if not len(mentions):
            return
        self._row.update(zip(mentions.keys, range(len(self), len(self) + len(mentions))))
        self.keys.extend(mentions.keys)
        self.members.extend(mentions.members)
        self.forms.extend(mentions.forms)
        self.near.extend(mentions.near)
        self._parts.append(mentions.windows)
        self._vectors.extend(mentions.vectors)

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
        vectors = Growing()
        if len(self):
            vectors.extend(encode(self.windows))
        self._vectors, self._features = vectors, Growing()
