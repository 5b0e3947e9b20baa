"""A review: decisions on a linker, journalled at once. Each before the page says so."""

import hashlib
import threading
from pathlib import Path
from typing import Any, List, Optional, Tuple

import numpy as np
import srsly
from spacy.language import Language

from ..arrays import unit
from ..discovery.entities import NewEntity
from ..discovery.new_entities import NewEntities
from ..errors import Errors
from ..kb.entity import Entity
from ..mentions.record import MentionBatch, MentionRecord
from ..pipelines import save_pipeline
from .decisions import Deciding, import_new_entities, replay
from .journal import META, Entry, Journal, entries_in, journal_path
from .queue import Filters, Queue, Row

# Mentions that are linked anew to see what an acceptance has changed; similar clusters shown.
RELINKED, SIMILAR = 100, 6


class Review:
    """Contents and actions of the pages. Threads may call all methods at the same time.

    model: The folder of the pipeline. new: A file of ``arbo discover`` to take up.
    """

    def __init__(
        self, nlp: Language, model: Path, new: Optional[Path] = None, *, read_only: bool = False
    ) -> None:
        replay(nlp, model)
        self.nlp, self.model, self.read_only = nlp, model, read_only
        self.journal, self.deciding = Journal(journal_path(model)), Deciding(nlp)
        self.linker = self.deciding.linker
        self._saved = entries_in(srsly.read_json(model / "meta.json"), self.journal.id)
        self.lock = threading.RLock()
        if read_only:
            self.journal.path = None
        if new is not None and import_new_entities(nlp, new):
            self.journal.append({"action": "import", "path": str(new.resolve())})
        self.queue = Queue(lambda: self.new)
        self._note({})

    @property
    def new(self) -> NewEntities:
        """The new entities. Those that were decided on are not among them."""
        return self.linker.new_entities

    def decide(self, action: str, by: str, version: str = "", **more: Any) -> Entry:
        """Make a decision. RETURNS: Its entry in the journal, which has ``more`` too.

        version: The version of the new entity when it was looked at; "" for any.
        """
        with self.lock:
            if self.read_only:
                raise ValueError(Errors.E916)
            if version and version != version_of(self.new[more["id"]]):
                raise ValueError(Errors.E918.format(id=more["id"]))
            entry = self.deciding.make({"action": action, "by": by, **more})
            try:
                entry = self.journal.append(entry)
            except OSError:
                self.deciding.take_back(entry)
                raise
            finally:
                self._note(entry)
            return entry

    def undo(self, by: str) -> Entry:
        """Take back the last decision that stands. RETURNS: Its entry."""
        with self.lock:
            if self.read_only or not self.standing:
                raise ValueError(Errors.E916)
            entry = self.standing[-1]
            self.deciding.take_back(entry)
            self.journal.append({"action": "undo", "of": entry["n"], "by": by})
            self._note(entry)
            return entry

    def _note(self, entry: Entry) -> None:
        """Update skipped, flagged and decided entries after a decision. They are read from the
        journal.
        """
        ids = [entry.get("id"), entry.get("off"), *entry.get("others", ()), *entry.get("ids", ())]
        self.queue.update(filter(None, ids))
        self.standing = self.journal.standing()
        self.skipped = {entry["id"] for entry in self.standing if entry["action"] == "skip"}
        flags = {e["id"]: e["comment"] for e in self.standing if e["action"] == "flag"}
        self.flags = {name: comment for name, comment in flags.items() if comment}
        made = [entry for entry in self.standing if entry["action"] not in ("skip", "flag")]
        self.decided = sum(len(entry.get("ids", "1")) for entry in made)

    @property
    def unsaved(self) -> int:
        """Number of journal entries that the saved pipeline lacks."""
        return 0 if self.read_only else len(self.journal.entries) - self._saved

    def save(self) -> None:
        """Save the pipeline with all decisions."""
        with self.lock:
            if self.unsaved:
                count = len(self.journal.entries)
                self.nlp.meta[META] = {"journal": self.journal.id, "entries": count}
                save_pipeline(self.nlp, self.model)
                self._saved = count

    def select(self, filters: Filters) -> List[Row]:
        """The rows of the queue that pass the filters."""
        with self.lock:
            return self.queue.select(filters, self.skipped, set(self.flags))

    def concordance(self, entity: NewEntity) -> List[Tuple[MentionRecord, float]]:
        """Mentions of a new entity by similarity to the central. Each with its cosine; the
        central one is first.
        """
        vectors = unit(self.new.mentions_of(entity).vectors.astype(np.float64))
        cosines = vectors @ vectors[entity.medoid]
        cosines[entity.medoid] = 2.0
        order = np.argsort(-cosines, kind="stable").tolist()
        return [(entity.members[i], min(float(cosines[i]), 1.0)) for i in order]

    def exemplars(self, entity_id: str) -> List[MentionRecord]:
        """The labelled mentions of an entity."""
        return [record for record in self.linker.exemplars.records if entity_id in record.kb_ids]

    def found(self, text: str, count: int) -> List[Entity]:
        """Entities of this id or with a similar name."""
        kb, text = self.linker.kb, text.strip()
        found = [*([kb.get(text)] if text in kb else []), *kb.search(text, count)] if text else []
        return list({entity.id: entity for entity in found}.values())[:count]

    def similar(self, entity: NewEntity) -> List[Row]:
        """Clusters with mentions most similar to the central one."""
        new = self.new
        with new.lock:
            vectors, row = new.rows.vectors, new.rows.row(entity.members[entity.medoid].key)
            order = np.argsort(-(vectors @ vectors[row]), kind="stable")[: RELINKED * SIMILAR]
            ids = dict.fromkeys(new.id_of(new.rows.records[i].key) for i in order.tolist())
        rows = [self.queue.rows[one] for one in ids if one in self.queue.rows and one != entity.id]
        return rows[:SIMILAR]

    def effect(self, kb_id: str) -> Tuple[int, List[Row]]:
        """Count mentions that an entity now attracts, with clusters. Mentions that no entity
        fitted.

        Those most similar to it and its exemplars are linked anew, each by itself.
        """
        linker, new = self.linker, self.new
        linker.refresh()
        entity, store = linker.kb.get(kb_id), linker.exemplars
        own = [i for i, record in enumerate(store.records) if entity.id in record.kb_ids]
        vectors = np.vstack([linker.kb.vectors.of_entity(entity.id)[None], store.vectors[own]])
        with new.lock:
            best = (new.rows.vectors @ vectors.T).max(axis=1)
            best[new.clusters.closed()[new.clusters.numbers]] = -np.inf
            order = np.argsort(-best, kind="stable")[:RELINKED]
            mentions = new.rows.take(order[np.isfinite(best[order])])
            ids = [new.id_of(key) for key in mentions.keys]
        if not ids:
            return 0, []
        labels = [self.nlp.vocab.strings.add(record.label) for record in mentions.records]
        about = np.arange(len(ids)), np.array(labels, dtype=np.uint64), len(ids), mentions.vectors
        batch = MentionBatch(mentions.records, mentions.inputs, *about)
        with linker.datastore.reading():
            decided = linker.stages.decide(linker.stages.rank_encoded(batch), linker.threshold)
            found = np.flatnonzero(decided.entities == linker.kb.entities.position(entity.id))
        rows = [self.queue.rows.get(ids[i]) for i in found.tolist()]
        return len(found), [*dict.fromkeys(filter(None, rows))]


def version_of(entity: NewEntity) -> str:
    """Fingerprint of a new entity, so that changes are noticed."""
    keys = repr(sorted(record.key for record in entity.members))
    return hashlib.blake2b(keys.encode("utf8", "replace"), digest_size=6).hexdigest()
