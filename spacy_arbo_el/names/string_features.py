"""Tables of strings' n-grams, words and numbers. Strings can be added to and taken from them.

Words are compared in the singular: ``neoplasms`` is the word ``neoplasm``.

N-grams are those of scikit-learn's ``char_wb``: of words with a space on both sides, never across
words. A word that is shorter than the shortest n-gram is one n-gram itself. They are weighted by
TF-IDF. The weights depend on many strings, so a string is stored as its counts, and weights are
computed when strings are compared: an edit costs as much as the strings that it changes.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

import numpy as np
from spacy.util import minibatch

from ..base.arrays import AppendOnly, int_array, mix, offsets_of, places_of, take_or
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
    keys = np.zeros(len(codes), dtype=np.uint64)
    found_places: list[np.ndarray] = [places[:0]]
    found_keys: list[np.ndarray] = [keys[:0]]
    for length in range(1, longest + 1):
        is_long = letters_left[places] >= length
        places = places[is_long]
        keys = keys[is_long]
        keys = mix(keys + values[places + length - 1])
        is_ngram = np.ones(len(places), dtype=bool)
        if length < shortest:
            # Only words of this length, from their beginning to their end.
            is_ngram = (letters_left[places] == length) & (
                starts[word_of[places]] == places
            )
        found_places.append(places[is_ngram])
        found_keys.append(keys[is_ngram])
    owners = np.repeat(np.arange(len(strings)), n_words)[
        word_of[np.concatenate(found_places)]
    ]
    return _counted(owners, np.concatenate(found_keys), len(strings))


def _counted(owners: np.ndarray, keys: np.ndarray, n_strings: int) -> NgramCounts:
    """Hold n-grams of strings.

    owners: (g,) int64, the string of each n-gram.
    keys: (g,) uint64.
    """
    distinct, place = np.unique(keys, return_inverse=True)
    width = max(len(distinct), 1)
    pairs, counts = np.unique(owners * width + place, return_counts=True)
    bounds = np.searchsorted(pairs, np.arange(n_strings + 1) * width)
    return NgramCounts(distinct, bounds, pairs % width, counts)


class FeatureReader:
    """Reads features of strings, counting strings per n-gram.

    Not all strings that are compared need to be counted. An n-gram that no counted string has is
    as if it were in no string.
    """

    def __init__(self) -> None:
        # The keys of n-grams, ascending, and their numbers. One attribute, since other threads read
        # mentions while one adds strings.
        self._known = np.zeros(0, dtype=np.uint64), int_array()
        # The number of each word.
        self.words: dict[str, int] = {}
        self._numbers: dict[frozenset[str], int] = {}
        self._n_strings = 0
        # In how many counted strings each n-gram occurs.
        self._frequency = AppendOnly.of(int_array())

    def read(self, strings: Sequence[str], *, add: bool = False) -> StringFeatures:
        """The features of strings.

        add: Whether new n-grams, words and numbers are numbered, for strings that others are
            compared with. Otherwise n-grams that were never added or counted are left out.
        """
        counted = count_ngrams(strings, *NGRAMS)
        numbers = (self._numbered if add else self._numbers_of)(counted.keys)[
            counted.ngrams
        ]
        is_known = numbers >= 0
        groups = [list(dict.fromkeys(words_of(string))) for string in strings]
        words = [word for group in groups for word in group]
        lengths = int_array([len(word) for word in words])
        letters = np.frombuffer(
            "".join(words).encode("utf-32-le", "surrogatepass"), "<i4"
        )
        negates = np.repeat(
            np.array([word in NEGATING for word in words], dtype=bool), lengths
        )

        def number_in(numbers: dict[T, int], value: T) -> int:
            return (
                numbers.setdefault(value, len(numbers))
                if add
                else numbers.get(value, -1)
            )

        return StringFeatures(
            offsets_of(is_known)[counted.bounds],
            numbers[is_known].astype(np.int32),
            1 + np.log(counted.counts[is_known].astype(np.float32)),
            offsets_of([len(group) for group in groups]),
            np.array([number_in(self.words, word) for word in words], dtype=np.int32),
            np.array(
                [number_in(self._numbers, numbers_among(g)) for g in groups],
                dtype=np.int32,
            ),
            offsets_of(lengths),
            np.where(negates, -letters, letters).astype(np.int32),
        )

    def count(self, strings: Sequence[str], sign: int = 1) -> None:
        """Count in how many of these strings each n-gram occurs.

        sign: -1 to forget strings that were counted.
        """
        for block in minibatch(strings, BLOCK):
            counted = count_ngrams(block, *NGRAMS)
            ngrams = self._numbered(counted.keys)[counted.ngrams]
            frequency = self._frequency.rows
            frequency += sign * np.bincount(ngrams, minlength=len(frequency))
        self._n_strings += sign * len(strings)

    def _numbered(self, keys: np.ndarray) -> np.ndarray:
        """(k,) int64, the numbers of n-grams. New ones for those that had none."""
        numbers = self._numbers_of(keys)
        is_new = numbers < 0
        sorted_keys, known_numbers = self._known
        first = len(sorted_keys)
        numbers[is_new] = np.arange(first, first + is_new.sum())
        self._frequency = self._frequency.with_rows(
            np.zeros(int(is_new.sum()), dtype=np.int64)
        )
        at = np.searchsorted(sorted_keys, keys[is_new])
        self._known = (
            np.insert(sorted_keys, at, keys[is_new]),
            np.insert(known_numbers, at, numbers[is_new]),
        )
        return numbers

    def _numbers_of(self, keys: np.ndarray) -> np.ndarray:
        """Numbers of n-grams: (k,) int64, -1 for none."""
        sorted_keys, numbers = self._known
        return take_or(numbers, places_of(sorted_keys, keys), -1)

    def weights(self) -> np.ndarray:
        """Inverse document frequency per n-gram: (n-grams,) float32. 0 where no counted string
        has one.
        """
        frequency = self._frequency.rows
        weights = np.log((1 + self._n_strings) / (1 + frequency)) + 1
        return np.where(frequency > 0, weights, 0).astype(np.float32)

    def numbers_of_words(self, words: Sequence[str]) -> np.ndarray:
        """(w,) int64, the numbers of words, new ones if needed."""
        numbers = [self.words.setdefault(word, len(self.words)) for word in words]
        return int_array(numbers)


class InterchangedWords:
    """Counts of pairs of words that names of one entity have for each other.

    reader: Numbers the words.
    """

    def __init__(self, reader: FeatureReader):
        self._reader = reader
        # In how many entities each pair, in alphabetical order, is found.
        self._counts: Counter[tuple[str, str]] = Counter()
        self._table: Interchanged | None = None

    def count(self, names: Sequence[str], sign: int = 1) -> None:
        """Count the pairs in the names of one entity.

        sign: -1 to forget names that were counted.
        """
        pairs = set(interchanged_in(names))
        for pair in pairs:
            self._counts[pair] += sign
            if not self._counts[pair]:
                del self._counts[pair]
        if pairs:
            self._table = None

    def table(self) -> Interchanged:
        """The table that strings are compared with."""
        table = self._table
        if table is None:
            pairs = list(self._counts)
            words = list(chain.from_iterable(pairs))
            first, right = self._reader.numbers_of_words(words).reshape(-1, 2).T
            keys = np.concatenate([(first << 32) + right, (right << 32) + first])
            counts = np.array(list(self._counts.values()) * 2, dtype=np.float32)
            order = np.argsort(keys, kind="stable")
            table = self._table = Interchanged(keys[order], 1 / (1 + counts[order]))
        return table


def interchanged_in(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The pairs of words in which two of these names differ, in alphabetical order.

    The names have all other words in common, at least one. Their order does not count. Numbers and
    words that negate never stand for others.
    """
    interchangeable = defaultdict(set)
    for words in {frozenset(words_of(name)) for name in names}:
        if len(words) < 2:
            continue
        for word in words:
            if not word.isdigit() and word not in NEGATING:
                interchangeable[words - {word}].add(word)
    for words_there in interchangeable.values():
        ordered = sorted(words_there)
        for place, word in enumerate(ordered):
            yield from ((word, second_word) for second_word in ordered[place + 1 :])


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
        # The features of all rows so far, and their arrays, to which rows are added.
        self._features = reader.read([])
        self._rows = {
            n: AppendOnly.of(array) for n, array in self._features._asdict().items()
        }

    def __len__(self) -> int:
        return len(self._features.numbers)

    @property
    def garbage(self) -> float:
        """Share of rows that no entity uses any more."""
        return 1 - self._count.sum() / len(self) if len(self) else 0.0

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
        self._features = StringFeatures(
            **{name: rows.rows for name, rows in self._rows.items()}
        )

    def compared(
        self,
        mentions: StringFeatures,
        entities: np.ndarray,
        weights: np.ndarray,
        interchanged: Interchanged,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compare mentions with the strings of their candidates.

        entities: (m, c) int64, -1 for none.
        weights: See ``FeatureReader.weights``.
        interchanged: See ``InterchangedWords``.
        RETURNS: (N_FIELDS, m, c) float32, the fields of ``StringSimilarity``. And (m, c) int64, the
            number of the most similar string by n-grams among those of the entity; 0 where none has
            an n-gram in common.
        """
        best = np.zeros((N_FIELDS, *entities.shape), dtype=np.float32)
        nearest = np.zeros(entities.shape, dtype=np.int64)
        compare(
            best,
            nearest,
            entities,
            weights,
            len(self._reader.words),
            mentions,
            self._features,
            self._first,
            self._count,
            interchanged,
        )
        return best, nearest
