"""Entities near new entities, in the present knowledge base."""

from dataclasses import dataclass

import numpy as np

from ...base.arrays import int_array, unit
from ...discovery.entities import (
    NearestEntity,
    NewEntity,
    most_probable,
    nearest_entities,
)
from ...discovery.new_entities import NewEntities
from ...discovery.store import Unlinked
from ...linker import ArboLinker
from ...mentions.record import MentionBatch, MentionRecord

# Mentions that are linked anew to see what an acceptance has changed.
RELINKED = 100
# The nearest mentions whose clusters are similar.
COMPARED = 600
# Mentions of a new entity that are ranked when its page is opened.
CENTRAL = 12


@dataclass(frozen=True)
class Near:
    """Ranks mentions of new entities with all decisions so far. Threads may call all methods."""

    linker: ArboLinker

    @property
    def new(self) -> NewEntities:
        """The new entities."""
        return self.linker.new_entities

    def of(self, entity: NewEntity) -> list[NearestEntity]:
        """The nearest entities of a new entity now.

        Its most central mentions are ranked."""
        if self.linker.kb.is_empty():
            return []
        keys = [record.key for record, _ in self.by_distance(entity)[:CENTRAL]]
        with self.new.lock:
            rows = int_array([self.new.rows.row(key) for key in keys])
            mentions = self.new.rows.take(rows)
        with self.linker.datastore.snapshot():
            ranked = self.linker.stages.rank_encoded(self._batch(mentions))
            return most_probable(
                nearest_entities(ranked.ranking.candidates, self.linker.kb)
            )

    def by_distance(self, entity: NewEntity) -> list[tuple[MentionRecord, float]]:
        """Mentions of a new entity by similarity to the central. Each with its cosine; the
        central one is first.
        """
        vectors = unit(self.new.mentions_of(entity).vectors.astype(np.float64))
        cosines = vectors @ vectors[entity.medoid]
        cosines[entity.medoid] = 2.0
        order = np.argsort(-cosines, kind="stable").tolist()
        return [(entity.members[i], min(float(cosines[i]), 1.0)) for i in order]

    def similar(self, entity: NewEntity) -> list[str]:
        """Ids of other clusters similar to the central mention, best first."""
        new = self.new
        with new.lock:
            vectors = new.rows.vectors
            row = new.rows.row(entity.members[entity.medoid].key)
            numbers = new.clusters.numbers
            is_other = (numbers != numbers[row]) & ~new.clusters.closed()[numbers]
            other_rows = np.flatnonzero(is_other)
            order = np.argsort(-(vectors @ vectors[row])[other_rows], kind="stable")[
                :COMPARED
            ]
            nearest = dict.fromkeys(numbers[other_rows[order]].tolist())
            return [new.clusters.ids[number] for number in nearest]

    def attracted(self, kb_id: str) -> list[str]:
        """The cluster of each mention that an entity now attracts.

        Of those that no entity fitted, the most similar to it and its exemplars are linked anew.
        """
        linker = self.linker
        new = self.new
        linker.refresh()
        entity = linker.kb.get(kb_id)
        store = linker.exemplars
        exemplar_rows = [
            i
            for i, record in enumerate(store.records)
            if entity.id in self.entities_of(record)
        ]
        vectors = np.vstack(
            [
                linker.kb.vectors.of_entity(entity.id)[None],
                store.vectors[exemplar_rows],
            ]
        )
        with new.lock:
            best = (new.rows.vectors @ vectors.T).max(axis=1)
            best[new.clusters.closed()[new.clusters.numbers]] = -np.inf
            order = np.argsort(-best, kind="stable")[:RELINKED]
            mentions = new.rows.take(order[np.isfinite(best[order])])
            ids = [new.id_of(key) for key in mentions.keys]
        if not ids:
            return []
        with linker.datastore.snapshot():
            ranked = linker.stages.rank_encoded(self._batch(mentions))
            decided = linker.stages.decide(ranked, linker.threshold)
            relinked = np.flatnonzero(
                decided.entities == linker.kb.entities.position(entity.id)
            )
        return [ids[i] for i in relinked.tolist()]

    def entities_of(self, record: MentionRecord) -> list[str]:
        """The present ids of an exemplar's entities. Merged ones lead to the one that stays."""
        kb = self.linker.kb
        return [kb.get(kb_id).id if kb_id in kb else kb_id for kb_id in record.kb_ids]

    def _batch(self, mentions: Unlinked) -> MentionBatch:
        labels = [
            self.linker.vocab.strings.add(record.label) for record in mentions.records
        ]
        count = len(mentions)
        return MentionBatch(
            list(mentions.records),
            mentions.inputs,
            np.arange(count),
            np.array(labels, dtype=np.uint64),
            count,
            mentions.vectors,
        )
