"""How alike strings are: letters, words and numbers beside vectors.

A dual encoder blurs what only letters tell apart (C6 and C7 deficiency). TF-IDF over character
n-grams, as BioSyn has it beside its dense vectors, does not. Numbers are of more weight than their
few letters: multiple endocrine neoplasia type 2 is not type 1, and neither is the one without.
"""

import re
from collections import defaultdict
from typing import Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Sequence

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from spacy.util import registry

from ..encoders.sequences import offsets_of, ragged_ranges

# Not "x", which is a chromosome more often than a ten.
ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7"}
ROMAN.update({"viii": "8", "ix": "9"})
_WORD = re.compile(r"[^\W\d_]+|\d+")

# Mentions compared at a time, to bound memory.
BLOCK = 256

BuildLexicon = Callable[[Sequence[Sequence[str]], Sequence[Sequence[str]]], "Lexicon"]


class Likeness(NamedTuple):
    """How alike mentions are to the most similar name, and surface form, of entities.

    Each (2, m, c) float32: to names, then to surface forms; 0 for no string.
    letters: Cosine of TF-IDF over character n-grams.
    words: The share of common words in all words of the two (Jaccard).
    numbers: 1 where the two have the very same numbers, or none at all.
    """

    letters: np.ndarray
    words: np.ndarray
    numbers: np.ndarray


class Lexicon:
    """The strings that entities go by: their names, and the surface forms of their exemplars.

    names, forms: For each entity its strings; either may be empty.
    smallest, largest: Lengths of the n-grams, which do not cross words.
    """

    def __init__(
        self,
        names: Sequence[Sequence[str]],
        forms: Sequence[Sequence[str]],
        smallest: int,
        largest: int,
    ):
        self._owners: Dict[str, List[int]] = defaultdict(list)
        groups = [[_distinct(strings) for strings in kind] for kind in (names, forms)]
        self._reader = _Reader(
            [string for kind in groups for strings in kind for string in strings],
            smallest,
            largest,
        )
        self.names, self.forms = (_Strings(kind, self._reader) for kind in groups)
        for kind in reversed(groups):  # surface forms before names: they were seen to be used
            for entity, strings in enumerate(kind):
                for string in strings:
                    self._owners[string].append(entity)

    def owners(self, strings: Sequence[str], count: int) -> np.ndarray:
        """Entities that go by just these strings: (m, count) int64, -1 for none."""
        found = np.full((len(strings), count), -1, dtype=np.int64)
        for i, string in enumerate(strings):
            entities = list(dict.fromkeys(self._owners.get(string.lower(), ())))[:count]
            found[i, : len(entities)] = entities
        return found

    def likeness(self, strings: Sequence[str], entities: np.ndarray) -> Likeness:
        """How alike mentions are to the strings of entities.

        strings: m mentions. entities: (m, c) int64, -1 for none.
        """
        found = np.zeros((len(Likeness._fields), 2, *entities.shape), dtype=np.float32)
        for start in range(0, len(strings), BLOCK):
            part = slice(start, start + BLOCK)
            mentions = self._reader.read([string.lower() for string in strings[part]])
            for kind, known in enumerate((self.names, self.forms)):
                found[:, kind, part] = known.most_alike(mentions, entities[part])
        return Likeness(*found)


class _Read(NamedTuple):
    """Strings as rows: TF-IDF of n-grams, words (0 or 1), their count, a code for the numbers."""

    letters: csr_matrix
    words: csr_matrix
    size: np.ndarray
    numbers: np.ndarray


class _Reader:
    """Reads strings by the n-grams, words and numbers of a corpus of strings."""

    def __init__(self, corpus: Sequence[str], smallest: int, largest: int):
        self._ngrams = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(smallest, largest), sublinear_tf=True, dtype=np.float32
        )
        self._words = CountVectorizer(analyzer=words_of, binary=True, dtype=np.float32)
        # Without a single word there is no vocabulary; then nothing is like anything.
        self._ngrams.fit(corpus if any(map(str.strip, corpus)) else ["?"])
        self._words.fit([*corpus, "1"])
        self._codes: Dict[FrozenSet[str], int] = {}
        for string in corpus:
            self._codes.setdefault(numbers_of(string), len(self._codes))

    def read(self, strings: Sequence[str]) -> _Read:
        if not strings:
            none = csr_matrix((0, 1), dtype=np.float32)
            return _Read(none, none, np.zeros(0, np.float32), np.zeros(0, np.int64))
        count = [len(set(words_of(string))) for string in strings]
        numbers = [self._codes.get(numbers_of(string), -1) for string in strings]
        return _Read(
            self._ngrams.transform(strings),
            self._words.transform(strings),
            np.array(count, dtype=np.float32),
            np.array(numbers, dtype=np.int64),
        )


class _Strings:
    """Strings of entities: those of entity e are rows offsets[e] to offsets[e + 1]."""

    def __init__(self, groups: Sequence[Sequence[str]], reader: _Reader):
        lengths = np.array([len(strings) for strings in groups], dtype=np.int64)
        self.offsets = offsets_of(lengths)
        self.known = reader.read([string for strings in groups for string in strings])

    def most_alike(self, mentions: _Read, entities: np.ndarray) -> np.ndarray:
        """(3, m, c) float32: letters, words, numbers."""
        best = np.zeros((len(Likeness._fields), entities.size), dtype=np.float32)
        flat = entities.ravel()
        count = np.where(flat >= 0, np.diff(self.offsets)[flat], 0)
        some = np.flatnonzero(count)
        if len(some):
            rows = ragged_ranges(self.offsets[:-1][flat[some]], count[some])
            mention = np.repeat(some // entities.shape[1], count[some])
            borders = offsets_of(count[some])[:-1]
            for view, alike in enumerate(self._alike(rows, mentions, mention)):
                best[view, some] = np.maximum.reduceat(alike, borders)
        return best.reshape(-1, *entities.shape)

    def _alike(self, rows: np.ndarray, mentions: _Read, mention: np.ndarray):
        known = self.known
        yield _products(known.letters[rows], mentions.letters[mention])
        common = _products(known.words[rows], mentions.words[mention])
        yield common / np.maximum(known.size[rows] + mentions.size[mention] - common, 1)
        yield (known.numbers[rows] == mentions.numbers[mention]).astype(np.float32)


def _products(left: csr_matrix, right: csr_matrix) -> np.ndarray:
    return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float32)[:, 0]


def words_of(string: str) -> List[str]:
    """The words and numbers of a string, lower-cased; Roman numerals as numbers, up to IX."""
    return [ROMAN.get(word, word) for word in _WORD.findall(string.lower())]


def numbers_of(string: str) -> FrozenSet[str]:
    """The numbers of a string."""
    return frozenset(word for word in words_of(string) if word.isdigit())


def _distinct(strings: Iterable[str]) -> List[str]:
    return list(dict.fromkeys(string.lower() for string in strings))


@registry.misc("spacy-arbo-el.CharacterNgrams.v1")
def character_ngrams(smallest: int = 1, largest: int = 3) -> BuildLexicon:
    """Compare the strings of mentions, names and exemplars: character n-grams, words, numbers."""

    def build(names: Sequence[Sequence[str]], forms: Sequence[Sequence[str]]) -> Lexicon:
        return Lexicon(names, forms, smallest, largest)

    return build
