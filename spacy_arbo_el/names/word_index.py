"""An index of names by their words, for names that a text writes in another way.

A word of a text is one of a name where both are the same in the singular and without accents, or
where their letters are nearly the same. All words count alike: a name without one of its words is
another name, and the most common word of a list, such as "disease" or "cell", is often what says
of which kind a thing is.
"""

import re
from array import array
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..base.arrays import int_array, minus_ones, offsets_of
from ..base.compiling import jit_helper, numba_jit
from .comparison import MIN_MISSPELLED, is_one_edit
from .derivation import (
    PLURALS,
    QUALITIES,
    RELATED,
    interchanged_words,
    with_endings,
)
from .folding import WORD as WORD_CHAR
from .folding import kind_of, visible
from .spellings import INVISIBLE, compatible, without_accents
from .string_features import N_NGRAMS, count_ngrams
from .words import ROMAN, american, singular

# Words and numbers with their places; the ending of the genitive is no part of a word.
WORD = re.compile(
    rf"([^\W\d_]+(?:[{INVISIBLE}]+[^\W\d_]+)*)(?:['\u2019\u02bc\uff07][sS](?![^\W_]))?|\d+"
)
# How similar a misspelled word is: with one letter more, less or another, or two exchanged.
MISSPELLED = 0.94
# Those of words that a list has for each other, of an adjective and its noun, see ``derivation``,
# and of a Latin plural.
INTERCHANGED = 0.93
NEAR = 0.95
SIMILARITIES = ((QUALITIES, INTERCHANGED), (RELATED, NEAR), (PLURALS, 0.98))
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
    """A word or number as it is compared: plain letters, lower case, singular, American."""
    plain = (
        word.lower()
        if word.isascii()
        else without_accents(visible(compatible(word))).lower()
    )
    return ROMAN.get(plain) or american(singular(plain))


def words_of_name(name: str, stop_words: Container[str]) -> list[str]:
    """The distinct words of a name by which it is found."""
    words = [match[1] or match[0] for match in WORD.finditer(name)]
    telling_words = (
        word for word in words if not is_stop_word(word, name, stop_words)
    )
    return list(dict.fromkeys(map(normal_word, telling_words)))


def words_to_index(name: str, stop_words: Container[str]) -> list[str]:
    """The words of a name by which windows are compared with it.

    None where only one of several is left: "The Actors" is no name of an actor, nor "Radio Radio"
    of a radio. Such a name is found in its own spelling only.
    """
    words = words_of_name(name, stop_words)
    return words if len(words) != 1 or len(WORD.findall(name)) == 1 else []


def is_stop_word(word: str, text: str, stop_words: Container[str]) -> bool:
    """Return whether a word is a stop word: "it", but not "IT" in a text in lower case."""
    return word.lower() in stop_words and not (word.isupper() and not text.isupper())


@dataclass(frozen=True, eq=False)
class SimilarWords:
    """Searches the words that are nearly the same as another one.

    words: The w words that are searched.
    numbers: (w,) int64, their numbers.
    sizes: (w,) int64, how many pairs of letters each has.
    bounds, rows: The words with pair i of letters are ``rows[bounds[i]:bounds[i + 1]]``.
    """

    words: list[str]
    numbers: np.ndarray
    sizes: np.ndarray
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
        counts = np.bincount(pairs.ngrams, minlength=N_NGRAMS)
        return cls(
            searched,
            int_array(long),
            np.diff(pairs.bounds),
            offsets_of(counts),
            owners[order].astype(np.int32),
        )

    def search(self, word: str) -> list[int]:
        """The numbers of the words that this one is a misspelling of, the most similar first."""
        pairs = count_ngrams([word], 2, 2).ngrams
        rows = np.concatenate(
            [self.rows[self.bounds[pair] : self.bounds[pair + 1]] for pair in pairs]
        )
        shared = np.bincount(rows, minlength=len(self.sizes))
        dice = 2 * shared / (self.sizes + len(pairs))
        similar = np.flatnonzero(dice >= ALIKE)
        best = similar[np.argsort(-dice[similar], kind="stable")][:MOST_ALIKE]
        return [
            int(self.numbers[row])
            for row in best
            if is_one_edit(word, self.words[row])
        ]


def may_be_misspelled(word: str) -> bool:
    """Return whether a word is long enough to be recognized with another letter.

    Scripts without spaces have runs of words in the place of words.
    """
    return (
        len(word) >= MIN_MISSPELLED
        and word.isalpha()
        and kind_of(word[0]) == WORD_CHAR
    )


class WordWindows(NamedTuple):
    """Windows of units; a unit is a word, or the words that an abbreviation stands for.

    bounds: (n + 1,) int64, the units of window i are ``units[bounds[i]:bounds[i + 1]]``.
    units: Numbers of units, int64.
    word_bounds: (u + 1,) int64, likewise the words of names that a unit stands for.
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


class Postings(NamedTuple):
    """Lists of numbers: list i is ``values[bounds[i]:bounds[i + 1]]``."""

    bounds: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class WordIndex:
    """Names by their words.

    numbers: The number of each word.
    names: The names with each word.
    words: The words of each name.
    similar: Searches words that are nearly the same.
    general: Words that most names have, see ``GENERAL``.
    interchanged: For a word those that stand for it, see ``interchanged_words``.
    """

    numbers: dict[str, int]
    names: Postings
    words: Postings
    similar: SimilarWords
    general: frozenset[str]
    interchanged: Mapping[str, Sequence[str]]
    _kept: dict[str, list[tuple[int, float]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        names: Iterable[str],
        stop_words: Container[str],
        entities: Iterable[Sequence[str]] = (),
    ) -> "WordIndex":
        """Index names.

        stop_words: Words that are not looked at, in lower case.
        entities: The names of each entity.
        """
        interchanged: dict[str, list[str]] = {}
        for word, other in interchanged_words(entities):
            interchanged.setdefault(normal_word(word), []).append(normal_word(other))
        numbers: dict[str, int] = {}
        words = array("i")
        counts: list[int] = []
        for name in names:
            of_name = words_to_index(name, stop_words)
            words.extend([numbers.setdefault(word, len(numbers)) for word in of_name])
            counts.append(len(of_name))
        word_of = np.array(words, dtype=np.int32)
        bounds = offsets_of(counts)
        name_of = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        frequency = np.bincount(word_of, minlength=len(numbers))
        by_word = name_of[np.argsort(word_of, kind="stable")]
        most = max(GENERAL * len(counts), GENERAL * MIN_NAMES)
        general = [
            word for word, count in zip(numbers, frequency.tolist()) if count > most
        ]
        return cls(
            numbers,
            Postings(offsets_of(frequency), by_word),
            Postings(bounds, word_of),
            SimilarWords.of(list(numbers)),
            frozenset(general),
            interchanged,
        )

    def matches(self, word: str) -> list[tuple[int, float]]:
        """The words of names that a normalized word may stand for, each with the similarity."""
        matches = self._kept.get(word)
        if matches is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            matches = self._kept[word] = list(self._search(word).items())
        return matches

    def _search(self, word: str) -> dict[int, float]:
        forms = dict.fromkeys(self.interchanged.get(word, ()), INTERCHANGED)
        for endings, similarity in SIMILARITIES:
            forms.update(dict.fromkeys(with_endings(word, endings), similarity))
        forms[word] = 1.0
        matches = {
            self.numbers[form]: forms[form] for form in forms if form in self.numbers
        }
        if not matches and may_be_misspelled(word):
            matches = dict.fromkeys(self.similar.search(word), MISSPELLED)
        return matches

    def nearest(
        self, windows: WordWindows, least: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The most similar name of each window, among those with its first and its last word.

        least: Names with a smaller similarity may be missed.
        RETURNS: (n,) int64 numbers of names, -1 for none; (n,) float32 cosine similarity.
        """
        count = len(windows.bounds) - 1
        name = minus_ones(count)
        similarity = np.zeros(count, dtype=np.float32)
        _nearest(name, similarity, least, windows, self.names, self.words)
        return name, similarity


@jit_helper
def _similarity(  # pragma: no cover - compiled
    units: np.ndarray,
    size: int,
    windows: WordWindows,
    of_name: np.ndarray,
) -> float:
    """The similarity of a window to a name; 0 where the name lacks its first or its last unit."""
    dot = np.float32(0.0)
    is_counted = np.zeros(len(of_name), dtype=np.bool_)
    for place in range(len(units)):
        unit = units[place]
        has_unit = False
        for i in range(windows.word_bounds[unit], windows.word_bounds[unit + 1]):
            for k in range(len(of_name)):
                if of_name[k] == windows.words[i]:
                    has_unit = True
                    # A word that the window has twice says nothing more.
                    if not is_counted[k]:
                        is_counted[k] = True
                        dot += windows.similarities[i]
        if not has_unit and (place == 0 or place == len(units) - 1):
            return 0.0
    return dot / np.sqrt(np.float32(size * len(of_name)))


@numba_jit(interpret=False)
def _nearest(  # pragma: no cover - compiled
    best_name: np.ndarray,
    best_similarity: np.ndarray,
    least: float,
    windows: WordWindows,
    names: Postings,
    words: Postings,
) -> None:
    """Fill in the nearest name of each window, see ``WordIndex.nearest``.

    A name with a similarity of ``least`` has all words of a window but for a share of
    1 - least ** 2 (a bound on prefixes, Bayardo et al. 2007). So only the names with one of its
    rarest words are compared.
    """
    seen = np.full(len(words.bounds) - 1, -1, dtype=np.int64)
    frequency = np.zeros(len(windows.sizes), dtype=np.int64)
    for unit in range(len(windows.sizes)):
        for i in range(windows.word_bounds[unit], windows.word_bounds[unit + 1]):
            word = windows.words[i]
            frequency[unit] += names.bounds[word + 1] - names.bounds[word]
    for window in range(len(windows.bounds) - 1):
        units = windows.units[windows.bounds[window] : windows.bounds[window + 1]]
        size = windows.sizes[units].sum()
        weight_left = size
        for place in np.argsort(frequency[units]):
            if weight_left < least * least * size - ROUNDING:
                break
            unit = units[place]
            weight_left -= windows.sizes[unit]
            for i in range(windows.word_bounds[unit], windows.word_bounds[unit + 1]):
                word = windows.words[i]
                for name in names.values[names.bounds[word] : names.bounds[word + 1]]:
                    length = words.bounds[name + 1] - words.bounds[name]
                    # A name with many more words is no nearer than the share of those in common.
                    if (
                        seen[name] == window
                        or length * least * least > size + ROUNDING
                    ):
                        continue
                    seen[name] = window
                    of_name = words.values[words.bounds[name] : words.bounds[name + 1]]
                    similarity = _similarity(units, size, windows, of_name)
                    # Equal but for rounding: the first name counts.
                    lead = similarity - best_similarity[window]
                    if similarity > 0.0 and (
                        lead > ROUNDING
                        or (lead > -ROUNDING and name < best_name[window])
                    ):
                        best_name[window] = name
                        best_similarity[window] = similarity
