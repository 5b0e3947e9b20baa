"""The strings of entities and exemplars, and their similarity to mentions.

A dual encoder confuses what differs in a character (C6 and C7 deficiency). TF-IDF over character
n-grams, which BioSyn has beside its dense vectors, does not. Numbers have a separate feature,
since they mean more than their few characters: multiple endocrine neoplasia type 2 is not type 1,
and neither is the one without a number.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Optional

import numpy as np

from ..base.arrays import minus_ones, take_or
from ..kb.entity import Entity
from ..kb.knowledge_base import ArboKB
from ..mentions.normalization.text import Normalizer, normalized_names
from ..mentions.record import MentionRecord
from ..names.firms import firm_forms
from ..names.formulas import atoms_of
from ..names.spellings import compared_forms, compatible, folded
from ..names.string_features import FeatureReader, StringTable
from ..names.words import without_qualifier
from ..storage.locks import ForkableLock
from .exemplars import ExemplarStore, forms_of

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


class EntityStrings:
    """Names of entities and surface forms of exemplars, in one state of both.

    Strings are read when their entity is a candidate for the first time. So a knowledge base of
    millions costs no more than the entities that mentions are compared with.

    kb, exemplars: The entities and the exemplars in their present state.
    normalizer: Normalizes names as mentions are; None for no normalizer.
    earlier: The strings of an earlier state, which must not be used any more: names that have not
        changed are not read again.
    """

    def __init__(
        self,
        kb: ArboKB,
        exemplars: ExemplarStore,
        normalizer: Normalizer | None,
        earlier: Optional["EntityStrings"] = None,
    ):
        self._entities = kb.entities
        self._generation = kb.entities.generation
        self._exemplars = exemplars
        self._normalizer = normalizer
        size = kb.entities.positions
        # The exemplars in the order of their entities.
        owners = exemplars.entities(kb)
        self._owners = owners
        self._by_owner = np.argsort(owners, kind="stable")
        self._bounds = np.searchsorted(
            owners[self._by_owner], np.arange(size + 1), side="left"
        )
        # (entities,) bool.
        self.has_exemplar = np.diff(self._bounds) > 0
        self._loading = ForkableLock()
        if earlier is None or earlier._entities is not kb.entities:
            self._reader = FeatureReader()
            self._names = StringTable(self._reader)
            # Whether an entity has no name other than its id, as far as names were read.
            self._is_nameless = np.zeros(size, dtype=bool)
            self._frequency = np.zeros(size)
            # Names with their case, and titles, folded, with and without a qualifier.
            self._written: dict[int, frozenset[str]] = {}
            self._titles: dict[int, frozenset[str]] = {}
        else:
            self._reader = earlier._reader
            self._names = earlier._names
            self._is_nameless = _resized(earlier._is_nameless, size)
            self._frequency = _resized(earlier._frequency, size)
            self._written = earlier._written
            self._titles = earlier._titles
            changed = self._entities.changed_since(earlier._generation)
            # The forms of exemplars count as their names.
            nameless = np.flatnonzero(earlier._is_nameless)
            self._names.forget(np.union1d(changed, nameless).astype(np.int64))
        self._forms = StringTable(self._reader)

    def similarity(
        self, strings: Sequence[str], entities: np.ndarray
    ) -> StringSimilarity:
        """The similarity of each mention to its candidates.

        strings: The surface forms of m mentions.
        entities: (m, c) int64, -1 for none.
        """
        tables = self._with_names(entities), self._with_forms(entities)
        mentions = self._reader.read([string.lower() for string in strings])
        views = [table.compared(mentions, entities)[0] for table in tables]
        return StringSimilarity(*np.stack(views, axis=1))

    def names_of(self, entity: int) -> list[str]:
        """The names of an entity for comparison, in lower case, each once."""
        return self._with_names(np.array([entity])).of(entity)

    def nearest_names(
        self, strings: Sequence[str], entities: np.ndarray
    ) -> np.ndarray:
        """Each candidate's name most similar to a mention. Names are compared by n-grams.

        strings, entities: As in ``similarity``.
        RETURNS: (m, c) int64, its number in ``names_of``; 0 where none is similar.
        """
        table = self._with_names(entities)
        mentions = self._reader.read([string.lower() for string in strings])
        return table.compared(mentions, entities)[1]

    def has_only_id(self, entities: np.ndarray) -> np.ndarray:
        """Return whether entities have exemplars, but no name other than their id.

        The surface forms of their exemplars count as their names.

        entities: Positions in any shape, -1 for none.
        RETURNS: bool in the same shape, False for none.
        """
        self._with_names(entities)
        return take_or(self._is_nameless & self.has_exemplar, entities, False)

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
        named = self._entities.with_names(sorted(texts))
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
        beginning = self._entities.beginning_with(filter(None, proper), most)
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
        if not len(self._owners):
            return [], []
        rows = self._exemplars.with_form(record.normalized.lower())
        counts = Counter(
            entity
            for entity in self._owners[rows].tolist()
            if entity >= 0 and (withheld is None or not withheld[entity])
        )
        owners = sorted(counts, key=lambda entity: (-counts[entity], entity))
        return owners, [counts[entity] for entity in owners]

    def _with_names(self, entities: np.ndarray) -> StringTable:
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
            # An entity may have been removed since it was retrieved.
            entity_at = self._entities.at_all(missing.tolist())
            groups = [
                self._read_names(position, entity_at[position])
                if position in entity_at
                else []
                for position in missing.tolist()
            ]
            self._names.replace(missing, groups)
            return self._names

    def _with_forms(self, entities: np.ndarray) -> StringTable:
        """Surface forms of exemplars including those of these entities; -1 for none."""
        distinct = np.unique(entities[entities >= 0])
        if not self._forms.has(distinct).all():
            with self._loading:
                missing = distinct[~self._forms.has(distinct)]
                self._forms.replace(
                    missing, list(map(self._forms_of, missing.tolist()))
                )
        return self._forms

    def _forms_of(self, entity: int) -> list[str]:
        """The surface forms of an entity's exemplars, in lower case, each once."""
        rows = self._by_owner[self._bounds[entity] : self._bounds[entity + 1]]
        records = self._exemplars.records
        return _distinct(
            form for row in rows.tolist() for form in forms_of(records[row])
        )

    def _read_names(self, position: int, entity: Entity) -> list[str]:
        """The names of an entity for comparison, raw and normalized."""
        written = list(map(compatible, entity.names_in_text))
        names = [*written, *filter(None, map(without_qualifier, written))]
        bare = [form for name in written for form in firm_forms(name).bare]
        compared = [form for name in (*names, *bare) for form in compared_forms(name)]
        self._frequency[position] = entity.frequency
        self._written[position] = frozenset(names)
        title = compatible(entity.title)
        titles = (*compared_forms(title), without_qualifier(title))
        self._titles[position] = frozenset(map(folded, filter(None, titles)))
        self._is_nameless[position] = entity.names in ([], [entity.id])
        forms = self._forms_of(position) if self._is_nameless[position] else []
        return _distinct(
            [*compared, *normalized_names(self._normalizer, names), *forms]
        )


def _resized(values: np.ndarray, size: int) -> np.ndarray:
    resized = np.zeros(size, dtype=values.dtype)
    resized[: len(values)] = values[:size]
    return resized


def _distinct(strings: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(string.lower() for string in strings))


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
