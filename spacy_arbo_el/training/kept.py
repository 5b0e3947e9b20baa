"""Hard negatives that rounds of mining have found, and that are kept for good (DEER, §4.3)."""

from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays import offsets_of, ragged_ranges


def _none() -> np.ndarray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Rounds:
    """The rounds of a training, and the pairs of mentions and texts that they have found.

    number: The present round: how often all texts and mentions have been encoded again.
    mined: The last round that pairs were sought in.
    mentions, texts: (p,) int64, the pairs, each once, by mention.
    """

    number: int = 0
    mined: int = 0
    mentions: np.ndarray = field(default_factory=_none)
    texts: np.ndarray = field(default_factory=_none)

    def next(self) -> "Rounds":
        """The next round, with the same pairs."""
        return replace(self, number=self.number + 1)

    def with_pairs(self, mentions: np.ndarray, texts: np.ndarray) -> "Rounds":
        """The present round with the pairs that it has found, beside those of earlier ones."""
        pairs = np.stack(
            [np.concatenate([self.mentions, mentions]), np.concatenate([self.texts, texts])]
        )
        return replace(self._with(pairs), mined=self.number)

    def renumbered(self, mentions: np.ndarray, texts: np.ndarray) -> "Rounds":
        """The same for other numbers of mentions and texts.

        mentions, texts: For each new number the one that it had here, -1 for none.
        """
        pairs = np.stack([_new(self.mentions, mentions), _new(self.texts, texts)])
        return self._with(pairs[:, (pairs >= 0).all(axis=0)])

    def _with(self, pairs: np.ndarray) -> "Rounds":
        """The same round with other pairs, (2, p)."""
        mentions, texts = np.unique(pairs, axis=1)
        return replace(self, mentions=mentions, texts=texts)

    def texts_of(self, mentions: np.ndarray) -> np.ndarray:
        """The texts that were found for mentions (b,): (b, k) int64, -1 for none."""
        first, last = (np.searchsorted(self.mentions, mentions, side) for side in ("left", "right"))
        counts = last - first
        table = np.full((len(mentions), int(counts.max(initial=0))), -1, dtype=np.int64)
        row = np.repeat(np.arange(len(mentions)), counts)
        column = np.arange(len(row)) - np.repeat(offsets_of(counts)[:-1], counts)
        table[row, column] = self.texts[ragged_ranges(first, counts)]
        return table


def _new(values: np.ndarray, old_numbers: np.ndarray) -> np.ndarray:
    """The new number of each value, -1 for none. old_numbers: As in ``Rounds.renumbered``."""
    size = int(max(values.max(initial=-1), old_numbers.max(initial=-1))) + 1
    new = np.full(size, -1, dtype=np.int64)
    kept = np.flatnonzero(old_numbers >= 0)
    new[old_numbers[kept]] = kept
    return new[values]
