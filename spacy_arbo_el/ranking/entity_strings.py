"""The strings of a datastore's entities, updated edit by edit, and their similarity to mentions.

A dual encoder confuses what differs in a character (C6 and C7 deficiency). TF-IDF over character
n-grams, which BioSyn has beside its dense vectors, does not. Numbers have a separate feature,
since they mean more than their few characters: multiple endocrine neoplasia type 2 is not type 1,
and neither is the one without a number.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Optional

import numpy as np

from ..base.arrays import int_array, minus_ones, take_or
from ..kb.store import EntityStore
from ..mentions.normalization.text import normalized_names
from ..mentions.record import MentionRecord
from ..names.firms import firm_forms
from ..names.formulas import atoms_of
from ..names.spellings import compared_forms, compatible, folded
from ..names.string_features import FeatureReader, InterchangedWords, StringTable
from ..names.words import without_qualifier
from ..storage.locks import ForkableLock
from .sources import StringSource

# (e,) int64 entities, each once -> the names of each; may be empty
ReadNames = Callable[[np.ndarray], list[list[str]]]

# So many names are kept at most, unless a batch needs more. They take some 0.5 KB each.
MAX_NAMES = 1_000_000
# An index with a larger share of strings that belong to no entity any more is built anew.
MAX_GARBAGE = 0.5
# The names of at most so many entities are counted for the weights of n-grams.
MAX_COUNTED = 16384


class StringSimilarity(NamedTuple):
    """Similarity of mentions to candidates' most similar strings.

    Each array is (2, m, c) float32: of names, then of surface forms of exemplars. It is 0 where
    there is no string.

    ngrams: Cosine similarity of TF-IDF vectors over character n-grams.
    words: The share of words in common (Jaccard).
    numbers: 1 where both have the same numbers, or none at all.
    extra: The share of the mention that is in words which the most similar string lacks.
    missing: The share of that string that is in words which the mention lacks. Of words that the
        list has for each other, ``extra`` and ``missing`` count only a part.
    opposed: 1 where the two have different numbers or opposed words, see ``comparison.py``.
    begins: 1 where that string begins with the mention's first word.
    ends: 1 where it ends with the mention's last word.
    """

    ngrams: np.ndarray
    words: np.ndarray
    numbers: np.ndarray
    extra: np.ndarray
    missing: np.ndarray
    opposed: np.ndarray
    begins: np.ndarray
    ends: np.ndarray


class StringIndex:
    """Names of entities and surface forms of exemplars, indexed.

    Names are read when an entity is a candidate for the first time. So a knowledge base of millions
    costs no more than the entities that mentions are compared with. The weights of n-grams come
    from surface forms, and from the names that were counted.

    An index that has been changed is equal to one that is built anew.

    read_names: Gives the names of entities.
    """

    def __init__(self, read_names: ReadNames):
        self._read_names = read_names
        self._reader = FeatureReader()
        self._names = StringTable(self._reader)
        self._counted: dict[int, list[str]] = {}
        self._interchanged = InterchangedWords(self._reader)
        self.surface_forms = StringTable(self._reader)
        # The entities that have a surface form, and how often.
        self._owners: dict[str, dict[int, int]] = {}
        self._loading = ForkableLock()

    def count_names(self, entities: np.ndarray) -> None:
        """Count the n-grams in names of entities: (e,) int64, each once.

        What was counted of them before is forgotten.
        """
        before = [self._counted.pop(e, []) for e in entities.tolist()]
        self._count(before, -1)
        groups = [_distinct(names) for names in self._read_names(entities)]
        self._counted.update(zip(entities.tolist(), groups))
        self._count(groups)

    def _count(self, groups: Sequence[list[str]], sign: int = 1) -> None:
        """Count n-grams and words in names by entity; -1 to forget them."""
        self._reader.count([string for names in groups for string in names], sign)
        for names in groups:
            self._interchanged.count(names, sign)

    def forget_names(self, entities: np.ndarray) -> None:
        """Note that names of entities have changed: (e,) int64, each once.

        Those that were counted must be counted again.
        """
        self._names.forget(entities)

    def replace_surface_forms(
        self, entities: np.ndarray, groups: Sequence[Sequence[str]]
    ) -> None:
        """Replace the surface forms of entities.

        entities: (e,) int64, each once.
        groups: Those of each of the entities, as often as each occurs.
        """
        counted = [Counter(form.lower() for form in forms) for forms in groups]
        distinct = [list(counts) for counts in counted]
        for entity, counts in zip(entities.tolist(), counted):
            old = self.surface_forms.of(entity)
            if old:
                self._reader.count(old, -1)
            for form in old:
                del self._owners[form][entity]
                if not self._owners[form]:
                    del self._owners[form]
            for form, count in counts.items():
                self._owners.setdefault(form, {})[entity] = count
        self.surface_forms.replace(entities, distinct)
        self._reader.count([form for forms in distinct for form in forms])

    @property
    def garbage(self) -> float:
        """Share of stored strings that no entity uses any more."""
        return max(self._names.garbage, self.surface_forms.garbage)

    def with_surface_form(self, string: str) -> Mapping[int, int]:
        """Entities with exactly this surface form, and how often. Case does not count."""
        return self._owners.get(string.lower(), {})

    def similarity(
        self, strings: Sequence[str], entities: np.ndarray
    ) -> StringSimilarity:
        """The similarity of each mention to its candidates.

        strings: The surface forms of m mentions.
        entities: (m, c) int64, -1 for none.
        """
        tables = self.names_with(entities), self.surface_forms
        # First: it numbers words that mentions may have.
        interchanged = self._interchanged.table()
        mentions = self._reader.read([string.lower() for string in strings])
        weights = self._reader.weights()
        views = [
            table.compared(mentions, entities, weights, interchanged)[0]
            for table in tables
        ]
        return StringSimilarity(*np.stack(views, axis=1))

    def names_of(self, entity: int) -> list[str]:
        """The names of an entity for comparison, in lower case, each once."""
        return self.names_with(np.array([entity])).of(entity)

    def nearest_names(
        self, strings: Sequence[str], entities: np.ndarray
    ) -> np.ndarray:
        """Each candidate's name most similar to a mention. Names are compared by n-grams.

        strings, entities: As in ``similarity``.
        RETURNS: (m, c) int64, its number in ``names_of``; 0 where none is similar.
        """
        table = self.names_with(entities)
        interchanged = self._interchanged.table()
        mentions = self._reader.read([string.lower() for string in strings])
        return table.compared(
            mentions, entities, self._reader.weights(), interchanged
        )[1]

    def names_with(self, entities: np.ndarray) -> StringTable:
        """Names including those of these entities; -1 for none."""
        distinct = np.unique(entities[entities >= 0])
        if self._names.has(distinct).all():
            return self._names
        with self._loading:
            missing = distinct[~self._names.has(distinct)]
            if len(self._names) > MAX_NAMES:
                # Other threads may still compare with the present table.
                self._names = StringTable(self._reader)
                missing = distinct
            self._names.replace(missing, self._read(missing))
            return self._names

    def _read(self, entities: np.ndarray) -> list[list[str]]:
        """Names of entities, cached while they are counted."""
        uncounted = int_array([e for e in entities.tolist() if e not in self._counted])
        names = dict(
            zip(
                uncounted.tolist(),
                self._read_names(uncounted) if len(uncounted) else (),
            )
        )
        return [
            self._counted.get(e) or _distinct(names.get(e, ()))
            for e in entities.tolist()
        ]


def _distinct(strings: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(string.lower() for string in strings))


@dataclass(frozen=True)
class _Sources:
    """The state of a datastore that strings were read from.

    entities: The entities.
    generation: How many edits of entities there had been.
    records: The n exemplars.
    owners: (n,) int64, the entity of each.
    """

    entities: EntityStore
    generation: int
    records: tuple[MentionRecord, ...]
    owners: np.ndarray

    @classmethod
    def of(cls, datastore: StringSource) -> "_Sources":
        entities = datastore.kb.entities
        exemplars = datastore.exemplars
        owners = exemplars.entities(datastore.kb)
        return cls(entities, entities.generation, tuple(exemplars.records), owners)

    @property
    def objects(self) -> np.ndarray:
        """(n,) int64, what tells records apart: one that says something else is another object."""
        return np.fromiter(map(id, self.records), np.int64, len(self.records))

    def changed_until(self, later: "_Sources") -> np.ndarray | None:
        """The entities whose strings may differ later: (c,) int64, each once.

        None where that is not known.
        """
        if self.entities is not later.entities:
            return None
        _, before, after = np.intersect1d(
            self.objects, later.objects, assume_unique=True, return_indices=True
        )
        is_same = self.owners[before] == later.owners[after]
        changed = int_array(later.entities.changed_since(self.generation))
        affected = np.concatenate(
            [
                changed,
                np.delete(self.owners, before[is_same]),
                np.delete(later.owners, after[is_same]),
            ]
        )
        # An exemplar may have had an owner that there is no more.
        return np.unique(
            affected[(affected >= 0) & (affected < later.entities.positions)]
        )


class EntityStrings:
    """The strings of the entities of a datastore.

    The weights of n-grams come from the names of at most ``MAX_COUNTED`` entities, evenly spread.
    Names are read when their entity is a candidate.

    datastore: The datastore in its present state.
    """

    def __init__(self, datastore: StringSource):
        self._sources = _Sources.of(datastore)
        self._normalizer = datastore.normalizer
        self._stride = _stride(self._sources.entities)
        self._has_only_id = np.zeros(0, dtype=bool)
        # The frequency of each entity whose names were read.
        self._frequency = np.zeros(0, dtype=np.float64)
        # Names of entities with their case.
        self._written: dict[int, frozenset[str]] = {}
        # Their titles, folded, with and without a qualifier.
        self._titles: dict[int, frozenset[str]] = {}
        # (entities,) bool.
        self.has_exemplar = np.zeros(0, dtype=bool)
        self.index = StringIndex(self._read_names)
        everything = np.arange(self._sources.entities.positions)
        self._read(datastore.exemplars.records, everything)

    @classmethod
    def of(cls, datastore: StringSource) -> "EntityStrings":
        """Strings of a datastore's present state, cached there."""
        return datastore.derived(
            "strings",
            lambda: cls(datastore),
            lambda strings: strings.updated(datastore),
        )

    def updated(self, datastore: StringSource) -> Optional["EntityStrings"]:
        """The strings of a later state of the datastore. These ones must not be used any more.

        None where they are better read anew.
        """
        sources = _Sources.of(datastore)
        changed = self._sources.changed_until(sources)
        has_other_stride = _stride(sources.entities) != self._stride
        if changed is None or has_other_stride or self.index.garbage > MAX_GARBAGE:
            return None
        self._sources = sources
        self._read(datastore.exemplars.records, changed)
        return self

    def has_only_id(self, entities: np.ndarray) -> np.ndarray:
        """Return whether entities have exemplars, but no name other than their id.

        The surface forms of their exemplars count as their names.

        entities: Positions in any shape, -1 for none.
        RETURNS: bool in the same shape, False for none.
        """
        self.index.names_with(entities)
        return take_or(self._has_only_id, entities, False)

    def exact(
        self, records: Sequence[MentionRecord], entities: np.ndarray, among: np.ndarray
    ) -> np.ndarray:
        """Candidates with a name that is written as the mention: (m, c) float32, 1 or 0.

        entities: (m, c) int64, -1 for none. Their names must have been read.
        among: (m, c) bool, the candidates that are looked at: those of the same n-grams.
        """
        strings = [(record.text, record.normalized) for record in records]
        return _have_strings(self._written, strings, entities, among)

    def titled(
        self, records: Sequence[MentionRecord], entities: np.ndarray, among: np.ndarray
    ) -> np.ndarray:
        """Candidates whose title is the mention, in any case: (m, c) float32, 1 or 0.

        A title may have a qualifier beside it.

        entities, among: As in ``exact``.
        """
        strings = [
            (folded(record.text), folded(record.normalized)) for record in records
        ]
        return _have_strings(self._titles, strings, entities, among)

    def differ_as_formulas(
        self, records: Sequence[MentionRecord], entities: np.ndarray
    ) -> np.ndarray:
        """Candidates with formulas among their names, where the mention is another formula.

        entities: (m, c) int64, -1 for none. Their names must have been read.
        RETURNS: (m, c) bool.
        """
        differ = np.zeros(entities.shape, dtype=bool)
        for mention, record in enumerate(records):
            atoms = atoms_of(record.text)
            if atoms is None:
                continue
            for column, entity in enumerate(entities[mention].tolist()):
                formulas = set(map(atoms_of, self._written.get(entity, ()))) - {None}
                differ[mention, column] = bool(formulas) and atoms not in formulas
        return differ

    def frequencies(self, entities: np.ndarray) -> np.ndarray:
        """The frequency of entities whose names have been read: float64, in the same shape.

        entities: Positions in any shape, -1 for none.
        """
        return take_or(self._frequency, entities, 0.0)

    def owners(
        self,
        records: Sequence[MentionRecord],
        count: int,
        withheld: np.ndarray | None = None,
    ) -> np.ndarray:
        """Entities with exactly the mention's string: (m, count) int64, -1 for none.

        Those with a surface form come first: its use is attested. Names are compared with the
        mention as it is too, since a normalizer reads only mentions.

        withheld: (entities,) bool, the entities whose surface forms are not looked at.
        """
        texts = {
            text for record in records for text in (record.normalized, record.text)
        }
        named = self._sources.entities.with_names(sorted(texts))
        owners = minus_ones((len(records), count))
        for i, record in enumerate(records):
            forms = record.normalized, record.text
            attested, _ = self._attested(record, withheld)
            candidates = [
                *attested,
                *(position for form in forms for position in named.get(form, ())),
            ]
            # Another program may have added entities since the datastore was read.
            present = (
                position
                for position in candidates
                if position < len(self.has_exemplar)
            )
            entities = list(dict.fromkeys(present))[:count]
            owners[i, : len(entities)] = entities
        widest = int((owners >= 0).sum(axis=1).max(initial=0))
        return owners[:, :widest]

    def beginning_with(
        self, records: Sequence[MentionRecord], most: int
    ) -> np.ndarray:
        """Entities with a name that begins with the mention, a proper name: "Halix Oil & Gas".

        RETURNS: (m, e) int64 positions, -1 for none; none of a mention that has more than ``most``.
        """
        proper = [r.normalized if r.normalized[:1].isupper() else "" for r in records]
        beginning = self._sources.entities.beginning_with(filter(None, proper), most)
        owners = minus_ones((len(records), most))
        for row, name in enumerate(proper):
            few = beginning.get(name, ())
            owners[row, : len(few)] = few
        # Another program may have added entities since the datastore was read.
        return np.where(owners < len(self.has_exemplar), owners, -1)

    def attested(
        self,
        records: Sequence[MentionRecord],
        entities: np.ndarray,
        withheld: np.ndarray | None = None,
    ) -> np.ndarray:
        """Candidates' shares of the exemplars with a mention's surface form.

        entities: (m, c) int64, -1 for none.
        withheld: As in ``owners``.
        RETURNS: (m, c) float32.
        """
        shares = np.zeros(entities.shape, dtype=np.float32)
        for i, record in enumerate(records):
            owners, counts = self._attested(record, withheld)
            if owners:
                same = entities[i][:, None] == np.array(owners)
                shares[i] = same @ (np.array(counts) / sum(counts))
        return shares

    def _attested(
        self, record: MentionRecord, withheld: np.ndarray | None
    ) -> tuple[list[int], list[int]]:
        """Entities with exemplars of a mention's form, and how many, most first."""
        counts = self.index.with_surface_form(record.normalized)
        owners = [e for e in counts if withheld is None or not withheld[e]]
        owners.sort(key=lambda e: (-counts[e], e))
        return owners, [counts[e] for e in owners]

    def _read(self, records: Sequence[MentionRecord], changed: np.ndarray) -> None:
        """Update strings of changed entities from ``_sources``. It has their current state.

        records: The exemplars.
        changed: (e,) int64, each once.
        """
        owners = self._sources.owners
        missing = np.zeros(
            self._sources.entities.positions - len(self.has_exemplar), dtype=bool
        )
        self._has_only_id = np.append(self._has_only_id, missing)
        self._frequency = np.append(self._frequency, missing.astype(np.float64))
        self.has_exemplar = np.append(self.has_exemplar, missing)
        had_exemplar = self.has_exemplar[changed]
        self.has_exemplar[changed] = np.isin(changed, owners)
        written = changed[had_exemplar | self.has_exemplar[changed]]
        self.index.replace_surface_forms(
            written, _surface_forms(records, owners, written)
        )
        self.index.forget_names(changed)
        self.index.count_names(changed[changed % self._stride == 0])

    def _read_names(self, positions: np.ndarray) -> list[list[str]]:
        """The names of entities, raw and normalized. None of those that were removed."""
        entities = self._sources.entities.at_all(positions.tolist())
        groups: list[list[str]] = [[] for _ in positions]
        for row, position in enumerate(positions.tolist()):
            if position in entities:
                entity = entities[position]
                written = list(map(compatible, entity.names_in_text))
                names = [*written, *filter(None, map(without_qualifier, written))]
                bare = [form for name in written for form in firm_forms(name).bare]
                compared = [
                    form for name in (*names, *bare) for form in compared_forms(name)
                ]
                groups[row] = [*compared, *normalized_names(self._normalizer, names)]
                self._frequency[position] = entity.frequency
                self._written[position] = frozenset(names)
                title = compatible(entity.title)
                titles = (*compared_forms(title), without_qualifier(title))
                self._titles[position] = frozenset(map(folded, filter(None, titles)))
                has_name = entity.names not in ([], [entity.id])
                self._has_only_id[position] = (
                    self.has_exemplar[position] and not has_name
                )
                if self._has_only_id[position]:
                    groups[row] += self.index.surface_forms.of(position)
        return groups


def _have_strings(
    strings_of: Mapping[int, frozenset[str]],
    strings: Sequence[tuple[str, ...]],
    entities: np.ndarray,
    among: np.ndarray,
) -> np.ndarray:
    """Candidates that have one of a mention's strings: (m, c) float32, 1 or 0.

    strings_of: The strings of each entity.
    entities, among: (m, c), the candidates, and those that are looked at.
    """
    have = np.zeros(entities.shape, dtype=np.float32)
    for mention, column in zip(*(place.tolist() for place in np.nonzero(among))):
        owned = strings_of.get(int(entities[mention, column]), frozenset())
        have[mention, column] = not owned.isdisjoint(strings[mention])
    return have


def _stride(entities: EntityStore) -> int:
    """The names of every so many-th entity are counted. A power of two, which changes rarely."""
    stride = 1
    while entities.positions > MAX_COUNTED * stride:
        stride *= 2
    return stride


def _surface_forms(
    records: Sequence[MentionRecord], owners: np.ndarray, positions: np.ndarray
) -> list[list[str]]:
    """The surface forms of the exemplars of some entities, as often as each occurs.

    owners: (n,) int64, the entity of each exemplar.
    positions: (e,) int64, ascending.
    """
    groups: list[list[str]] = [[] for _ in positions]
    exemplars = np.flatnonzero(np.isin(owners, positions))
    rows = np.searchsorted(positions, owners[exemplars])
    for exemplar, row in zip(exemplars.tolist(), rows.tolist()):
        record = records[exemplar]
        forms = record.text.lower(), (record.normalized or record.text).lower()
        groups[row] += dict.fromkeys(forms)
    return groups
