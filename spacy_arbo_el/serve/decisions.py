"""Decisions on a linker, and how to undo them."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Sequence

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span

from ..discovery.entities import NearestEntity
from ..discovery.new_entities import NewEntities
from ..discovery.store import Clusters, Unlinked
from ..errors import Errors
from ..kb.entity import NIL, Entity
from ..linker import find_linker
from ..linking.feedback import key_of
from ..storage.lines import read_records
from .journal import META, Entry, entries_in, journal_path, read_journal

# Decisions that the linker keeps in its own log, and takes back itself.
LOGGED = ("accept", "link", "accept_all", "merge", "split", "reject")


def replay(nlp: Language, model: Path) -> None:
    """Repeat decisions that came after a pipeline was saved. Safe to call again."""
    path = journal_path(model)
    journal, entries, _ = read_journal(path)
    start = entries_in(nlp.meta, journal)
    for number, entry in enumerate(entries[start:], start):
        try:
            if entry["action"] == "undo":
                Deciding(nlp).take_back(entries[entry["of"]])
            else:
                entries[number] = Deciding(nlp).make(entry)
        except (ValueError, KeyError, OSError) as error:
            about = {"line": number + 2, "problem": said(error)}
            raise ValueError(Errors.E912.format(path=path, **about)) from error
    if entries:
        nlp.meta[META] = {"journal": journal, "entries": len(entries)}


class Deciding:
    """Makes and undoes decisions on a pipeline's linker."""

    def __init__(self, nlp: Language) -> None:
        self.nlp, self.linker = nlp, find_linker(nlp)

    def make(self, entry: Entry) -> Entry:
        """Do what an entry of the journal says. RETURNS: It, with what taking it back needs."""
        action, new = entry["action"], self.linker.new_entities
        before = new.history.next_step()
        if action in LOGGED:
            try:
                entry = {**entry, **self._decide(entry)}
            except BaseException:
                self._undo_steps(range(before, new.history.next_step()))
                raise
            return {**entry, "steps": list(range(before, new.history.next_step()))}
        if action == "import":
            import_new_entities(self.nlp, Path(entry["path"]))
        elif action == "learn":
            return {**entry, **self._learn(entry)}
        elif action.startswith("kb_"):
            return {**entry, **self._edit(entry)}
        # Those that are left change nothing but what the pages show: "skip" and "flag".
        return entry

    def take_back(self, entry: Entry) -> None:
        """Take a decision back. Raises ValueError where others were made elsewhere since."""
        if entry["action"] in LOGGED:
            self._undo_steps(entry["steps"])
        elif entry["action"] == "learn":
            self._undo_learn(entry)
        elif entry["action"].startswith("kb_"):
            self._undo_edit(entry)

    def _undo_steps(self, steps: Sequence[int]) -> None:
        for step in reversed(steps):
            last = self.linker.new_entities.history.last()[0]
            if last["step"] != step:
                raise ValueError(Errors.E913.format(action=last["action"], id=last["id"]))
            self.linker.new_entities.undo()

    def _decide(self, entry: Entry) -> Dict[str, Any]:
        """Make a decision on new entities. RETURNS: What the entry says beside it."""
        linker, new, action = self.linker, self.linker.new_entities, entry["action"]
        if action == "accept_all":
            return {"entities": [linker.new_entities.accept(one).to_dict() for one in entry["ids"]]}
        if action == "accept":
            kb_id, about = entry.get("kb_id"), {"types": entry.get("types")}
            about.update((name, entry.get(name, "")) for name in ("title", "description"))
            entity = linker.new_entities.accept(entry["id"], kb_id or None, **about)
            return {"kb_id": entity.id, "entity": entity.to_dict()}
        if action == "link":
            entity = linker.new_entities.accept(entry["id"], linker.kb.get(entry["kb_id"]).id)
            return {"kb_id": entity.id, "entity": {"title": entity.title}}
        if action == "split":
            keys = ["{}:{}:{}".format(*m.key) for m in new.named(entry["id"]).members]
            numbers = [number for number, key in enumerate(keys) if key in entry["mentions"]]
            return {"off": new.split(entry["id"], numbers).id, "members": numbers}
        if action == "merge":
            new.merge(entry["id"], *entry["others"])
        else:
            new.reject(entry["id"])
        return {}

    def _learn(self, entry: Entry) -> Dict[str, Any]:
        span = self._span(entry)
        before = self.linker.stages.corrections.items.get(key_of(span))
        self.linker.feedback.learn(span, entry["kb_id"])
        return {"before": None if before is None else [before.kb_id, list(before.rejected)]}

    def _undo_learn(self, entry: Entry) -> None:
        span = self._span(entry)
        self.linker.feedback.forget(span)
        kb_id, rejected = entry["before"] or (None, [])
        if kb_id is not None:
            self.linker.feedback.learn(span, kb_id or NIL)
        for other in rejected:
            self.linker.feedback.reject_link(span, other)

    def _span(self, entry: Entry) -> Span:
        """The mention in its cut document, at exact offsets."""
        text, start, end = entry["text"], entry["start"], entry["end"]
        words = [word for word in (text[:start], text[start:end], text[end:]) if word]
        doc = Doc(self.nlp.vocab, words, [False] * len(words))
        doc.user_data["doc_id"] = entry["document"]
        return Span(doc, int(start > 0), int(start > 0) + 1, label=entry["label"])

    def _edit(self, entry: Entry) -> Dict[str, Any]:
        """Change the knowledge base, noting the entities as before."""
        kb, given, name = self.linker.kb, entry.get("entity", {}), entry["action"][3:]
        ids = list(dict.fromkeys(one["id"] for one in entry.get("entities", ())))
        ids = ids or [given.get("id") or kb.get(entry["id"]).id]
        ids += [kb.get(entry["into"]).id] if name == "merge" else []
        redirects = {old: to for old, to in kb.entities.redirects().items() if to in ids}
        before = [kb.get(one).to_dict() for one in ids if one in kb]
        if name == "add":
            kb.add([Entity(**given)])
        elif name == "update":
            kb.update([replace(kb.get(ids[0]), **given)])
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
            kb.remove([one for one in (*entry["redirects"], *entry["changed"]) if one in kb])
            kb.add([Entity(**entity) for entity in entry["before"]])
            kb.redirect(entry["redirects"])


def said(error: Exception) -> str:
    """Message of an error. The text of a KeyError has quotes."""
    return str(error.args[0] if isinstance(error, KeyError) and error.args else error)


def import_new_entities(nlp: Language, path: Path) -> bool:
    """Let a linker keep the new entities of a file. RETURNS: Whether there was anything new.

    Mentions are encoded in the text round them that the file has.
    """
    linker = find_linker(nlp)
    entities: List[str] = []
    members: List[Any] = []
    for line, entity in read_records(path):
        try:
            fields = (map(one.get, NearestEntity._fields) for one in entity["nearest"])
            near = [NearestEntity(*values) for values in fields]
            for number, member in enumerate(entity["members"]):
                document = member.get("fingerprint", member["document"])
                key = (document, member["start"], member["end"])
                own = near if number == entity["medoid"] else []
                members.append((key, len(entities), span_in(nlp, member), own))
            entities.append(entity["id"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(Errors.E914.format(path=path, line=line)) from None
    if all(entity in linker.new_entities.clusters for entity in entities):
        return False
    linker.encoder.require_ready(linker.name)
    places = {key[0]: place for place, (key, *_) in reversed(list(enumerate(members)))}
    members.sort(key=lambda member: (places[member[0][0]], member[0][1]))
    batch = linker.stages.encode(linker.stages.read([[span] for _, _, span, _ in members]))
    records = [replace(one, key=key) for one, (key, *_) in zip(batch.records, members)]
    documents = np.array([places[key[0]] for key, *_ in members], dtype=np.int64)
    nearest = [one for *_, one in members]
    new = NewEntities(linker.threshold, linker.encoder.fingerprint)
    new.rows.extend(Unlinked(records, documents, nearest, batch.inputs, batch.encoded))
    numbers = np.array([number for _, number, *_ in members], dtype=np.int64)
    new.clusters = Clusters(numbers, np.arange(len(entities), dtype=np.int64), entities)
    new.documents = len(places)
    linker.new_entities.update(new)
    return True


def span_in(nlp: Language, member: Dict[str, Any]) -> Span:
    """A mention in the text around it."""
    words: List[str] = [member[name] or " " for name in ("before", "text", "after")]
    doc = Doc(nlp.vocab, words, [True, True, False])
    doc.user_data["doc_id"] = member["document"]
    return Span(doc, 1, 2, label=member["label"])
