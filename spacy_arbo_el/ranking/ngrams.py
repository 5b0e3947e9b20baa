"""The character n-grams of many strings at once.

They are those of scikit-learn's ``char_wb``: of words with a space on both sides, never across
words. A word that is shorter than the shortest n-gram is one n-gram itself.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..base.arrays import mix, offsets_of

# Strings whose n-grams are in memory at a time.
BLOCK = 8192
FACTOR = np.uint64(0x9E3779B97F4A7C15)


class NgramCounts(NamedTuple):
    """Counts of each n-gram in ``n`` strings.

    keys: (k,) uint64, the keys of all n-grams, ascending, each once. A key is a hash of 64 bits.
    bounds: (n + 1,) int64, the n-grams of string i are at ``bounds[i]`` to ``bounds[i + 1]``.
    ngrams: Places in ``keys``, ascending and each once per string.
    counts: How often the string has them.
    """

    keys: np.ndarray
    bounds: np.ndarray
    ngrams: np.ndarray
    counts: np.ndarray


def count_ngrams(strings: Sequence[str], shortest: int, longest: int) -> NgramCounts:
    """The n-grams of strings.

    shortest, longest: The lengths of n-grams, in characters.
    """
    words_of = [string.split() for string in strings]
    words = [word for group in words_of for word in group]
    n_words = np.array([len(group) for group in words_of], dtype=np.int64)
    lengths = np.array([len(word) + 2 for word in words], dtype=np.int64)
    joined = "".join(f" {word} " for word in words)
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    starts, word_of = offsets_of(lengths)[:-1], np.repeat(np.arange(len(words)), lengths)
    left = (starts + lengths)[word_of] - np.arange(len(codes))
    values = (codes + np.uint64(1)) * FACTOR

    places, keys = np.arange(len(codes)), np.zeros(len(codes), dtype=np.uint64)
    found_places: list[np.ndarray] = [places[:0]]
    found_keys: list[np.ndarray] = [keys[:0]]
    for length in range(1, longest + 1):
        is_long = left[places] >= length
        places, keys = places[is_long], keys[is_long]
        keys = mix(keys + values[places + length - 1])
        whole = np.ones(len(places), dtype=bool)
        if length < shortest:
            # Only words of this length, from their beginning to their end.
            whole = (left[places] == length) & (starts[word_of[places]] == places)
        found_places.append(places[whole])
        found_keys.append(keys[whole])
    owners = np.repeat(np.arange(len(strings)), n_words)[word_of[np.concatenate(found_places)]]
    return _counted(owners, np.concatenate(found_keys), len(strings))


def _counted(owners: np.ndarray, keys: np.ndarray, n_strings: int) -> NgramCounts:
    """Hold n-grams of strings.

    owners: (g,) int64, the string of each n-gram.
    keys: (g,) uint64.
    """
    distinct, place = np.unique(keys, return_inverse=True)
    width = max(len(distinct), 1)
    pairs, counts = np.unique(owners * width + place.reshape(-1), return_counts=True)
    bounds = np.searchsorted(pairs, np.arange(n_strings + 1) * width)
    return NgramCounts(distinct, bounds, pairs % width, counts)
