"""New entities that are kept from document to document."""

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from spacy.tokens import Span

from ..base.errors import ArboError, Errors
from ..discovery.entities import nearest_entities
from ..discovery.grouping import Discovery
from ..discovery.new_entities import NewEntities
from ..discovery.store import Unlinked
from ..mentions.annotations import Link
from ..mentions.record import MentionKey
from ..retrieval.mention_search import nearest_earlier
from .stages import LinkedMentions, LinkingStages


class Stream:
    """Adds unlinked mentions to new entities, document by document.

    What a document gets depends on the documents before it, not on batches. Threads link at the
    same time. Only adding to the new entities is done by one thread at a time, a batch of documents
    as a whole, in the order in which the threads get there.

    new_entities: The new entities so far.
    """

    def __init__(self) -> None:
        self.new_entities = NewEntities()
        # The process in which streaming was turned on. None for off: documents add nothing.
        self.process: int | None = None

    def turn(self, on: bool) -> None:
        """Start or stop to keep new entities, in this process."""
        self.process = os.getpid() if on else None

    def link(
        self, stages: LinkingStages, spans: Sequence[Sequence[Span]], threshold: float
    ) -> list[Link]:
        """Link documents' mentions and attach the others to new entities.

        stages: The stages of linking; they must have a discovery.
        spans: For each document its mentions.
        threshold: The probability that a link must have.
        RETURNS: The links, with the ids of new entities.
        """
        if self.process != os.getpid():
            raise ArboError(Errors.E707)
        if stages.discovery is None:
            raise ArboError(Errors.E709)
        # The datastore's lock is always taken before that of the new entities.
        with stages.datastore.reading():
            linked, new_entities = stages.link(spans, threshold), self.new_entities
            with new_entities.lock:
                new_entities.threshold = float(threshold)
                new_entities.sync(stages.encode_inputs, stages.encoder.fingerprint)
                names = _Attaching(stages, new_entities, linked).names()
                new_entities.documents += len(spans)
        return [
            replace(link, cluster=names[row]) if row in names else link
            for row, link in enumerate(linked.links)
        ]


class _Attaching:
    """Mentions of a batch while being attached to new entities."""

    def __init__(
        self, stages: LinkingStages, new_entities: NewEntities, linked: LinkedMentions
    ) -> None:
        self.stages, self.new_entities, self.linked = stages, new_entities, linked
        self._names: dict[int, str] = {}
        # Rows of a text that another row has too, and that row.
        self._same: dict[int, int] = {}
        # Mentions that are to be added at once, and their rows in the batch.
        self._waiting: dict[MentionKey, int] = {}

    def names(self) -> dict[int, str]:
        """New entity of each unlinked row of the batch."""
        batch, new_entities = self.linked.ranked.batch, self.new_entities
        rows = np.flatnonzero(self.linked.decisions.entities < 0)
        documents = batch.documents[rows]
        for group in np.split(rows, np.flatnonzero(np.diff(documents)) + 1):
            keys: dict[MentionKey, int] = {}
            for row in group.tolist():
                # Spans of several labels over the same text are one mention of a new entity.
                first = keys.setdefault(batch.records[row].key, row)
                if first != row:
                    self._same[row] = first
            # The same text is the same document: its mentions are stored already.
            if any(key in self._waiting or new_entities.rows.row(key) >= 0 for key in keys):
                self._attach()
            stored = {key: row for key, row in keys.items() if new_entities.rows.row(key) >= 0}
            self._names.update((row, new_entities.id_of(key)) for key, row in stored.items())
            self._waiting.update((key, row) for key, row in keys.items() if key not in stored)
        self._attach()
        self._names.update((row, self._names[first]) for row, first in self._same.items())
        return self._names

    def _attach(self) -> None:
        rows = np.array(list(self._waiting.values()), dtype=np.int64)
        if not len(rows):
            return
        ranked = self.linked.ranked
        nearest = nearest_entities(ranked.ranking.candidates.take(rows), self.stages.datastore.kb)
        batch = ranked.batch.take(rows)
        unlinked = Unlinked.from_batch(batch, nearest, self.new_entities.documents)
        names = self.new_entities.attach(unlinked, self._earlier(unlinked))
        self._names.update(zip(rows.tolist(), names))
        self._waiting.clear()

    def _earlier(self, unlinked: Unlinked) -> np.ndarray:
        """Rows of sufficiently similar earlier mentions: (n, k) int64."""
        discovery, settings = self.stages.discovery, self.stages.datastore.settings
        assert discovery is not None
        rows = self.new_entities.rows
        nearest = nearest_earlier(
            rows.features(discovery),
            discovery.features(unlinked.vectors, unlinked.normalized),
            discovery.n_neighbors,
            discovery.feature_similarity(settings.similarity),
            left_out=self._left_out(discovery),
        )
        kept = nearest.valid
        if settings.match_types:
            labels = [record.label for record in (*rows.records, *unlinked.records)]
            numbers = np.unique(labels, return_inverse=True)[1].reshape(-1)
            kept = kept & (numbers[nearest.ids] == numbers[len(rows) :, None])
        similar = nearest.scores >= discovery.min_similarity(self.stages.calibration)
        # Unlike TopK.where, entries keep their columns.
        return np.where(kept & similar, nearest.ids, -1)

    def _left_out(self, discovery: Discovery) -> np.ndarray:
        """(n,) bool: the stored mentions that no mention joins, unreadable or accepted ones."""
        rows, clusters = self.new_entities.rows, self.new_entities.clusters
        left_out = ~rows.usable(discovery)
        if clusters.accepted:
            left_out |= np.isin(clusters.numbers, list(clusters.accepted))
        return left_out
