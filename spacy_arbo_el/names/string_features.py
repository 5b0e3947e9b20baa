"""Tables of strings' n-grams, words and numbers. Strings can be added to and taken from them.

Words are compared in the singular: ``neoplasms`` is the word ``neoplasm``.

N-grams are those of scikit-learn's ``char_wb``: of words with a space on both sides, never across
words. They are weighted by TF-IDF, with the weights of names of many kinds, and words that such
names have for each other count as nearly the same: what two strings have in common depends on no
list. ``experiments/name_statistics.py`` makes both files.
"""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from spacy.util import minibatch

from ..base.arrays import AppendOnly, int_array, mix, offsets_of, take_or
from .comparison import N_FIELDS, Interchanged, StringFeatures, compare
from .words import NEGATING, numbers_among, words_of

T = TypeVar("T", bound=Hashable)
# Strings with the same n-grams have a cosine similarity of 1, but for rounding.
SAME_STRING = 0.9999
# The lengths of the shortest and the longest n-grams, which do not cross words. Weights were fitted
# with these.
NGRAMS = (1, 3)
# Strings whose n-grams are in memory at a time.
BLOCK = 2048
FACTOR = np.uint64(0x9E3779B97F4A7C15)
# An n-gram is numbered by its hash.
N_NGRAMS = 1 << 18
WEIGHTS = Path(__file__).with_name("ngram_weights.npz")
# Two words, and how many entities have names that differ in these alone.
INTERCHANGED = Path(__file__).with_name("interchanged_words.tsv")


class NgramCounts(NamedTuple):
    """Counts of each n-gram in ``n`` strings.

    bounds: (n + 1,) int64, the n-grams of string i are at ``bounds[i]`` to ``bounds[i + 1]``.
    ngrams: Numbers of n-grams below ``N_NGRAMS``, ascending and each once per string.
    counts: How often the string has them.
    """

    bounds: np.ndarray
    ngrams: np.ndarray
    counts: np.ndarray


def count_ngrams(strings: Sequence[str], shortest: int, longest: int) -> NgramCounts:
    """The n-grams of strings.

    shortest, longest: The lengths of n-grams, in characters; no word with its two spaces is shorter
        than 3.
    """
    words_of = [string.split() for string in strings]
    words = [word for group in words_of for word in group]
    n_words = int_array([len(group) for group in words_of])
    lengths = int_array([len(word) + 2 for word in words])
    joined = "".join(f" {word} " for word in words)
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4").astype(
        np.uint64
    )
    starts = offsets_of(lengths)[:-1]
    word_of = np.repeat(np.arange(len(words)), lengths)
    letters_left = (starts + lengths)[word_of] - np.arange(len(codes))
    values = (codes + np.uint64(1)) * FACTOR

    places = np.arange(len(codes))
    hashes = np.zeros(len(codes), dtype=np.uint64)
    ngram_places: list[np.ndarray] = [places[:0]]
    ngram_hashes: list[np.ndarray] = [hashes[:0]]
    for length in range(1, longest + 1):
        is_long = letters_left[places] >= length
        places = places[is_long]
        hashes = mix(hashes[is_long] + values[places + length - 1])
        if length >= shortest:
            ngram_places.append(places)
            ngram_hashes.append(hashes)
    owners = np.repeat(np.arange(len(strings)), n_words)[
        word_of[np.concatenate(ngram_places)]
    ]
    numbers = (np.concatenate(ngram_hashes) % N_NGRAMS).astype(np.int64)
    pairs, counts = np.unique(owners * N_NGRAMS + numbers, return_counts=True)
    bounds = np.searchsorted(pairs, np.arange(len(strings) + 1) * N_NGRAMS)
    return NgramCounts(bounds, pairs % N_NGRAMS, counts)


@lru_cache(maxsize=1)
def ngram_weights() -> np.ndarray:
    """Inverse document frequency of each n-gram: (N_NGRAMS,) float32."""
    with np.load(WEIGHTS) as arrays:
        return arrays["weights"].astype(np.float32)


def _tf_idf(counted: NgramCounts) -> np.ndarray:
    """The weight of each n-gram in its string, float32. Those of a string have the length 1."""
    weights = (1 + np.log(counted.counts)) * ngram_weights()[counted.ngrams]
    sizes = np.diff(counted.bounds)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    lengths = np.sqrt(np.bincount(owners, weights**2, minlength=len(sizes)))
    return (weights / lengths[owners]).astype(np.float32)


class FeatureReader:
    """Reads features of strings, and numbers words and sets of numbers as they come.

    interchanged: The words that names of one entity have for each other.
    """

    def __init__(self) -> None:
        self.words: dict[str, int] = {}
        self._numbers: dict[frozenset[str], int] = {}
        self.interchanged = self._interchanged()

    def _interchanged(self) -> Interchanged:
        rows = [
            line.split("\t") for line in INTERCHANGED.read_text("utf8").splitlines()
        ]
        first, right = (
            int_array([_number_in(self.words, row[column]) for row in rows])
            for column in (0, 1)
        )
        keys = np.concatenate([(first << 32) + right, (right << 32) + first])
        counts = np.array([row[2] for row in rows] * 2, dtype=np.float32)
        order = np.argsort(keys, kind="stable")
        return Interchanged(keys[order], 1 / (1 + counts[order]))

    def read(self, strings: Sequence[str], *, add: bool = False) -> StringFeatures:
        """The features of strings.

        add: Whether new words and numbers are numbered, for strings that others are compared with.
        """
        counted = count_ngrams(strings, *NGRAMS)
        groups = [list(dict.fromkeys(words_of(string))) for string in strings]
        words = [word for group in groups for word in group]
        lengths = int_array([len(word) for word in words])
        letters = np.frombuffer(
            "".join(words).encode("utf-32-le", "surrogatepass"), "<i4"
        )
        negates = np.repeat(
            np.array([word in NEGATING for word in words], dtype=bool), lengths
        )
        numbers = [
            _number_in(self._numbers, numbers_among(group), add) for group in groups
        ]
        return StringFeatures(
            counted.bounds,
            counted.ngrams.astype(np.int32),
            _tf_idf(counted),
            offsets_of([len(group) for group in groups]),
            np.array(
                [_number_in(self.words, word, add) for word in words], dtype=np.int32
            ),
            np.array(numbers, dtype=np.int32),
            offsets_of(lengths),
            np.where(negates, -letters, letters).astype(np.int32),
        )


def _number_in(numbers: dict[T, int], value: T, add: bool = True) -> int:
    return numbers.setdefault(value, len(numbers)) if add else numbers.get(value, -1)


# Which values each bounds are of.
VALUES_OF = {
    "ngram_bounds": "ngrams",
    "word_bounds": "words",
    "letter_bounds": "letters",
}


class StringTable:
    """The strings of one kind by entity: names, or surface forms of exemplars.

    reader: Reads their features.
    """

    def __init__(self, reader: FeatureReader):
        self._reader = reader
        self._of: dict[int, list[str]] = {}
        # Whether each entity's strings are known.
        self._has = np.zeros(0, dtype=bool)
        # The first row of each entity's strings, and how many they are.
        self._first = int_array()
        self._count = int_array()
        # The arrays of the features of all rows so far.
        self._rows = {
            name: AppendOnly.of(array)
            for name, array in reader.read([])._asdict().items()
        }

    def __len__(self) -> int:
        return self._rows["numbers"].length

    def has(self, entities: np.ndarray) -> np.ndarray:
        """(e,) bool, whether the strings of each entity are known. There may be none."""
        has_strings = self._has
        return take_or(
            has_strings, np.where(entities < len(has_strings), entities, -1), False
        )

    def of(self, entity: int) -> list[str]:
        """The strings of an entity, in order; may be empty."""
        return self._of.get(entity, [])

    def forget(self, entities: np.ndarray) -> None:
        """Remove the strings of entities, which are then unknown."""
        with_strings = entities[self.has(entities)]
        self.replace(with_strings, [[] for _ in with_strings])
        self._has[with_strings] = False

    def replace(self, entities: np.ndarray, groups: Sequence[list[str]]) -> None:
        """Replace the strings of entities.

        entities: (e,) int64, each once.
        groups: The strings of each of them, each once.
        """
        self._of.update(zip(entities.tolist(), groups))
        room = np.zeros(
            max(int(entities.max(initial=-1)) + 1 - len(self._count), 0), np.int64
        )
        self._first, self._count = (
            np.append(self._first, room),
            np.append(self._count, room),
        )
        counts = int_array([len(strings) for strings in groups])
        self._first[entities] = len(self) + offsets_of(counts)[:-1]
        self._count[entities] = counts
        for block in minibatch(chain.from_iterable(groups), BLOCK):
            self._add(self._reader.read(block, add=True))
        # Last: another thread may compare with them from now on.
        has = np.append(
            self._has, np.zeros(len(self._count) - len(self._has), dtype=bool)
        )
        has[entities] = True
        self._has = has

    def _add(self, features: StringFeatures) -> None:
        added = features._asdict()
        for name, values in VALUES_OF.items():
            added[name] = added[name][1:] + self._rows[values].length
        self._rows = {
            name: rows.with_rows(added[name]) for name, rows in self._rows.items()
        }

    def compared(
        self,
        mentions: StringFeatures,
        entities: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compare mentions with the strings of their candidates.

        entities: (m, c) int64, -1 for none.
        RETURNS: (N_FIELDS, m, c) float32, see ``comparison.py``. And (m, c) int64, the
            number of the most similar string by n-grams among those of the entity; 0 where none has
            an n-gram in common.
        """
        best = np.zeros((N_FIELDS, *entities.shape), dtype=np.float32)
        nearest = np.zeros(entities.shape, dtype=np.int64)
        compare(
            best,
            nearest,
            entities,
            N_NGRAMS,
            len(self._reader.words),
            mentions,
            StringFeatures(**{name: rows.rows for name, rows in self._rows.items()}),
            self._first,
            self._count,
            self._reader.interchanged,
        )
        return best, nearest
