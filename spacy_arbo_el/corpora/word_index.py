"""An index of names by their words, for names that a text writes in another way.

A word of a text is one of a name where both are the same in the singular and without accents, or
where their letters are nearly the same. All words count alike: a name without one of its words is
another name, and the most common word of a list, such as "disease" or "cell", is often what says
of which kind a thing is.
"""

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from os.path import commonprefix

import numpy as np

from ..base.arrays import offsets_of
from ..base.compiling import jit_helper, numba_jit
from ..base.spellings import compatible, without_accents
from ..base.words import ROMAN, singular
from ..ranking.string_features import count_ngrams
from .folding import WORD as WORD_CHAR
from .folding import kind_of

# Words and numbers with their places; the ending of the genitive is no part of a word.
WORD = re.compile(r"([^\W\d_]+)(?:['\u2019\u02bc\uff07][sS](?![^\W_]))?|\d+")
# Shorter words have no misspellings: another letter makes another word.
MIN_MISSPELLED = 6
# How similar a misspelled word is: with one letter more, less or another, or two exchanged.
MISSPELLED = 0.95
# Of words with such a share of their pairs of letters in common (Dice 1945), so many are compared.
ALIKE = 0.5
MOST_ALIKE = 8
# A word that such a share of the names has is their subject and names none of them: "cell" in a
# list of cells. A shorter list has too few names to tell.
GENERAL = 0.25
MIN_NAMES = 100
# Similarities that differ by less are equal.
ROUNDING = 1e-5
# Words of texts whose similar words are kept.
MOST_KEPT = 100_000


@lru_cache(maxsize=65536)
def normal_word(word: str) -> str:
    """A word or number as it is compared: plain letters, lower case, singular."""
    plain = word.lower() if word.isascii() else without_accents(compatible(word)).lower()
    return ROMAN.get(plain) or singular(plain)


def words_of_name(name: str, stop_words: Container[str]) -> list[str]:
    """The distinct words of a name by which it is found."""
    words = [match[1] or match[0] for match in WORD.finditer(name)]
    kept = (word for word in words if not is_stop_word(word, name, stop_words))
    return list(dict.fromkeys(map(normal_word, kept)))


def is_stop_word(word: str, text: str, stop_words: Container[str]) -> bool:
    """Return whether a word is a stop word: "it", but not "IT" in a text in lower case."""
    return word.lower() in stop_words and not (word.isupper() and not text.isupper())


@dataclass(frozen=True, eq=False)
class SimilarWords:
    """Searches the words that are nearly the same as another one.

    words: The w words that are searched.
    numbers: (w,) int64, their numbers.
    sizes: (w,) int64, how many pairs of letters each has.
    keys: (k,) uint64, the pairs of letters, ascending.
    bounds, rows: The words with each pair, as ``rows[bounds[i]:bounds[i + 1]]``.
    """

    words: list[str]
    numbers: np.ndarray
    sizes: np.ndarray
    keys: np.ndarray
    bounds: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(cls, words: Sequence[str]) -> "SimilarWords":
        """Index words by their pairs of letters, those that may be misspelled."""
        long = [number for number, word in enumerate(words) if may_be_misspelled(word)]
        searched = [words[number] for number in long]
        pairs = count_ngrams(searched, 2, 2)
        owners = np.repeat(np.arange(len(long)), np.diff(pairs.bounds))
        order = np.argsort(pairs.ngrams, kind="stable")
        counts = np.bincount(pairs.ngrams, minlength=len(pairs.keys))
        return cls(
            searched,
            np.array(long, dtype=np.int64),
            np.diff(pairs.bounds),
            pairs.keys,
            offsets_of(counts),
            owners[order].astype(np.int32),
        )

    def search(self, word: str) -> list[int]:
        """The numbers of the words that this one is a misspelling of, the most similar first."""
        pairs = count_ngrams([word], 2, 2).keys
        if not len(self.keys):
            return []
        at = np.minimum(np.searchsorted(self.keys, pairs), len(self.keys) - 1)
        at = at[self.keys[at] == pairs]
        if not len(at):
            return []
        rows = np.concatenate([self.rows[self.bounds[i] : self.bounds[i + 1]] for i in at])
        shared = np.bincount(rows, minlength=len(self.sizes))
        dice = 2 * shared / (self.sizes + len(pairs))
        found = np.flatnonzero(dice >= ALIKE)
        best = found[np.argsort(-dice[found], kind="stable")][:MOST_ALIKE]
        return [int(self.numbers[row]) for row in best if is_one_edit(word, self.words[row])]


def is_one_edit(one: str, other: str) -> bool:
    """Return whether two words differ by one letter more, less or another, or two exchanged.

    They have the same first letter.
    """
    if one[:1] != other[:1] or abs(len(one) - len(other)) > 1:
        return False
    same = len(commonprefix((one, other)))
    rest, other_rest = one[same:], other[same:]
    endings = [(rest[1:], other_rest[1:]), (rest[1:], other_rest), (rest, other_rest[1:])]
    if rest[:2] == other_rest[:2][::-1]:
        endings.append((rest[2:], other_rest[2:]))
    return any(a == b for a, b in endings)


def may_be_misspelled(word: str) -> bool:
    """Return whether a word is long enough to be recognized with another letter.

    Scripts without spaces have runs of words in the place of words.
    """
    return len(word) >= MIN_MISSPELLED and word.isalpha() and kind_of(word[0]) == WORD_CHAR


@dataclass(frozen=True, eq=False)
class WordIndex:
    """Names by their words.

    numbers: The number of each word.
    bounds, names: The names with each word, as ``names[bounds[i]:bounds[i + 1]]``, int32.
    norms: (n,) float32, the square root of how many words each name has.
    similar: Searches words that are nearly the same.
    general: Words that most names have, see ``GENERAL``.
    """

    numbers: dict[str, int]
    bounds: np.ndarray
    names: np.ndarray
    norms: np.ndarray
    similar: SimilarWords
    general: frozenset[str]
    _kept: dict[str, list[tuple[int, float]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, names: Iterable[str], stop_words: Container[str]) -> "WordIndex":
        """Index names. stop_words: Words that are not looked at, in lower case."""
        numbers: dict[str, int] = {}
        words: list[int] = []
        counts: list[int] = []
        for name in names:
            of_name = words_of_name(name, stop_words)
            words += [numbers.setdefault(word, len(numbers)) for word in of_name]
            counts.append(len(of_name))
        word_of = np.array(words, dtype=np.int64)
        name_of = np.repeat(np.arange(len(counts)), counts)
        frequency = np.bincount(word_of, minlength=len(numbers))
        order = np.argsort(word_of, kind="stable")
        most = max(GENERAL * len(counts), GENERAL * MIN_NAMES)
        general = [word for word, count in zip(numbers, frequency.tolist()) if count > most]
        return cls(
            numbers,
            offsets_of(frequency),
            name_of[order].astype(np.int32),
            np.sqrt(np.array(counts)).astype(np.float32),
            SimilarWords.of(list(numbers)),
            frozenset(general),
        )

    def matches(self, word: str) -> list[tuple[int, float]]:
        """The words of names that a normalized word may stand for, each with the similarity."""
        number = self.numbers.get(word)
        if number is not None:
            return [(number, 1.0)]
        if not may_be_misspelled(word):
            return []
        found = self._kept.get(word)
        if found is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            found = [(number, MISSPELLED) for number in self.similar.search(word)]
            self._kept[word] = found
        return found

    def nearest(self, windows: "WordWindows") -> tuple[np.ndarray, np.ndarray]:
        """The most similar name of each window, among those with its first and its last word.

        RETURNS: (n,) int64 numbers of names, -1 for none; (n,) float32 cosine similarity.
        """
        count = len(windows.bounds) - 1
        name = np.full(count, -1, dtype=np.int64)
        similarity = np.zeros(count, dtype=np.float32)
        posting = self.bounds, self.names, self.norms
        _nearest(name, similarity, *windows.arrays, *posting)
        return name, similarity


@dataclass(frozen=True, eq=False)
class WordWindows:
    """Windows of units; a unit is a word, or the words that an abbreviation stands for.

    bounds: (n + 1,) int64, the units of window i are ``units[bounds[i]:bounds[i + 1]]``.
    units: Numbers of units, int64.
    word_bounds: (u + 1,) int64, likewise the words of a unit.
    words: Numbers of words, int64.
    similarities: How similar each is to the unit, float32.
    sizes: (u,) int64, how many words each unit has.
    """

    bounds: np.ndarray
    units: np.ndarray
    word_bounds: np.ndarray
    words: np.ndarray
    similarities: np.ndarray
    sizes: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays in their order."""
        return (
            self.bounds,
            self.units,
            self.word_bounds,
            self.words,
            self.similarities,
            self.sizes,
        )


@jit_helper
def _is_new(  # pragma: no cover - compiled
    units: np.ndarray, word_bounds: np.ndarray, words: np.ndarray, word: int
) -> bool:
    """Return whether no unit has a word. One that a window has twice says nothing more."""
    for unit in units:
        for i in range(word_bounds[unit], word_bounds[unit + 1]):
            if words[i] == word:
                return False
    return True


@numba_jit(interpret=False)
def _nearest(  # pragma: no cover - compiled
    best_name: np.ndarray,
    best_similarity: np.ndarray,
    window_bounds: np.ndarray,
    units: np.ndarray,
    word_bounds: np.ndarray,
    words: np.ndarray,
    similarities: np.ndarray,
    sizes: np.ndarray,
    name_bounds: np.ndarray,
    names: np.ndarray,
    norms: np.ndarray,
) -> None:
    """Fill in the nearest name of each window, see ``WordIndex.nearest``."""
    dots = np.zeros(len(norms), dtype=np.float32)
    # Which ends of the window a name has: 1 for the first unit, 2 for the last.
    ends = np.zeros(len(norms), dtype=np.uint8)
    touched = np.empty(len(norms), dtype=np.int64)
    for window in range(len(window_bounds) - 1):
        first, behind = window_bounds[window], window_bounds[window + 1]
        count = 0
        norm = np.float32(0.0)
        for place in range(first, behind):
            unit = units[place]
            norm += sizes[unit]
            end = (1 if place == first else 0) + (2 if place == behind - 1 else 0)
            for i in range(word_bounds[unit], word_bounds[unit + 1]):
                is_new = _is_new(units[first:place], word_bounds, words, words[i])
                for at in range(name_bounds[words[i]], name_bounds[words[i] + 1]):
                    name = names[at]
                    if not is_new and dots[name] == 0.0:
                        continue
                    if dots[name] == 0.0:
                        touched[count] = name
                        count += 1
                    if is_new:
                        dots[name] += similarities[i]
                    ends[name] |= end
        for k in range(count):
            name = touched[k]
            similarity = dots[name] / (np.sqrt(norm) * norms[name])
            # Equal but for rounding: the first name counts.
            lead = similarity - best_similarity[window]
            better = lead > ROUNDING or (lead > -ROUNDING and name < best_name[window])
            if ends[name] == 3 and better:
                best_name[window] = name
                best_similarity[window] = similarity
            dots[name] = 0.0
            ends[name] = 0
