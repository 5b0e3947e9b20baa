"""The similarity of strings: n-grams, words and numbers, beside the similarity of vectors.

A dual encoder confuses what differs in a character (C6 and C7 deficiency). TF-IDF over character
n-grams, which BioSyn has beside its dense vectors, does not. Numbers have a feature of their own,
since they mean more than their few characters: multiple endocrine neoplasia type 2 is not type 1,
and neither is the one without a number.
"""

import re
from collections import defaultdict
from typing import Dict, FrozenSet, Iterable, Iterator, List, NamedTuple, Sequence

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from ..arrays import offsets_of, ragged_ranges

# Without "x", which is a chromosome more often than a ten.
ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7"}
ROMAN.update({"viii": "8", "ix": "9"})
_WORD = re.compile(r"[^\W\d_]+|\d+")

# Mentions that are compared at a time, to limit memory.
MENTIONS_PER_BLOCK = 256


class StringSimilarity(NamedTuple):
    """The similarity of mentions to the most similar string of their candidates.

    Each array is (2, m, c) float32: to names, then to surface forms of exemplars. It is 0 where
    there is no string.

    ngrams: Cosine similarity of TF-IDF vectors over character n-grams.
    words: The share of words in common (Jaccard).
    numbers: 1 where both have the same numbers, or none at all.
    """

    ngrams: np.ndarray
    words: np.ndarray
    numbers: np.ndarray


class StringIndex:
    """The names of entities, and the surface forms of their exemplars.

    names: The names of each entity; may be empty.
    surface_forms: The surface forms of each entity's exemplars; may be empty.
    min_ngram: The length of the shortest n-grams.
    max_ngram: The length of the longest n-grams. N-grams do not cross words.
    """

    def __init__(
        self,
        names: Sequence[Sequence[str]],
        surface_forms: Sequence[Sequence[str]],
        min_ngram: int,
        max_ngram: int,
    ):
        self._owners: Dict[str, List[int]] = defaultdict(list)
        kinds = [[_distinct(strings) for strings in kind] for kind in (names, surface_forms)]
        self._reader = _Reader(
            [string for kind in kinds for strings in kind for string in strings],
            min_ngram,
            max_ngram,
        )
        self._kinds = [_EntityStrings(kind, self._reader) for kind in kinds]
        for kind in reversed(kinds):  # surface forms first: their use is attested
            for entity, strings in enumerate(kind):
                for string in strings:
                    self._owners[string].append(entity)

    def owners(self, strings: Sequence[str], count: int) -> np.ndarray:
        """Entities with exactly these strings: (m, count) int64, -1 for none."""
        owners = np.full((len(strings), count), -1, dtype=np.int64)
        for i, string in enumerate(strings):
            entities = list(dict.fromkeys(self._owners.get(string.lower(), ())))[:count]
            owners[i, : len(entities)] = entities
        return owners

    def similarity(self, strings: Sequence[str], entities: np.ndarray) -> StringSimilarity:
        """The similarity of each mention to its candidates.

        strings: The surface forms of m mentions.
        entities: (m, c) int64, -1 for none.
        """
        views = np.zeros((len(StringSimilarity._fields), 2, *entities.shape), dtype=np.float32)
        for start in range(0, len(strings), MENTIONS_PER_BLOCK):
            part = slice(start, start + MENTIONS_PER_BLOCK)
            mentions = self._reader.read([string.lower() for string in strings[part]])
            for number, kind in enumerate(self._kinds):
                views[:, number, part] = kind.most_similar(mentions, entities[part])
        return StringSimilarity(*views)


class _Features(NamedTuple):
    """The features of ``n`` strings.

    ngrams: (n, n-grams) TF-IDF.
    words: (n, words), 1 for each word of a string.
    n_words: (n,) float32.
    numbers: (n,) int64, equal for strings with the same numbers; -1 for numbers that no string of
        the index has.
    """

    ngrams: csr_matrix
    words: csr_matrix
    n_words: np.ndarray
    numbers: np.ndarray


class _Reader:
    """Computes features of strings, by the n-grams, words and numbers of a corpus of strings."""

    def __init__(self, corpus: Sequence[str], min_ngram: int, max_ngram: int):
        self._ngrams = TfidfVectorizer(
            analyzer="char_wb",
            ngram_range=(min_ngram, max_ngram),
            sublinear_tf=True,
            dtype=np.float32,
        )
        self._words = CountVectorizer(analyzer=words_of, binary=True, dtype=np.float32)
        # A vocabulary can't be empty; with this one, all similarities are 0.
        self._ngrams.fit(corpus if any(map(str.strip, corpus)) else ["?"])
        self._words.fit([*corpus, "1"])
        self._codes: Dict[FrozenSet[str], int] = {}
        for string in corpus:
            self._codes.setdefault(numbers_of(string), len(self._codes))

    def read(self, strings: Sequence[str]) -> _Features:
        if not strings:
            none = csr_matrix((0, 1), dtype=np.float32)
            return _Features(none, none, np.zeros(0, np.float32), np.zeros(0, np.int64))
        n_words = [len(set(words_of(string))) for string in strings]
        numbers = [self._codes.get(numbers_of(string), -1) for string in strings]
        return _Features(
            self._ngrams.transform(strings),
            self._words.transform(strings),
            np.array(n_words, dtype=np.float32),
            np.array(numbers, dtype=np.int64),
        )


class _EntityStrings:
    """The strings of one kind: those of entity ``e`` are rows offsets[e] to offsets[e + 1]."""

    def __init__(self, groups: Sequence[Sequence[str]], reader: _Reader):
        self.offsets = offsets_of(np.array([len(strings) for strings in groups], dtype=np.int64))
        self.features = reader.read([string for strings in groups for string in strings])

    def most_similar(self, mentions: _Features, entities: np.ndarray) -> np.ndarray:
        """(3, m, c) float32: n-grams, words, numbers."""
        best = np.zeros((len(StringSimilarity._fields), entities.size), dtype=np.float32)
        flat = entities.ravel()
        counts = np.where(flat >= 0, np.diff(self.offsets)[flat], 0)
        places = np.flatnonzero(counts)
        if len(places):
            counts = counts[places]
            rows = ragged_ranges(self.offsets[:-1][flat[places]], counts)
            mention = np.repeat(places // entities.shape[1], counts)
            starts = offsets_of(counts)[:-1]
            for view, scores in enumerate(self._scores(rows, mentions, mention)):
                best[view, places] = np.maximum.reduceat(scores, starts)
        return best.reshape(-1, *entities.shape)

    def _scores(
        self, rows: np.ndarray, mentions: _Features, mention: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Similarities (p,) of pairs of a string and a mention: n-grams, words, numbers."""
        strings = self.features
        yield _products(strings.ngrams[rows], mentions.ngrams[mention])
        common = _products(strings.words[rows], mentions.words[mention])
        yield common / np.maximum(strings.n_words[rows] + mentions.n_words[mention] - common, 1)
        yield (strings.numbers[rows] == mentions.numbers[mention]).astype(np.float32)


def _products(left: csr_matrix, right: csr_matrix) -> np.ndarray:
    return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float32)[:, 0]


def words_of(string: str) -> List[str]:
    """The words and numbers of a string, in lower case; Roman numerals up to IX as numbers."""
    return [ROMAN.get(word, word) for word in _WORD.findall(string.lower())]


def numbers_of(string: str) -> FrozenSet[str]:
    """The numbers of a string."""
    return frozenset(word for word in words_of(string) if word.isdigit())


def _distinct(strings: Iterable[str]) -> List[str]:
    return list(dict.fromkeys(string.lower() for string in strings))
