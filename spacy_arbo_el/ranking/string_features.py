"""Tables of strings' n-grams, words and numbers. Strings can be added to and taken from them.

Words are compared in the singular: ``neoplasms`` is the word ``neoplasm``.

N-grams are weighted by TF-IDF. The weights depend on many strings, so
a string is stored as its counts, and weights are computed when strings are compared: an edit costs
as much as the strings
that it changes.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from ..base.arrays import AppendOnly, offsets_of, take_or
from ..base.compiling import numba_jit
from ..base.words import NEGATING, numbers_among, words_of
from .differences import compare_words
from .ngrams import BLOCK, NgramCounts, count_ngrams

T = TypeVar("T", bound=Hashable)
# Strings with the same n-grams have a cosine similarity of 1, but for rounding.
SAME_STRING = 0.9999


class StringFeatures(NamedTuple):
    """The features of ``n`` strings.

    ngram_bounds: (n + 1,) int64, the n-grams of string i are ``ngrams[bounds[i]:bounds[i + 1]]``.
    ngrams: Numbers of n-grams, int32, each once per string.
    counts: 1 + the logarithm of how often the n-gram occurs in the string, float32.
    word_bounds: (n + 1,) int64, likewise for words.
    words: Numbers of words, int32, each once per string; -1 for words that no string had.
    numbers: (n,) int32, equal for strings with the same numbers in them; -1 for numbers that no
        string had.
    letter_bounds: (words + 1,) int64, the letters of word k are at ``[bounds[k]:bounds[k + 1]]``.
    letters: Code points of the letters, int32; negative in a word that negates.
    """

    ngram_bounds: np.ndarray
    ngrams: np.ndarray
    counts: np.ndarray
    word_bounds: np.ndarray
    words: np.ndarray
    numbers: np.ndarray
    letter_bounds: np.ndarray
    letters: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def concat(cls, parts: Sequence["StringFeatures"]) -> "StringFeatures":
        """The features of the strings of one or more parts, in order."""
        fields = dict(zip(cls._fields, map(list, zip(*parts))))
        for name in ("ngram_bounds", "word_bounds", "letter_bounds"):
            lengths = [np.diff(bounds) for bounds in fields[name]]
            fields[name] = [offsets_of(np.concatenate(lengths))]
        return cls(**{name: np.concatenate(arrays) for name, arrays in fields.items()})


class FeatureReader:
    """Reads features of strings, counting strings per n-gram.

    Not all strings that are compared need to be counted. An n-gram that no counted string has is
    as if it were in no string.

    min_ngram: The length of the shortest n-grams.
    max_ngram: The length of the longest n-grams. N-grams do not cross words.
    """

    def __init__(self, min_ngram: int, max_ngram: int):
        self._lengths = min_ngram, max_ngram
        # The keys of n-grams, ascending, and their numbers. One attribute, since other threads read
        # mentions while one adds strings.
        self._known = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        self._words: dict[str, int] = {}
        self._numbers: dict[frozenset[str], int] = {}
        self._n_strings = 0
        # In how many counted strings each n-gram occurs.
        self._frequency = AppendOnly.of(np.zeros(0, dtype=np.int64))

    def read(self, strings: Sequence[str]) -> StringFeatures:
        """The features of strings. N-grams that were never added or counted are left out."""
        counted = count_ngrams(strings, *self._lengths)
        words = [list(dict.fromkeys(words_of(string))) for string in strings]
        return _features(
            counted,
            self._numbers_of(counted.keys),
            words,
            [self._words.get(word, -1) for group in words for word in group],
            [self._numbers.get(numbers_among(group), -1) for group in words],
        )

    def add(self, strings: Sequence[str]) -> StringFeatures:
        """The features of strings that others are compared with."""
        return StringFeatures.concat([self._add(block) for block in _blocks(strings)])

    def _add(self, strings: Sequence[str]) -> StringFeatures:
        counted = count_ngrams(strings, *self._lengths)
        words = [list(dict.fromkeys(words_of(string))) for string in strings]
        return _features(
            counted,
            self._numbered(counted.keys),
            words,
            [_number_in(self._words, word) for group in words for word in group],
            [_number_in(self._numbers, numbers_among(group)) for group in words],
        )

    def count(self, strings: Sequence[str], sign: int = 1) -> None:
        """Count in how many of these strings each n-gram occurs.

        sign: -1 to forget strings that were counted.
        """
        for block in _blocks(strings):
            counted = count_ngrams(block, *self._lengths)
            ngrams = self._numbered(counted.keys)[counted.ngrams]
            frequency = self._frequency.rows
            frequency += sign * np.bincount(ngrams, minlength=len(frequency))
        self._n_strings += sign * len(strings)

    def _numbered(self, keys: np.ndarray) -> np.ndarray:
        """(k,) int64, the numbers of n-grams. New ones for those that had none."""
        numbers = self._numbers_of(keys)
        is_new = numbers < 0
        known, known_numbers = self._known
        first = len(known)
        numbers[is_new] = np.arange(first, first + is_new.sum())
        self._frequency = self._frequency.with_rows(np.zeros(int(is_new.sum()), dtype=np.int64))
        at = np.searchsorted(known, keys[is_new])
        self._known = (
            np.insert(known, at, keys[is_new]),
            np.insert(known_numbers, at, numbers[is_new]),
        )
        return numbers

    def _numbers_of(self, keys: np.ndarray) -> np.ndarray:
        """Numbers of n-grams: (k,) int64, -1 for none."""
        known, numbers = self._known
        if not len(known):
            return np.full(len(keys), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[at] == keys, numbers[at], -1)

    def weights(self) -> np.ndarray:
        """Inverse document frequency per n-gram: (n-grams,) float32. 0 where no counted string
        has one.
        """
        frequency = self._frequency.rows
        weights = np.log((1 + self._n_strings) / (1 + frequency)) + 1
        return np.where(frequency > 0, weights, 0).astype(np.float32)

    @property
    def n_words(self) -> int:
        """Number of numbered words."""
        return len(self._words)


def _blocks(strings: Sequence[str]) -> Iterator[Sequence[str]]:
    """Blocks of strings that fit in memory. At least one block, which may be empty."""
    return (strings[i : i + BLOCK] for i in range(0, max(len(strings), 1), BLOCK))


def _features(
    counted: NgramCounts,
    ngram_numbers: np.ndarray,
    words: Sequence[Sequence[str]],
    word_numbers: Sequence[int],
    numbers: Sequence[int],
) -> StringFeatures:
    """The features of strings.

    ngram_numbers: The number of each of ``counted.keys``, -1 to leave it out.
    words: The words of each string, each once.
    word_numbers: The number of each of these words.
    numbers: The number of each string's numbers.
    """
    flat = [word for group in words for word in group]
    lengths = np.array([len(word) for word in flat], dtype=np.int64)
    letters = np.frombuffer("".join(flat).encode("utf-32-le", "surrogatepass"), "<i4")
    negates = np.repeat(np.array([word in NEGATING for word in flat], dtype=bool), lengths)
    ngrams = ngram_numbers[counted.ngrams]
    is_known = ngrams >= 0
    return StringFeatures(
        offsets_of(is_known)[counted.bounds],
        ngrams[is_known].astype(np.int32),
        1 + np.log(counted.counts[is_known].astype(np.float32)),
        offsets_of(np.array([len(group) for group in words], dtype=np.int64)),
        np.array(word_numbers, dtype=np.int32),
        np.array(numbers, dtype=np.int32),
        offsets_of(lengths),
        np.where(negates, -letters, letters).astype(np.int32),
    )


def _number_in(numbers: dict[T, int], value: T) -> int:
    """Number of a value, a new one if needed."""
    return numbers.setdefault(value, len(numbers))


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
        self._first = np.zeros(0, dtype=np.int64)
        self._count = np.zeros(0, dtype=np.int64)
        # Where the n-grams and words of each row begin and end.
        self._ngram_spans = AppendOnly.of(np.zeros((0, 2), dtype=np.int64))
        self._word_spans = AppendOnly.of(np.zeros((0, 2), dtype=np.int64))
        self._ngrams = AppendOnly.of(np.zeros(0, dtype=np.int32))
        self._counts = AppendOnly.of(np.zeros(0, dtype=np.float32))
        self._words = AppendOnly.of(np.zeros(0, dtype=np.int32))
        self._letter_spans = AppendOnly.of(np.zeros((0, 2), dtype=np.int64))
        self._letters = AppendOnly.of(np.zeros(0, dtype=np.int32))
        self._numbers = AppendOnly.of(np.zeros(0, dtype=np.int32))

    def __len__(self) -> int:
        return self._numbers.length

    @property
    def garbage(self) -> float:
        """Share of rows that no entity uses any more."""
        rows = self._numbers.length
        return 1 - self._count.sum() / rows if rows else 0.0

    def has(self, entities: np.ndarray) -> np.ndarray:
        """(e,) bool, whether the strings of each entity are known. There may be none."""
        known = self._has
        return take_or(known, np.where(entities < len(known), entities, -1), False)

    def of(self, entity: int) -> list[str]:
        """The strings of an entity, in order; may be empty."""
        return self._of.get(entity, [])

    def forget(self, entities: np.ndarray) -> None:
        """Remove the strings of entities, which are then unknown."""
        known = entities[self.has(entities)]
        self.replace(known, [[] for _ in known])
        self._has[known] = False

    def replace(self, entities: np.ndarray, groups: Sequence[list[str]]) -> None:
        """Give entities other strings.

        entities: (e,) int64, each once.
        groups: The strings of each of them, each once.
        """
        self._of.update(zip(entities.tolist(), groups))
        self._make_room(int(entities.max(initial=-1)) + 1)
        counts = np.array([len(strings) for strings in groups], dtype=np.int64)
        self._first[entities] = self._numbers.length + offsets_of(counts)[:-1]
        self._count[entities] = counts
        features = self._reader.add([string for strings in groups for string in strings])
        self._ngram_spans = _with_spans(
            self._ngram_spans, features.ngram_bounds, self._ngrams.length
        )
        self._word_spans = _with_spans(self._word_spans, features.word_bounds, self._words.length)
        self._letter_spans = _with_spans(
            self._letter_spans, features.letter_bounds, self._letters.length
        )
        self._letters = self._letters.with_rows(features.letters)
        self._ngrams = self._ngrams.with_rows(features.ngrams)
        self._counts = self._counts.with_rows(features.counts)
        self._words = self._words.with_rows(features.words)
        self._numbers = self._numbers.with_rows(features.numbers)
        # Last: another thread may compare with them from now on.
        has = np.append(self._has, np.zeros(len(self._count) - len(self._has), dtype=bool))
        has[entities] = True
        self._has = has

    def _make_room(self, n_entities: int) -> None:
        zeros = np.zeros(max(n_entities - len(self._count), 0), dtype=np.int64)
        self._first = np.append(self._first, zeros)
        self._count = np.append(self._count, zeros)

    def compared(
        self, mentions: StringFeatures, entities: np.ndarray, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compare mentions with the strings of their candidates.

        entities: (m, c) int64, -1 for none.
        weights: See ``FeatureReader.weights``.
        RETURNS: (6, m, c) float32, the fields of ``StringSimilarity``. And (m, c) int64, the number
            of the most similar string by n-grams among those of the entity; 0 where none has an
            n-gram in common.
        """
        best = np.zeros((6, *entities.shape), dtype=np.float32)
        nearest = np.zeros(entities.shape, dtype=np.int64)
        spans = self._ngram_spans.rows, self._word_spans.rows, self._letter_spans.rows
        values = self._ngrams.rows, self._counts.rows, self._words.rows, self._numbers.rows
        table = self._first, self._count, *spans, *values, self._letters.rows
        _compare(best, nearest, entities, weights, self._reader.n_words, *table, *mentions)
        return best, nearest


def _with_spans(spans: AppendOnly, bounds: np.ndarray, start: int) -> AppendOnly:
    return spans.with_rows(start + np.stack([bounds[:-1], bounds[1:]], axis=1))


@numba_jit(interpret=False)
def _compare(  # pragma: no cover - compiled
    best: np.ndarray,
    nearest: np.ndarray,
    entities: np.ndarray,
    weights: np.ndarray,
    n_words: int,
    first: np.ndarray,
    count: np.ndarray,
    ngram_spans: np.ndarray,
    word_spans: np.ndarray,
    letter_spans: np.ndarray,
    ngrams: np.ndarray,
    counts: np.ndarray,
    words: np.ndarray,
    numbers: np.ndarray,
    letters: np.ndarray,
    ngram_bounds: np.ndarray,
    mention_ngrams: np.ndarray,
    mention_counts: np.ndarray,
    word_bounds: np.ndarray,
    mention_words: np.ndarray,
    mention_numbers: np.ndarray,
    letter_bounds: np.ndarray,
    mention_letters: np.ndarray,
) -> None:
    """Write mentions' best string similarities into ``best``. The strings are those of their
    candidates.

    The number of the string with the best n-grams is written into ``nearest``.
    """
    # The n-grams and words of the present mention.
    weighted = np.zeros(len(weights), dtype=np.float32)
    has_word = np.zeros(n_words, dtype=np.bool_)
    for i in range(entities.shape[0]):
        norm = np.float32(0)
        for k in range(ngram_bounds[i], ngram_bounds[i + 1]):
            weight = mention_counts[k] * weights[mention_ngrams[k]]
            weighted[mention_ngrams[k]] = weight
            norm += weight * weight
        own_words = word_bounds[i + 1] - word_bounds[i]
        for k in range(word_bounds[i], word_bounds[i + 1]):
            if mention_words[k] >= 0:
                has_word[mention_words[k]] = True
        for j in range(entities.shape[1]):
            entity = entities[i, j]
            if entity < 0 or entity >= len(count):
                continue
            for row in range(first[entity], first[entity] + count[entity]):
                product, square = np.float32(0), np.float32(0)
                for k in range(ngram_spans[row, 0], ngram_spans[row, 1]):
                    weight = counts[k] * weights[ngrams[k]]
                    product += weight * weighted[ngrams[k]]
                    square += weight * weight
                if product > 0:
                    cosine = product / np.sqrt(norm * square)
                    if cosine > best[0, i, j]:
                        best[0, i, j] = cosine
                        nearest[i, j] = row - first[entity]
                common = 0
                for k in range(word_spans[row, 0], word_spans[row, 1]):
                    common += has_word[words[k]]
                union = own_words + word_spans[row, 1] - word_spans[row, 0] - common
                best[1, i, j] = max(best[1, i, j], np.float32(common / max(union, 1)))
                if numbers[row] == mention_numbers[i]:
                    best[2, i, j] = 1
            if count[entity]:
                row = first[entity] + nearest[i, j]
                extra, missing, opposed = compare_words(
                    word_bounds[i],
                    word_bounds[i + 1],
                    mention_words,
                    letter_bounds,
                    mention_letters,
                    word_spans[row, 0],
                    word_spans[row, 1],
                    words,
                    letter_spans,
                    letters,
                )
                best[3, i, j], best[4, i, j], best[5, i, j] = extra, missing, opposed
        for k in range(ngram_bounds[i], ngram_bounds[i + 1]):
            weighted[mention_ngrams[k]] = 0
        for k in range(word_bounds[i], word_bounds[i + 1]):
            if mention_words[k] >= 0:
                has_word[mention_words[k]] = False
