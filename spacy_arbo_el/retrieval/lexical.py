"""How alike strings are: character n-grams beside vectors.

A dual encoder blurs what only letters tell apart (C6 and C7 deficiency). TF-IDF over character
n-grams, as BioSyn has it beside its dense vectors, does not.
"""

from collections import defaultdict
from typing import Callable, Dict, Iterable, List, Sequence

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from spacy.util import registry

from ..encoders.sequences import offsets_of, ragged_ranges

# Mentions compared at a time, to bound memory.
BLOCK = 256

BuildLexicon = Callable[[Sequence[Sequence[str]], Sequence[Sequence[str]]], "Lexicon"]


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
        self._vectorizer = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(smallest, largest), sublinear_tf=True, dtype=np.float32
        )
        self._owners: Dict[str, List[int]] = defaultdict(list)
        groups = [[_distinct(strings) for strings in kind] for kind in (names, forms)]
        corpus = [string for kind in groups for strings in kind for string in strings]
        # Without a single word there is no vocabulary; then nothing is like anything.
        self._vectorizer.fit(corpus if any(map(str.strip, corpus)) else ["?"])
        self.names, self.forms = (self._strings(kind) for kind in groups)
        for kind in reversed(groups):  # surface forms before names: they were seen to be used
            for entity, strings in enumerate(kind):
                for string in strings:
                    self._owners[string].append(entity)

    def _strings(self, groups: Sequence[Sequence[str]]) -> "_Strings":
        flat = [string for strings in groups for string in strings]
        lengths = np.array([len(strings) for strings in groups], dtype=np.int64)
        matrix = self._vectorizer.transform(flat) if flat else csr_matrix((0, 1), dtype=np.float32)
        return _Strings(offsets_of(lengths), matrix)

    def owners(self, strings: Sequence[str], count: int) -> np.ndarray:
        """Entities that go by just these strings: (m, count) int64, -1 for none."""
        found = np.full((len(strings), count), -1, dtype=np.int64)
        for i, string in enumerate(strings):
            entities = list(dict.fromkeys(self._owners.get(string.lower(), ())))[:count]
            found[i, : len(entities)] = entities
        return found

    def similarity(self, strings: Sequence[str], entities: np.ndarray):
        """How alike mentions are to the most similar string of entities.

        strings: m mentions. entities: (m, c) int64, -1 for none.
        RETURNS: to names and to surface forms, each (m, c) float32 cosine, 0 for no string.
        """
        found = np.zeros((2, *entities.shape), dtype=np.float32)
        for start in range(0, len(strings), BLOCK):
            part = slice(start, start + BLOCK)
            mentions = self._vectorizer.transform([s.lower() for s in strings[part]])
            for kind, known in enumerate((self.names, self.forms)):
                found[kind, part] = known.most_similar(mentions, entities[part])
        return found[0], found[1]


class _Strings:
    """Strings of entities as rows of a matrix: those of entity e are offsets[e] to offsets[e+1]."""

    def __init__(self, offsets: np.ndarray, matrix: csr_matrix):
        self.offsets = offsets
        self.matrix = matrix

    def most_similar(self, mentions: csr_matrix, entities: np.ndarray) -> np.ndarray:
        best = np.zeros(entities.size, dtype=np.float32)
        flat = entities.ravel()
        count = np.where(flat >= 0, np.diff(self.offsets)[flat], 0)
        some = np.flatnonzero(count)
        if not len(some):
            return best.reshape(entities.shape)
        rows = ragged_ranges(self.offsets[:-1][flat[some]], count[some])
        mention = np.repeat(some // entities.shape[1], count[some])
        cosine = np.asarray(self.matrix[rows].multiply(mentions[mention]).sum(axis=1))[:, 0]
        best[some] = np.maximum.reduceat(cosine, offsets_of(count[some])[:-1])
        return best.reshape(entities.shape)


def _distinct(strings: Iterable[str]) -> List[str]:
    return list(dict.fromkeys(string.lower() for string in strings))


@registry.misc("spacy-arbo-el.CharacterNgrams.v1")
def character_ngrams(smallest: int = 1, largest: int = 3) -> BuildLexicon:
    """Compare the strings of mentions, names and exemplars by TF-IDF over character n-grams."""

    def build(names: Sequence[Sequence[str]], forms: Sequence[Sequence[str]]) -> Lexicon:
        return Lexicon(names, forms, smallest, largest)

    return build
