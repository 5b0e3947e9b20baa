"""The strings of the entities of a datastore, kept up to date edit by edit."""

from dataclasses import dataclass, replace
from typing import Dict, List, Optional, Sequence

import numpy as np

from ..kb.entity import Entity
from ..kb.store import EntityStore
from ..mentions.normalization.text import Normalizer
from ..mentions.records import MentionRecord
from ..retrieval.datastore import Datastore
from .strings import StringIndex

# An index with a larger share of strings that belong to no entity any more is built anew.
MAX_GARBAGE = 0.5


@dataclass(frozen=True)
class _Sources:
    """The state of a datastore that strings were read from.

    entities: The entities.
    changes: How many changes of entities there had been.
    serials: (n,) int64, see ``ExemplarStore``.
    owners: (n,) int64, the entity of each exemplar.
    """

    entities: EntityStore
    changes: int
    serials: np.ndarray
    owners: np.ndarray

    @classmethod
    def of(cls, datastore: Datastore) -> "_Sources":
        entities, exemplars = datastore.kb.entities, datastore.exemplars
        owners = exemplars.entities(datastore.kb)
        return cls(entities, entities.changes.total, exemplars.serials, owners)

    def changed_until(self, later: "_Sources") -> Optional[np.ndarray]:
        """The entities whose strings may differ in a later state: (c,) int64, each once.

        None where that is not known.
        """
        edited = later.entities.changes.since(self.changes)
        if self.entities is not later.entities or edited is None:
            return None
        kept, before, after = np.intersect1d(self.serials, later.serials, return_indices=True)
        moved = self.owners[before] != later.owners[after]
        affected = np.concatenate(
            [
                np.array(sorted(edited), dtype=np.int64),
                np.delete(self.owners, before[~moved]),
                np.delete(later.owners, after[~moved]),
            ]
        )
        # An edit that was undone may have noted positions that no entity has.
        return np.unique(affected[(affected >= 0) & (affected < later.entities.positions)])


@dataclass(frozen=True)
class EntityStrings:
    """The strings of the entities of a datastore.

    index: Their names, and the surface forms of their exemplars.
    has_exemplar: (entities,) bool.
    has_only_id: (entities,) bool, whether an entity has exemplars, and no name or only its id. The
        surface forms of its exemplars count as its names.
    sources: What they were read from; None where they are not from a datastore.
    """

    index: StringIndex
    has_exemplar: np.ndarray
    has_only_id: np.ndarray
    sources: Optional[_Sources] = None

    @classmethod
    def read(cls, datastore: Datastore, min_ngram: int, max_ngram: int) -> "EntityStrings":
        """Read all names and surface forms; see ``StringIndex`` for the lengths of n-grams."""
        none = np.zeros(0, dtype=bool)
        empty = cls(StringIndex([], [], min_ngram, max_ngram), none, none, _Sources.of(datastore))
        return empty._with_strings(datastore, np.arange(datastore.kb.entities.positions))

    @classmethod
    def of(cls, datastore: Datastore, min_ngram: int, max_ngram: int) -> "EntityStrings":
        """The strings of the present state of a datastore, which keeps them."""
        settings = min_ngram, max_ngram
        return datastore.derived(
            ("strings", *settings),
            lambda: cls.read(datastore, *settings),
            lambda strings: strings.updated(datastore),
        )

    def updated(self, datastore: Datastore) -> Optional["EntityStrings"]:
        """The strings of a later state of the datastore. These ones must not be used any more.

        None where they are better read anew.
        """
        if self.sources is None or self.index.garbage > MAX_GARBAGE:
            return None
        sources = _Sources.of(datastore)
        changed = self.sources.changed_until(sources)
        if changed is None:
            return None
        return replace(self, sources=sources)._with_strings(datastore, changed)

    def _with_strings(self, datastore: Datastore, positions: np.ndarray) -> "EntityStrings":
        """The strings with those of some entities as they are now."""
        assert self.sources is not None
        surface_forms = self._surface_forms(datastore.exemplars.records, positions)
        missing = datastore.kb.entities.positions - len(self.has_exemplar)
        has_exemplar = np.append(self.has_exemplar, np.zeros(missing, dtype=bool))
        has_only_id = np.append(self.has_only_id, np.zeros(missing, dtype=bool))
        names: List[List[str]] = [[] for _ in positions]
        rows = {position: row for row, position in enumerate(positions.tolist())}
        has_exemplar[positions] = [bool(forms) for forms in surface_forms]
        has_only_id[positions] = False
        for position, entity in _entities(datastore.kb.entities, positions).items():
            row = rows[position]
            names[row] = [*entity.names, *normalized_names(datastore.normalizer, entity.names)]
            if entity.names in ([], [entity.id]) and surface_forms[row]:
                has_only_id[position] = True
                names[row] += surface_forms[row]
        self.index.replace(positions, names, surface_forms)
        return replace(self, has_exemplar=has_exemplar, has_only_id=has_only_id)

    def _surface_forms(
        self, records: Sequence[MentionRecord], positions: np.ndarray
    ) -> List[List[str]]:
        """For each of some entities, the surface forms of its exemplars."""
        assert self.sources is not None
        groups: List[List[str]] = [[] for _ in positions]
        exemplars = np.flatnonzero(np.isin(self.sources.owners, positions))
        rows = np.searchsorted(positions, self.sources.owners[exemplars])
        for exemplar, row in zip(exemplars.tolist(), rows.tolist()):
            record = records[exemplar]
            groups[row] += [record.text, record.normalized or record.text]
        return groups


def _entities(store: EntityStore, positions: np.ndarray) -> Dict[int, Entity]:
    if len(positions) == store.positions:
        return dict(store.items())
    return store.at_all(positions.tolist())


def normalized_names(normalizer: Optional[Normalizer], names: Sequence[str]) -> List[str]:
    """Names as mentions are normalized, so that both stay comparable; none without a normalizer."""
    if normalizer is None:
        return []
    spans = (np.array([[0, len(name)]], dtype=np.int64) for name in names)
    return [normalizer(name, span)[0] for name, span in zip(names, spans)]
