"""A review: decisions on a linker, journalled at once. Each before the page says so."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from spacy.language import Language

from ...discovery.decision_log import NOTES, Entry, clusters_of
from ...discovery.entities import NewEntity
from ...discovery.new_entities import NewEntities
from ...kb.entity import Entity
from ...linking.corrections import CorrectionKey
from ...mentions.record import MentionKey, MentionRecord
from ...pipelines import save_pipeline
from .decisions.deciding import Deciding
from .decisions.journal import META, Journal
from .errors import ReviewMessages
from .near import Near
from .queue import Filters, Queue, QueueRow, version_of

# Similar clusters that are shown.
SIMILAR = 6


class Review:
    """Contents and actions of the pages. Threads may call all methods at the same time.

    nlp: The pipeline, loaded by ``load_pipeline``, which makes the decisions of the journal.
    save: What saves the pipeline, in whatever thread; by default ``save_pipeline``.
    """

    def __init__(
        self,
        nlp: Language,
        model: Path,
        *,
        read_only: bool = False,
        save: Callable[[Language], None] | None = None,
    ) -> None:
        self.nlp = nlp
        self.model = model
        self.read_only = read_only
        self.journal = Journal(model, read_only=read_only)
        self.deciding = Deciding(nlp)
        self.linker = self.deciding.linker
        self.near = Near(self.linker)
        self._saved = self.journal.saved
        self._save = save or partial(save_pipeline, path=model)
        self.saved = False
        # One decision at a time; and what the pages show, which waits for no save.
        self._deciding = threading.RLock()
        self.lock = threading.RLock()
        # Held by whoever makes or reads documents, see ``Service``; taken after the first of these.
        self.alone = threading.RLock()
        types = frozenset(filter(None, self.linker.kb.entities.type_counts()))
        self.queue = Queue(lambda: self.new, types)
        self._note({})

    @property
    def new(self) -> NewEntities:
        """The new entities. Those that were decided on are not among them."""
        return self.linker.new_entities

    # Deciding

    def decide(
        self, action: str, by: str, seen: Mapping[str, str] | None = None, **more: Any
    ) -> Entry:
        """Make a decision. RETURNS: Its entry in the journal, which has ``more`` too.

        Raises ValueError where it means nothing, or where what it is on has changed since.

        seen: The versions of new entities, entities and mentions when they were looked at, by id;
            see ``version``.
        """
        with self._deciding:
            self._check_writable()
            self._check(action, seen or {}, more)
            entry = {"action": action, "by": by, **more}
            with self.alone:
                entry = self.deciding.make(entry)
            try:
                entry = self.journal.append(entry)
            except BaseException:
                with self.alone:
                    self.deciding.take_back(entry)
                raise
            finally:
                self._note(entry)
            return entry

    def _check(
        self, action: str, seen: Mapping[str, str], more: dict[str, Any]
    ) -> None:
        """Refuse a decision that means nothing or saw something else."""
        ids = clusters_of({"action": action, **more})
        for entity_id in ids:
            self._check_open(entity_id)
        several = {"merge": "others"}.get(action, "ids")
        if len(set(ids)) < len(ids) or not more.get(several, True):
            raise ReviewMessages.E920()
        for entity_id, version in seen.items():
            if version and version != self.version(action, entity_id):
                raise ReviewMessages.E918(id=entity_id)

    def _check_open(self, name: str) -> None:
        """Refuse an id that is no open new entity."""
        if name in self.queue.rows:
            return
        now = self.new.resolve(name) if name in self.new.clusters else None
        became = (
            "unknown" if now is None else f"now {now}" if now else "rejected by now"
        )
        raise ReviewMessages.E921(id=name, became=became)

    def version(self, action: str, name: str) -> str:
        """The version of what a decision is on. KeyError where it is not there."""
        if action == "learn":
            numbers = [
                e["n"]
                for e in self.standing
                if e["action"] == action
                and mention_name((*e["key"], e["label"])) == name
            ]
            return str(numbers[-1]) if numbers else "-"
        return version_of(
            self.linker.kb.get(name) if action[:3] == "kb_" else self.new[name]
        )

    def undo(self, by: str, number: int | None = None) -> Entry:
        """Take back a decision. RETURNS: Its entry.

        Raises ValueError where it does not stand, or where a later one depends on it.

        number: That of the decision; by default the last one.
        """
        with self._deciding:
            self._check_writable()
            entry = self.journal.log.decision(number)
            self.journal.append({"action": "undo", "of": entry["n"], "by": by})
            try:
                with self.alone:
                    self.deciding.take_back(entry)
            except BaseException:
                self.journal.drop_last()
                raise
            finally:
                self._note(entry)
            return entry

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReviewMessages.E916()

    def _note(self, entry: Entry) -> None:
        """Update skipped, flagged and decided entries after a decision. They are read from the
        journal.
        """
        with self.lock:
            self.queue.update(
                clusters_of({"action": "flag", **entry}) if entry else ()
            )
            self.standing = self.journal.log.standing()
            self.skipped = {
                entry["id"] for entry in self.standing if entry["action"] == "skip"
            }
            flags = {
                e["id"]: e["comment"] for e in self.standing if e["action"] == "flag"
            }
            self.flags = {name: comment for name, comment in flags.items() if comment}
            made = [entry for entry in self.standing if entry["action"] not in NOTES]
            self.decided = sum(len(entry.get("ids", "1")) for entry in made)

    # Saving

    @property
    def unsaved(self) -> int:
        """Number of journal entries that the saved pipeline lacks."""
        return 0 if self.read_only else len(self.journal.log.entries) - self._saved

    def save(self) -> None:
        """Save the pipeline with all decisions. Pages are shown meanwhile."""
        with self._deciding:
            if self.unsaved:
                count = len(self.journal.log.entries)
                self.nlp.meta[META] = {"journal": self.journal.id, "entries": count}
                self._save(self.nlp)
                self._saved = count
                self.saved = True

    # What pages show

    def select(self, filters: Filters) -> list[QueueRow]:
        """The rows of the queue that pass the filters."""
        with self.lock:
            return self.queue.select(filters, self.skipped, set(self.flags))

    def exemplars(self, entity_id: str) -> list[MentionRecord]:
        """The labelled mentions of an entity, and of those that were merged into it."""
        return [
            record
            for record in self.linker.exemplars.records
            if entity_id in self.near.entities_of(record)
        ]

    def found(self, text: str, count: int) -> list[Entity]:
        """Entities of this id or with a similar name."""
        kb = self.linker.kb
        text = text.strip()
        same_id = [kb.get(text)] if text in kb else []
        similar = kb.search(text, count) if text else []
        entities = {entity.id: entity for entity in (*same_id, *similar)}
        return list(entities.values())[:count]

    def similar(self, entity: NewEntity) -> list[QueueRow]:
        """Clusters with mentions most similar to the central one."""
        ids = self.near.similar(entity)
        return [
            self.queue.rows[entity_id]
            for entity_id in ids
            if entity_id in self.queue.rows
        ][:SIMILAR]

    def effect(self, kb_id: str) -> tuple[int, list[QueueRow]]:
        """Count mentions that an entity now attracts, with their clusters."""
        ids = self.near.attracted(kb_id)
        rows = (self.queue.rows.get(entity_id) for entity_id in ids)
        return len(ids), [*dict.fromkeys(filter(None, rows))]

    def entry(self, number: str | None) -> list[Entry]:
        """The entry of a number in an address, if any."""
        if not number or not number.isdecimal() or len(number) > 9:
            return []
        return self.journal.log.entries[int(number) : int(number) + 1]

    def place(self, entry: Entry) -> tuple[str, ...]:
        """The present page of a decision: its path and id, empty for none."""
        for entity_id in clusters_of(entry):
            if entity_id in self.queue.rows:
                return "/cluster", entity_id
        ids = [entry.get("kb_id", ""), *entry.get("changed", ())]
        return next(
            (
                ("/kb/entity", entity_id)
                for entity_id in ids
                if entity_id in self.linker.kb
            ),
            (),
        )

    def accepted(self, key: MentionKey) -> str:
        """The entity that a mention became, "" for none."""
        row = self.new.rows.row(key)
        clusters = self.new.clusters
        number = clusters.current(int(clusters.of_mention[row])) if row >= 0 else -1
        return clusters.accepted.get(number, "")

    def closed(self) -> set[MentionKey]:
        """The mentions whose new entity was decided on."""
        new = self.new
        with new.lock:
            closed = new.clusters.closed()[new.clusters.numbers].tolist()
            return {
                record.key
                for record, is_closed in zip(new.rows.records, closed)
                if is_closed
            }


def mention_name(key: CorrectionKey) -> str:
    """A mention and its label as text."""
    return "{}:{}:{}:{}".format(*key)
