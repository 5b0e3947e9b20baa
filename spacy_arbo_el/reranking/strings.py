"""The similarity of strings: n-grams, words and numbers, beside the similarity of vectors.

A dual encoder confuses what differs in a character (C6 and C7 deficiency). TF-IDF over character
n-grams, which BioSyn has beside its dense vectors, does not. Numbers have a feature of their own,
since they mean more than their few characters: multiple endocrine neoplasia type 2 is not type 1,
and neither is the one without a number.
"""

from bisect import insort
from typing import Dict, Iterable, List, NamedTuple, Sequence

import numpy as np

from .string_features import FeatureReader, StringTable


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

    An index that has been changed by ``replace`` is equal to one that is built anew.

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
        self._reader = FeatureReader(min_ngram, max_ngram)
        self._names = _EntityStrings(self._reader)
        self._surface_forms = _EntityStrings(self._reader)
        self.replace(np.arange(len(names)), names, surface_forms)

    def replace(
        self,
        entities: np.ndarray,
        names: Sequence[Sequence[str]],
        surface_forms: Sequence[Sequence[str]],
    ) -> None:
        """Give entities other strings, or strings at all.

        entities: (e,) int64, each once.
        names, surface_forms: Those of each of the entities.
        """
        self._names.replace(entities, names)
        self._surface_forms.replace(entities, surface_forms)

    @property
    def garbage(self) -> float:
        """The share of what is stored that belongs to no entity any more."""
        return max(self._names.table.garbage, self._surface_forms.table.garbage)

    def owners(self, strings: Sequence[str], count: int) -> np.ndarray:
        """Entities with exactly these strings: (m, count) int64, -1 for none.

        Those with a surface form come first: its use is attested.
        """
        owners = np.full((len(strings), count), -1, dtype=np.int64)
        for i, string in enumerate(strings):
            form = string.lower()
            both = [*self._surface_forms.owners.get(form, ()), *self._names.owners.get(form, ())]
            entities = list(dict.fromkeys(both))[:count]
            owners[i, : len(entities)] = entities
        return owners

    def similarity(self, strings: Sequence[str], entities: np.ndarray) -> StringSimilarity:
        """The similarity of each mention to its candidates.

        strings: The surface forms of m mentions.
        entities: (m, c) int64, -1 for none.
        """
        mentions = self._reader.read([string.lower() for string in strings])
        weights = self._reader.weights()
        tables = self._names.table, self._surface_forms.table
        views = [table.most_similar(mentions, entities, weights) for table in tables]
        return StringSimilarity(*np.stack(views, axis=1))

    def names_of(self, entity: int) -> List[str]:
        """The names of an entity as they are compared: in lower case, each once."""
        return self._names.of(entity)

    def nearest_names(self, strings: Sequence[str], entities: np.ndarray) -> np.ndarray:
        """Which name of each candidate is the most similar one to a mention, by n-grams.

        strings, entities: As in ``similarity``.
        RETURNS: (m, c) int64, its number in ``names_of``; 0 where none is similar.
        """
        mentions = self._reader.read([string.lower() for string in strings])
        return self._names.table.nearest(mentions, entities, self._reader.weights())


class _EntityStrings:
    """The strings of one kind.

    owners: From a string to the entities that have it, in order.
    table: Their features.
    """

    def __init__(self, reader: FeatureReader):
        self.owners: Dict[str, List[int]] = {}
        self.table = StringTable(reader)
        self._strings: Dict[int, List[str]] = {}

    def of(self, entity: int) -> List[str]:
        """The strings of an entity, in order; may be empty."""
        return self._strings.get(entity, [])

    def replace(self, entities: np.ndarray, groups: Sequence[Sequence[str]]) -> None:
        distinct = [_distinct(strings) for strings in groups]
        for entity, strings in zip(entities.tolist(), distinct):
            for string in self._strings.pop(entity, ()):
                self.owners[string].remove(entity)
                if not self.owners[string]:
                    del self.owners[string]
            for string in strings:
                insort(self.owners.setdefault(string, []), entity)
            if strings:
                self._strings[entity] = strings
        self.table.replace(entities, distinct)


def _distinct(strings: Iterable[str]) -> List[str]:
    return list(dict.fromkeys(string.lower() for string in strings))
