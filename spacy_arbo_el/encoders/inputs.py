"""Passages of word pieces and the spans in them, which are the input of encoders."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ..base.arrays import int_array, offsets_of, ragged_ranges
from ..base.errors import Errors

# Characters of a text that an error shows.
SHOWN = 40
# The arrays of spans, with their types.
_FIELDS = {
    "ids": np.int32,
    "offsets": np.int64,
    "passage": np.int64,
    "first": np.int32,
    "last": np.int32,
    "marker": np.int32,
}


@dataclass(frozen=True)
class SpanInputs:
    """``n`` spans in ``p`` passages, in flat arrays. An encoder gives one vector for each span.

    The window around a mention is a passage with one span, the text of an entity is a passage with
    one span, a document is a passage with many.

    ids: (total,) int32, the word pieces of all passages one after the other, special tokens
        included.
    offsets: (p + 1,) int64, passage ``i`` is ``ids[offsets[i]:offsets[i + 1]]``.
    passage: (n,) int64, the passage that each span is in.
    first, last: (n,) int32, the first and last (inclusive) word piece of the span, counted from
        the start of its passage: of the mention in its window, of the title in the text of an
        entity. A span that can't be read, because the vocabulary knows none of it, is empty: its
        last is smaller than its first. Its vector is zeros.
    marker: (n,) int32, the position of the span's marker token: ``[START]`` before a mention,
        ``[TITLE]`` after a title. The same as ``first`` where there is no marker.
    """

    ids: np.ndarray
    offsets: np.ndarray
    passage: np.ndarray
    first: np.ndarray
    last: np.ndarray
    marker: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    @property
    def passages(self) -> int:
        """The number of passages."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """(p,) int64, the word pieces of each passage."""
        return np.diff(self.offsets)

    @property
    def readable(self) -> np.ndarray:
        """(n,) bool, the spans that an encoder can read. The others get zeros for a vector."""
        return self.last >= self.first

    @classmethod
    def one_span_each(
        cls,
        ids: np.ndarray,
        offsets: np.ndarray,
        first: np.ndarray,
        last: np.ndarray,
        marker: np.ndarray,
    ) -> "SpanInputs":
        """Passages with one span each. The arrays are those of ``SpanInputs``."""
        places = (array.astype(np.int32) for array in (first, last, marker))
        return cls(ids, offsets, np.arange(len(first), dtype=np.int64), *places)

    @classmethod
    def empty(cls) -> "SpanInputs":
        none = np.zeros(0, dtype=np.int32)
        return cls.one_span_each(none, np.zeros(1, dtype=np.int64), none, none, none)

    @classmethod
    def concat(cls, batches: Iterable["SpanInputs"]) -> "SpanInputs":
        """Passages and spans one after the other, in order."""
        batches = list(batches)
        if not batches:
            return cls.empty()
        starts = offsets_of([batch.passages for batch in batches])
        return cls(
            np.concatenate([batch.ids for batch in batches]),
            offsets_of(np.concatenate([batch.lengths for batch in batches])),
            np.concatenate(
                [batch.passage + start for batch, start in zip(batches, starts)]
            ),
            np.concatenate([batch.first for batch in batches]),
            np.concatenate([batch.last for batch in batches]),
            np.concatenate([batch.marker for batch in batches]),
        )

    def take(self, spans: np.ndarray) -> "SpanInputs":
        """Some spans in that order, with each of their passages once, as they first occur."""
        spans = np.asarray(spans, dtype=np.int64)
        used, first, place = np.unique(
            self.passage[spans], return_index=True, return_inverse=True
        )
        order = np.argsort(first, kind="stable")
        number = np.empty(len(used), dtype=np.int64)
        number[order] = np.arange(len(used))
        passages = used[order]
        lengths = self.lengths[passages]
        return SpanInputs(
            self.ids[ragged_ranges(self.offsets[:-1][passages], lengths)],
            offsets_of(lengths),
            number[place],
            self.first[spans],
            self.last[spans],
            self.marker[spans],
        )

    def spans_in(self, passages: np.ndarray) -> np.ndarray:
        """Numbers of the spans in some passages. Passage by passage in the order given."""
        order = np.argsort(self.passage, kind="stable")
        bounds = offsets_of(np.bincount(self.passage, minlength=self.passages))
        return order[ragged_ranges(bounds[:-1][passages], np.diff(bounds)[passages])]

    def padded(self, fill: int) -> np.ndarray:
        """Pad passages on the right with ``fill``: (p, longest) int64."""
        lengths = self.lengths
        batch = np.full(
            (self.passages, int(lengths.max(initial=0))), fill, dtype=np.int64
        )
        batch[np.arange(batch.shape[1]) < lengths[:, None]] = self.ids
        return batch

    def keys(self) -> list[tuple[bytes, bytes]]:
        """Keys of spans, equal for equal vectors."""
        bounds = zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist())
        passages = [self.ids[start:end].tobytes() for start, end in bounds]
        places = np.stack([self.first, self.last, self.marker], axis=1)
        return [
            (passages[p], place.tobytes())
            for p, place in zip(self.passage.tolist(), places)
        ]

    def to_dict(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in _FIELDS}

    @classmethod
    def from_dict(cls, arrays: dict[str, np.ndarray]) -> "SpanInputs":
        return cls(**{name: arrays[name] for name in _FIELDS})


def length_batches(
    lengths: np.ndarray, max_tokens: int, max_padding: int
) -> list[np.ndarray]:
    """Batch passages by length, with at most ``max_tokens`` word pieces, padding included.

    lengths: (p,) word pieces of each passage.
    max_padding: Word pieces of padding in a batch. With 0, passages of different length share no
        batch, and a vector does not depend on what it is batched with.
    RETURNS: At least one passage each, longest first, which shows at once if memory suffices.
    """
    lengths = np.asarray(lengths)
    order = np.argsort(-lengths, kind="stable")
    batches: list[np.ndarray] = []
    while len(order):
        width = int(lengths[order[0]])
        longest = order[: max(max_tokens // max(width, 1), 1)]
        padding = np.cumsum(width - lengths[longest])
        count = np.searchsorted(padding, max_padding, side="right")
        batches.append(order[:count])
        order = order[count:]
    return batches


def assemble(
    flat: np.ndarray, *segments: tuple[np.ndarray | int, np.ndarray | int]
) -> tuple[np.ndarray, np.ndarray]:
    """Passages of ragged pieces of ``flat``, one segment behind the other.

    segments: The start and the length of each, (p,) int64, or a number for all passages.
    RETURNS: ids (total,) int32 and offsets (p + 1,) int64.
    """
    columns = np.broadcast_arrays(*chain.from_iterable(segments))
    starts = np.stack(columns[::2], axis=1)
    lengths = np.stack(columns[1::2], axis=1)
    ids = flat[ragged_ranges(starts.ravel(), lengths.ravel())]
    return ids.astype(np.int32), offsets_of(lengths.sum(axis=1))


def check_offsets(
    texts: Sequence[str], text_of: np.ndarray, offsets: np.ndarray
) -> None:
    """Raise ValueError for a mention outside of its text; as in ``read_mentions``."""
    lengths = int_array([len(text) for text in texts])[text_of]
    start, end = offsets.reshape(-1, 2).T
    wrong = np.flatnonzero((start < 0) | (start > end) | (end > lengths))
    if len(wrong):
        at = wrong[0]
        raise Errors.E208(
            text=texts[text_of[at]][:SHOWN],
            start=start[at],
            end=end[at],
            length=lengths[at],
        )


def check_inputs(inputs: SpanInputs) -> SpanInputs:
    """Raise ValueError for arrays of another type or shape, or with places that are not there."""
    for name, dtype in _FIELDS.items():
        array = getattr(inputs, name)
        if (
            not isinstance(array, np.ndarray)
            or array.dtype != dtype
            or array.ndim != 1
        ):
            raise ValueError(
                f"{name} is no list of numbers of type {np.dtype(dtype).name}"
            )
    offsets = inputs.offsets
    passage = inputs.passage
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(inputs.ids):
        raise ValueError("the passages don't cover the word pieces")
    # Compared and not subtracted: the differences of large numbers may wrap round.
    if (offsets[1:] < offsets[:-1]).any():
        raise ValueError("a passage ends before it starts")
    if len(inputs.ids) and inputs.ids.min() < 0:
        raise ValueError("a word piece has a number below 0")
    if not len(passage) == len(inputs.first) == len(inputs.last) == len(inputs.marker):
        raise ValueError("the spans have places of different numbers")
    if len(passage) and (passage.min() < 0 or passage.max() >= inputs.passages):
        raise ValueError("a span is in a passage that does not exist")
    # A span that can't be read has no word piece: it may be at the end of its passage.
    ends = inputs.lengths[passage] + ~inputs.readable
    for name, least in (("first", 0), ("last", -1), ("marker", 0)):
        place = getattr(inputs, name)
        if (place < least).any() or (place >= ends).any():
            raise ValueError(f"the {name} word piece of a span is outside its passage")
    if (inputs.last < inputs.first - 1).any():
        raise ValueError("a span ends before it starts")
    return inputs


class EncodingCache:
    """Vectors and scores by what they were computed from, for unchanged weights.

    ``LinkingStages`` with such an object link the same mentions with many thresholds, curves and
    rankers, and encode each mention and each context once.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[Hashable, Hashable], np.ndarray] = {}

    def of(
        self,
        kind: Hashable,
        keys: Sequence[Hashable],
        compute: Callable[[list[int]], np.ndarray],
    ) -> np.ndarray:
        """The results of a kind, and of the model that gives it, for keys: (n, ...).

        compute: Gives the results for the keys at some places, those that are new, in their order.
        """
        named = [(kind, key) for key in keys]
        new = {
            name: place for place, name in enumerate(named) if name not in self._rows
        }
        if new or not named:
            results = compute(list(new.values()))
            if not named:
                return results
            self._rows.update(zip(new, results))
        return np.stack([self._rows[name] for name in named])

    def mentions(
        self, inputs: SpanInputs, encode: Callable[[SpanInputs], np.ndarray]
    ) -> np.ndarray:
        """Spans of mentions -> (n, width) float32, as ``encode`` gives them."""
        return self.of(
            "mentions",
            inputs.keys(),
            lambda new: encode(inputs.take(int_array(new))),
        )
