"""Decisions on a linker, and how to undo them."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span

from ....base.errors import message_of
from ....discovery.decision_log import (
    NOTES,
    ON_CLUSTERS,
    DecisionLog,
    Entry,
    clusters_of,
)
from ....kb.entity import NIL, Entity
from ....linker import find_linker
from ....linking.feedback import correction_key
from ..errors import ReviewMessages
from .journal import META, Recorded, journal_path


def replay(nlp: Language, model: Path) -> None:
    """Repeat decisions that came after a pipeline was saved, once it is loaded.

    Raises ValueError for the first line that can't be repeated, whatever it holds.
    """
    if not os.path.lexists(journal_path(model)):
        return
    recorded = Recorded.read(journal_path(model))
    start = recorded.start(nlp.meta, model)
    log = DecisionLog(recorded.entries[:start])
    for entry in recorded.entries[start:]:
        try:
            if entry["action"] == "undo":
                Deciding(nlp).take_back(log.decision(entry["of"]))
            else:
                entry = Deciding(nlp).make(entry)
        except Exception as error:  # a stranger may have written the line
            details = {"line": len(log.entries) + 2, "problem": message_of(error)}
            raise ReviewMessages.E912(path=recorded.path, **details) from error
        log.entries.append(entry)
    if log.entries:
        nlp.meta[META] = {"journal": recorded.id, "entries": len(log.entries)}


class Deciding:
    """Makes and undoes decisions on a pipeline's linker."""

    def __init__(self, nlp: Language) -> None:
        self.nlp = nlp
        self.linker = find_linker(nlp)

    def make(self, entry: Entry) -> Entry:
        """Apply an entry of the journal. RETURNS: The entry with the data that undoing it needs."""
        action = entry["action"]
        new = self.linker.new_entities
        before = len(new.log)
        if action in (*ON_CLUSTERS, *NOTES):
            # The part that a split makes is not there yet, where it is repeated.
            ids = (
                entity_id
                for entity_id in clusters_of(entry)
                if entity_id != entry.get("off")
            )
            entry = {
                **entry,
                "names": {entity_id: new.named(entity_id).name for entity_id in ids},
            }
        if action in ON_CLUSTERS:
            try:
                entry = {**entry, **self._decide(entry)}
            except BaseException:
                self._undo_steps(self._steps(before))
                raise
            return {**entry, "steps": self._steps(before)}
        if action == "learn":
            return {**entry, **self._learn(entry)}
        if action.startswith("kb_"):
            return {**entry, **self._edit(entry)}
        return entry

    def take_back(self, entry: Entry) -> None:
        """Take a decision back. Raises ValueError where later ones outside depend on it."""
        if entry["action"] in ON_CLUSTERS:
            self._undo_steps(entry["steps"])
        elif entry["action"] == "learn":
            self._undo_learn(entry)
        elif entry["action"].startswith("kb_"):
            self._undo_edit(entry)

    def _steps(self, before: int) -> list[int]:
        """The decisions that the linker's own log has had since it had ``before`` entries."""
        return [
            e["n"]
            for e in self.linker.new_entities.history.standing()
            if e["n"] >= before
        ]

    def _undo_steps(self, steps: Sequence[int]) -> None:
        log = self.linker.new_entities.history
        for step in steps:
            log.decision(step)  # all can be taken back, or none is
        for step in reversed(steps):
            self.linker.new_entities.undo(step)

    def _decide(self, entry: Entry) -> dict[str, Any]:
        """Make a decision on new entities. RETURNS: What the entry says beside it."""
        linker = self.linker
        new = self.linker.new_entities
        action = entry["action"]
        if action == "accept_all":
            return {
                "entities": [
                    new.accept(entity_id).to_dict() for entity_id in entry["ids"]
                ]
            }
        if action == "accept":
            kb_id = entry.get("kb_id")
            details = {"types": entry.get("types")}
            details.update(
                (name, entry.get(name, "")) for name in ("title", "description")
            )
            entity = new.accept(entry["id"], kb_id or None, **details)
            added = bool(new.log[-1]["added"])
            return {"kb_id": entity.id, "entity": entity.to_dict(), "added": added}
        if action in ("link", "link_all"):
            entity = linker.kb.get(entry["kb_id"])
            for entity_id in entry.get("ids") or [entry["id"]]:
                new.accept(entity_id, entity.id)
            return {"kb_id": entity.id, "entity": {"title": entity.title}}
        if action == "split":
            keys = ["{}:{}:{}".format(*m.key) for m in new.named(entry["id"]).members]
            numbers = [
                number for number, key in enumerate(keys) if key in entry["mentions"]
            ]
            return {"off": new.split(entry["id"], numbers).id, "members": numbers}
        if action == "merge":
            new.merge(entry["id"], *entry["others"])
        else:
            new.reject(entry["id"])
        return {}

    def _learn(self, entry: Entry) -> dict[str, Any]:
        span = self._span(entry)
        before = self.linker.stages.corrections.items.get(correction_key(span))
        self.linker.feedback.learn(span, entry["kb_id"])
        return {
            "before": None if before is None else [before.kb_id, list(before.rejected)]
        }

    def _undo_learn(self, entry: Entry) -> None:
        span = self._span(entry)
        self.linker.feedback.forget(span)
        kb_id, rejected = entry["before"] or (None, [])
        if kb_id is not None:
            self.linker.feedback.learn(span, kb_id or NIL)
        for rejected_id in rejected:
            self.linker.feedback.reject_link(span, rejected_id)

    def _span(self, entry: Entry) -> Span:
        """The mention in its cut document, at exact offsets."""
        text = entry["text"]
        place = (entry["start"], entry["end"])
        if not 0 <= place[0] < place[1] <= len(text):
            raise ValueError(f"{place[0]} to {place[1]} is not within the text.")
        words = text[: place[0]], text[slice(*place)], text[place[1] :]
        return in_text(self.nlp, words, entry["document"], entry["label"])

    def _edit(self, entry: Entry) -> dict[str, Any]:
        kb = self.linker.kb
        entity = entry.get("entity", {})
        name = entry["action"][3:]
        if name == "upsert":
            ids = [entity["id"] for entity in entry["entities"]]
        elif name == "remove":
            ids = [kb.get(entity_id).id for entity_id in entry["ids"]]
        elif name == "merge":
            ids = [kb.get(entry["id"]).id, kb.get(entry["into"]).id]
        else:
            ids = [entity["id"]]
        ids = list(dict.fromkeys(ids))
        changed = set(ids)
        redirects = {
            old: to for old, to in kb.entities.redirects().items() if to in changed
        }
        before = [kb.get(entity_id).to_dict() for entity_id in ids if entity_id in kb]
        if name == "add":
            kb.add([Entity(**entity)])
        elif name == "update":
            kb.update([replace(kb.get(ids[0]), **entity)])
        elif name == "upsert":
            kb.upsert(entry["entities"])
        elif name == "remove":
            kb.remove(ids)
        else:
            kb.merge(*ids)
        return {"changed": ids, "before": before, "redirects": redirects}

    def _undo_edit(self, entry: Entry) -> None:
        kb = self.linker.kb
        with kb.transaction():
            kb.remove(
                [
                    entity_id
                    for entity_id in (*entry["redirects"], *entry["changed"])
                    if entity_id in kb
                ]
            )
            kb.add([Entity(**entity) for entity in entry["before"]])
            kb.redirect(entry["redirects"])


def span_in(nlp: Language, member: dict[str, Any]) -> Span:
    """A mention in the text around it."""
    words = member["before"], member["text"], member["after"]
    return in_text(nlp, words, member["document"], member["label"])


def in_text(nlp: Language, strings: Sequence[str], document: str, label: str) -> Span:
    """A mention in a document of at most three words.

    strings: The text before it, its own, and the text after it.
    """
    words = [string for string in strings if string]
    doc = Doc(nlp.vocab, words, [False] * len(words))
    doc.user_data["doc_id"] = document
    start = int(bool(strings[0]))
    return Span(doc, start, start + 1, label=label)
