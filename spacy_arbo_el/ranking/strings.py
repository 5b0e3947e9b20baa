"""The similarity of strings by n-grams, words and numbers, beside that of vectors.

A dual encoder confuses what differs in a character (C6 and C7 deficiency). TF-IDF over character
n-grams, which BioSyn has beside its dense vectors, does not. Numbers have a separate feature,
since they mean more than their few characters: multiple endocrine neoplasia type 2 is not type 1,
and neither is the one without a number.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..storage.locks import ForkableLock
from .string_features import FeatureReader, StringTable

# (e,) int64 entities, each once -> the names of each; may be empty
ReadNames = Callable[[np.ndarray], list[list[str]]]

# So many names are kept at most, unless a batch needs more. They take some 0.5 KB each.
MAX_NAMES = 1_000_000


class StringSimilarity(NamedTuple):
    """Similarity of mentions to candidates' most similar strings.

    Each array is (2, m, c) float32: of names, then of surface forms of exemplars. It is 0 where
    there is no string.

    ngrams: Cosine similarity of TF-IDF vectors over character n-grams.
    words: The share of words in common (Jaccard).
    numbers: 1 where both have the same numbers, or none at all.
    extra: The share of the mention that is in words which the most similar string lacks.
    missing: The share of that string that is in words which the mention lacks.
    opposed: 1 where the two have different numbers or opposed words, see ``differences.py``.
    """

    ngrams: np.ndarray
    words: np.ndarray
    numbers: np.ndarray
    extra: np.ndarray
    missing: np.ndarray
    opposed: np.ndarray


class StringIndex:
    """Names of entities and surface forms of exemplars, indexed.

    Names are read when an entity is a candidate for the first time. So a knowledge base of millions
    costs no more than the entities that mentions are compared with. The weights of n-grams come
    from surface forms, and from the names that were counted.

    An index that has been changed is equal to one that is built anew.

    read_names: Gives the names of entities.
    min_ngram: The length of the shortest n-grams.
    max_ngram: The length of the longest n-grams. N-grams do not cross words.
    """

    def __init__(self, read_names: ReadNames, min_ngram: int, max_ngram: int):
        self._read_names = read_names
        self._reader = FeatureReader(min_ngram, max_ngram)
        self._names = StringTable(self._reader)
        self._counted: dict[int, list[str]] = {}
        self._surface_forms = StringTable(self._reader)
        # The entities that have a surface form, and how often.
        self._owners: dict[str, dict[int, int]] = {}
        self._loading = ForkableLock()

    def count_names(self, entities: np.ndarray) -> None:
        """Count the n-grams in names of entities: (e,) int64, each once.

        What was counted of them before is forgotten.
        """
        old = [string for e in entities.tolist() for string in self._counted.pop(e, ())]
        self._reader.count(old, -1)
        groups = [_distinct(names) for names in self._read_names(entities)]
        self._counted.update(zip(entities.tolist(), groups))
        self._reader.count([string for names in groups for string in names])

    def forget_names(self, entities: np.ndarray) -> None:
        """Note that names of entities have changed: (e,) int64, each once.

        Those that were counted must be counted again.
        """
        self._names.forget(entities)

    def replace_surface_forms(self, entities: np.ndarray, groups: Sequence[Sequence[str]]) -> None:
        """Give entities other surface forms.

        entities: (e,) int64, each once.
        groups: Those of each of the entities, as often as each occurs.
        """
        counted = [Counter(form.lower() for form in forms) for forms in groups]
        distinct = [list(counts) for counts in counted]
        for entity, counts in zip(entities.tolist(), counted):
            old = self._surface_forms.of(entity)
            self._reader.count(old, -1) if old else None
            for form in old:
                del self._owners[form][entity]
                if not self._owners[form]:
                    del self._owners[form]
            for form, count in counts.items():
                self._owners.setdefault(form, {})[entity] = count
        self._surface_forms.replace(entities, distinct)
        self._reader.count([form for forms in distinct for form in forms])

    @property
    def garbage(self) -> float:
        """Share of stored strings that no entity uses any more."""
        return max(self._names.garbage, self._surface_forms.garbage)

    def with_surface_form(self, string: str) -> Mapping[int, int]:
        """Entities with exactly this surface form, and how often. Case does not count."""
        return self._owners.get(string.lower(), {})

    def similarity(self, strings: Sequence[str], entities: np.ndarray) -> StringSimilarity:
        """The similarity of each mention to its candidates.

        strings: The surface forms of m mentions.
        entities: (m, c) int64, -1 for none.
        """
        tables = self._names_with(entities), self._surface_forms
        mentions = self._reader.read([string.lower() for string in strings])
        weights = self._reader.weights()
        views = [table.compared(mentions, entities, weights)[0] for table in tables]
        return StringSimilarity(*np.stack(views, axis=1))

    def load_names(self, entities: np.ndarray) -> None:
        """Read the names of entities that are not known.

        positions: In any shape, -1 for none.
        """
        self._names_with(entities)

    def surface_forms_of(self, entity: int) -> list[str]:
        """The surface forms of an entity in lower case, each once."""
        return self._surface_forms.of(entity)

    def names_of(self, entity: int) -> list[str]:
        """The names of an entity for comparison, in lower case, each once."""
        return self._names_with(np.array([entity])).of(entity)

    def nearest_names(self, strings: Sequence[str], entities: np.ndarray) -> np.ndarray:
        """Each candidate's name most similar to a mention. Names are compared by n-grams.

        strings, entities: As in ``similarity``.
        RETURNS: (m, c) int64, its number in ``names_of``; 0 where none is similar.
        """
        table = self._names_with(entities)
        mentions = self._reader.read([string.lower() for string in strings])
        return table.compared(mentions, entities, self._reader.weights())[1]

    def _names_with(self, entities: np.ndarray) -> StringTable:
        """Names including those of these entities; -1 for none."""
        wanted = np.unique(entities[entities >= 0])
        if self._names.has(wanted).all():
            return self._names
        with self._loading:
            missing = wanted[~self._names.has(wanted)]
            if len(self._names) > MAX_NAMES:
                # Other threads may still compare with the present table.
                self._names, missing = StringTable(self._reader), wanted
            self._names.replace(missing, self._read(missing))
            return self._names

    def _read(self, entities: np.ndarray) -> list[list[str]]:
        """Names of entities, cached while they are counted."""
        others = np.array([e for e in entities.tolist() if e not in self._counted], dtype=np.int64)
        names = dict(zip(others.tolist(), self._read_names(others) if len(others) else ()))
        return [self._counted.get(e) or _distinct(names.get(e, ())) for e in entities.tolist()]


def _distinct(strings: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(string.lower() for string in strings))
