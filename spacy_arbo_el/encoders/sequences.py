"""Word-piece sequences, ready to be encoded: the form in which text travels to the encoders."""

from dataclasses import dataclass
from typing import Dict, Iterable, List, Sequence, Tuple

import numpy as np

_FIELDS = ("ids", "offsets", "first", "last", "anchor")


@dataclass(frozen=True)
class Sequences:
    """``n`` ragged word-piece sequences in five flat arrays.

    ids: (total,) int32, the word pieces of all sequences one after the other,
        special tokens included.
    offsets: (n + 1,) int64, sequence ``i`` is ``ids[offsets[i]:offsets[i + 1]]``.
    first, last: (n,) int32, the first and last (inclusive) position, within the
        sequence, of the name that the sequence is about: the mention in its
        window, the title in the text of an entity.
    anchor: (n,) int32, position of the marker token that belongs to the name:
        ``[START]`` before a mention, ``[TITLE]`` after a title.
    """

    ids: np.ndarray
    offsets: np.ndarray
    first: np.ndarray
    last: np.ndarray
    anchor: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    @property
    def lengths(self) -> np.ndarray:
        """(n,) int64, word pieces of each sequence."""
        return np.diff(self.offsets)

    def keys(self) -> List[Tuple[bytes, ...]]:
        """What identifies each sequence: equal for those that are encoded alike."""
        places = np.stack([self.first, self.last, self.anchor], axis=1)
        bounds = zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), places)
        return [(self.ids[start:end].tobytes(), place.tobytes()) for start, end, place in bounds]

    def take(self, indices: np.ndarray) -> "Sequences":
        """The sequences at ``indices``, in that order."""
        indices = np.asarray(indices, dtype=np.int64)
        lengths = self.lengths[indices]
        return Sequences(
            ids=self.ids[ragged_ranges(self.offsets[:-1][indices], lengths)],
            offsets=offsets_of(lengths),
            first=self.first[indices],
            last=self.last[indices],
            anchor=self.anchor[indices],
        )

    def padded(self, fill: int) -> np.ndarray:
        """(n, longest) int64, the sequences padded on the right with ``fill``."""
        lengths = self.lengths
        width = int(lengths.max(initial=0))
        batch = np.full((len(self), width), fill, dtype=np.int64)
        batch[np.arange(width) < lengths[:, None]] = self.ids
        return batch

    def to_dict(self) -> Dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in _FIELDS}

    @classmethod
    def from_dict(cls, arrays: Dict[str, np.ndarray]) -> "Sequences":
        return cls(**{name: arrays[name] for name in _FIELDS})

    @classmethod
    def empty(cls) -> "Sequences":
        none = np.zeros(0, dtype=np.int32)
        return cls(none, np.zeros(1, dtype=np.int64), none, none, none)

    @classmethod
    def concat(cls, parts: Iterable["Sequences"]) -> "Sequences":
        """One after the other, in order."""
        parts = list(parts)
        if not parts:
            return cls.empty()
        return cls(
            ids=np.concatenate([part.ids for part in parts]),
            offsets=offsets_of(np.concatenate([part.lengths for part in parts])),
            first=np.concatenate([part.first for part in parts]),
            last=np.concatenate([part.last for part in parts]),
            anchor=np.concatenate([part.anchor for part in parts]),
        )


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """(n,) lengths -> (n + 1,) int64 boundaries."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ragged_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """``concatenate([arange(s, s + l) for s, l in zip(starts, lengths)])`` without the loop."""
    lengths = np.asarray(lengths, dtype=np.int64)
    shifts = np.asarray(starts, dtype=np.int64) - offsets_of(lengths)[:-1]
    return np.arange(int(lengths.sum()), dtype=np.int64) + np.repeat(shifts, lengths)


def length_batches(lengths: np.ndarray, max_tokens: int, mixed: bool) -> List[np.ndarray]:
    """Indices in batches of at most ``max_tokens`` word pieces, padding included (at least one).

    mixed: Whether sequences of different length may share a batch, padded. Without padding, the
        vector of a sequence does not depend on what it is batched with.
    RETURNS: Longest first, so that the largest batch shows at once whether memory suffices.
    """
    lengths = np.asarray(lengths)
    order = np.argsort(-lengths, kind="stable")
    ends = np.flatnonzero(np.diff(lengths[order], append=-1)) + 1
    batches: List[np.ndarray] = []
    start = 0
    while start < len(order):
        width = max(int(lengths[order[start]]), 1)
        end = start + max(max_tokens // width, 1)
        if not mixed:
            end = min(end, int(ends[np.searchsorted(ends, start, side="right")]))
        batches.append(order[start:end])
        start = end
    return batches


def assemble(flat: np.ndarray, starts: Sequence[np.ndarray], lengths: Sequence[np.ndarray]):
    """Sequences put together from ragged pieces of ``flat``.

    starts, lengths: one (n,) array a segment; the segments of a sequence follow each
        other in the order given.
    RETURNS: ids (total,) int32 and offsets (n + 1,) int64.
    """
    starts_table = np.stack(starts, axis=1)
    lengths_table = np.stack(lengths, axis=1)
    ids = flat[ragged_ranges(starts_table.ravel(), lengths_table.ravel())]
    return ids.astype(np.int32), offsets_of(lengths_table.sum(axis=1))
