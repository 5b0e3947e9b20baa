"""The strings of entities and exemplars, and their similarity to mentions.

A dual encoder confuses what differs in a character (C6 and C7 deficiency). TF-IDF over character
n-grams, which BioSyn has beside its dense vectors, does not. Numbers have a separate feature,
since they mean more than their few characters: multiple endocrine neoplasia type 2 is not type 1,
and neither is the one without a number.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Optional

import numpy as np

from ..base.arrays import int_array, minus_ones, take_or
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


class LazyStrings:
    """A table of strings, each read when its entity is first compared.

    reader: Reads their features.
    """

    def __init__(self, reader: FeatureReader):
        self._reader = reader
        self._lock = ForkableLock()
        self.table = StringTable(reader)

    def with_strings_of(
        self, entities: np.ndarray, read: Callable[[list[int]], list[list[str]]]
    ) -> StringTable:
        """The table, with the strings of these entities.

        read: Gives the strings of entities.
        """
        table = self.table
        if table.has(entities).all():
            return table
        with self._lock:
            if len(self.table) > MAX_NAMES:
                # Other threads may still compare with the present table.
                self.table = StringTable(self._reader)
            table = self.table
            missing = np.unique(entities[~table.has(entities)])
            table.replace(missing, read(missing.tolist()))
            return table


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
        self._records = tuple(exemplars.records)
        self._normalizer = normalizer
        size = kb.entities.positions
        # The exemplars in the order of their entities.
        owners = exemplars.entities(kb)
        self._owners = owners
        # By surface form: entities with exemplars of it, most first, and how many they have.
        self._counts: dict[str, list[tuple[int, int]]] = {}
        self._by_owner = np.argsort(owners, kind="stable")
        self._bounds = np.searchsorted(owners[self._by_owner], np.arange(size + 1))
        # (entities,) bool.
        self.has_exemplar = np.diff(self._bounds) > 0
        if earlier is None or earlier._entities is not kb.entities:
            self._reader = FeatureReader()
            self._names = LazyStrings(self._reader)
            self._forms = LazyStrings(self._reader)
            # Whether an entity has no name other than its id, as far as names were read.
            self._is_nameless = np.zeros(size, dtype=bool)
            self._frequency = np.zeros(size)
            # Names with their case, and titles, folded, with and without a qualifier.
            self._written: dict[int, frozenset[str]] = {}
            self._titles: dict[int, frozenset[str]] = {}
        else:
            self._reader = earlier._reader
            self._names = earlier._names
            self._forms = earlier._forms
            self._is_nameless = _resized(earlier._is_nameless, size)
            self._frequency = _resized(earlier._frequency, size)
            self._written = earlier._written
            self._titles = earlier._titles
            changed = int_array(self._entities.changed_since(earlier._generation))
            with_others = self._with_other_exemplars(earlier)
            self._forms.table.forget(with_others)
            # The forms of exemplars count as the names of what has none.
            nameless = with_others[take_or(earlier._is_nameless, with_others, False)]
            self._names.table.forget(np.union1d(changed, nameless))

    def _with_other_exemplars(self, earlier: "EntityStrings") -> np.ndarray:
        """The entities whose exemplars are others than earlier: (e,) int64, each once."""
        before, after = (
            set(zip(map(id, state._records), state._owners.tolist()))
            for state in (earlier, self)
        )
        changed = int_array(sorted({owner for _, owner in before ^ after}))
        return changed[(changed >= 0) & (changed < len(earlier.has_exemplar))]

    def similarity(self, strings: Sequence[str], entities: np.ndarray) -> np.ndarray:
        """The similarity of each mention to its candidates' most similar strings.

        strings: The surface forms of m mentions.
        entities: (m, c) int64, -1 for none.
        RETURNS: (N_FIELDS, 2, m, c) float32, see ``names/comparison.py``: of names, then of surface
            forms of exemplars. It is 0 where there is no string.
        """
        with_exemplar = entities[take_or(self.has_exemplar, entities, False)]
        forms = self._forms.with_strings_of(
            with_exemplar, lambda positions: list(map(self._forms_of, positions))
        )
        tables = self._with_names(entities), forms
        mentions = self._reader.read([string.lower() for string in strings])
        views = [table.compared(mentions, entities)[0] for table in tables]
        return np.stack(views, axis=1)

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
        is_nameless = take_or(self._is_nameless, entities, False)
        return is_nameless & take_or(self.has_exemplar, entities, False)

    def written_as(
        self, records: Sequence[MentionRecord], entities: np.ndarray, among: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Candidates with a name that is written as the mention, and those whose title it is.

        A title may have another case, and a qualifier beside it.

        entities: (m, c) int64, -1 for none. Their names must have been read.
        among: (m, c) bool, the candidates that are looked at: those of the same n-grams.
        RETURNS: (m, c) float32 each, 1 or 0.
        """
        have_name, have_title = np.zeros((2, *entities.shape), dtype=np.float32)
        for cell in zip(*(place.tolist() for place in np.nonzero(among))):
            entity = int(entities[cell])
            strings = {records[cell[0]].text, records[cell[0]].normalized}
            have_name[cell] = not strings.isdisjoint(self._written.get(entity, ()))
            folded_strings = set(map(folded, strings))
            have_title[cell] = not folded_strings.isdisjoint(
                self._titles.get(entity, ())
            )
        return have_name, have_title

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
            candidates = [
                *(entity for entity, _ in self._attested(record, withheld)),
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
            pairs = self._attested(record, withheld)
            if pairs:
                owners, counts = np.array(pairs).T
                shares[i] = (entities[i][:, None] == owners) @ (counts / counts.sum())
        return shares

    def _attested(
        self, record: MentionRecord, withheld: np.ndarray | None
    ) -> list[tuple[int, int]]:
        """Entities with exemplars of a mention's form, and how many, most first."""
        form = record.normalized.lower()
        if len(self._owners) and form not in self._counts:
            owners = self._owners[self._exemplars.with_form(form)]
            entities, counts = np.unique(owners[owners >= 0], return_counts=True)
            order = np.argsort(-counts, kind="stable")
            pairs = entities[order].tolist(), counts[order].tolist()
            self._counts[form] = list(zip(*pairs))
        return [
            (entity, count)
            for entity, count in self._counts.get(form, ())
            if withheld is None or not withheld[entity]
        ]

    def _with_names(self, entities: np.ndarray) -> StringTable:
        """Names including those of these entities; -1 for none."""
        return self._names.with_strings_of(entities[entities >= 0], self._read_names)

    def _read_names(self, positions: list[int]) -> list[list[str]]:
        # An entity may have been removed since it was retrieved.
        entity_at = self._entities.at_all(positions)
        return [
            self._read_entity(position, entity_at[position])
            if position in entity_at
            else []
            for position in positions
        ]

    def _forms_of(self, entity: int) -> list[str]:
        """The surface forms of an entity's exemplars, in lower case, each once."""
        rows = self._by_owner[self._bounds[entity] : self._bounds[entity + 1]]
        return _distinct(
            form for row in rows.tolist() for form in forms_of(self._records[row])
        )

    def _read_entity(self, position: int, entity: Entity) -> list[str]:
        """The names of an entity for comparison, raw and normalized.

        What else mentions are compared with is noted by its position.
        """
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
