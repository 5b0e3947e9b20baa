"""Move new entities to the knowledge base, and back. Their mentions become exemplars."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..encoders.inputs import SpanInputs
from ..kb.entity import Entity
from ..mentions.record import MentionRecord
from ..retrieval.datastore import Datastore
from .decision_log import Entry
from .entities import EntityOrId, NewEntity
from .new_entities import NewEntities


@dataclass(frozen=True)
class Acceptance:
    """Moves new entities to a linker's knowledge base and back.

    corrections: What people have said about single mentions, ``Corrections``.
    stored: The new entities of the linker: the same mentions leave them.
    require_ready: Raises an error where the encoder has no weights.
    """

    datastore: Datastore
    corrections: Any
    stored: NewEntities
    require_ready: Callable[[], None]

    def accept(
        self,
        new_entities: NewEntities,
        entity: EntityOrId,
        kb_id: str | None = None,
        *,
        title: str = "",
        description: str = "",
        types: Sequence[str] | None = None,
        max_aliases: int = 10,
    ) -> Entity:
        """See ``NewEntities.accept``. new_entities: Where the new entity is released from."""
        self.require_ready()
        datastore = self.datastore
        kb = self.datastore.kb
        # The datastore's lock is always taken before that of the new entities.
        with datastore.editing(), new_entities.lock:
            new_entities.sync(self._encode, datastore.encoder.fingerprint)
            new_entity = new_entities.named(entity)
            entity_id = kb_id or new_entity.id.replace("NEW-", "ENT-")
            is_new = kb.entities.position(entity_id) < 0
            if is_new:
                added = entity_from(
                    new_entity, entity_id, title, description, max_aliases
                )
                if not kb.entities.have_frequencies():
                    added = replace(added, frequency=0.0)
                kb.add(added if types is None else replace(added, types=tuple(types)))
            accepted = kb.get(entity_id)
            mentions = new_entities.mentions_of(new_entity)
            records = [
                replace(record, kb_ids=(accepted.id,)) for record in mentions.records
            ]
            rows = map(datastore.exemplars.row, mentions.keys)
            stored = datastore.exemplars.records
            before = [list(stored[row].kb_ids) if row >= 0 else None for row in rows]
            try:
                # Stored vectors may be missing, or may come from other weights: they come first.
                datastore.refresh()
                datastore.exemplars.extend(records, mentions.inputs, mentions.vectors)
            except BaseException:
                if is_new:
                    kb.remove(accepted.id)
                raise
            self.corrections.forget_outdated(mentions.keys, accepted.id)
            new_entities.mark_accepted(
                new_entity, accepted.id, added=is_new, labels=before
            )
        if self.stored is not new_entities:
            self.stored.mark_accepted_elsewhere(mentions.keys, accepted.id)
        return accepted

    def _encode(self, inputs: SpanInputs) -> np.ndarray:
        vectors = self.datastore.encoder.encode_mentions(inputs)
        return self.datastore.settings.similarity.prepare(vectors)

    def undo(self, new_entities: NewEntities, number: int | None = None) -> Entry:
        """See ``NewEntities.undo``. new_entities: Where the decision was made."""
        with self.datastore.editing(), new_entities.lock:
            entry = new_entities.revert(number, acceptances=True)
            if "kb_id" not in entry:
                return entry
            if "labels" in entry:
                self._take_back(entry)
        if self.stored is not new_entities:
            self.stored.unmark(entry["mentions"], entry["kb_id"])
        return entry

    def _take_back(self, entry: Entry) -> None:
        kb_id = entry["kb_id"]
        store = self.datastore.exemplars
        for (document, start, end), labels in zip(entry["mentions"], entry["labels"]):
            key = document, start, end
            row = store.row(key)
            if row < 0 or store.records[row].kb_ids != (kb_id,):
                continue
            # What was learned of a mention since then stays, also where it is the same entity.
            if self.corrections.is_learned(key, kb_id):
                continue
            if labels is None:
                store.remove([key])
            else:
                store.relabel(key, tuple(labels))
        kb = self.datastore.kb
        # With it, what was merged into it meanwhile would go.
        if (
            entry["added"]
            and kb_id in kb
            and kb_id not in kb.entities.redirects().values()
        ):
            kb.remove(kb_id)


def entity_from(
    new_entity: NewEntity, kb_id: str, title: str, description: str, max_aliases: int
) -> Entity:
    """Turn a new entity into one of the knowledge base. See ``NewEntities.accept``."""
    title = title or new_entity.name
    by_form: dict[str, list[MentionRecord]] = {}
    for record in new_entity.members:
        by_form.setdefault(record.text.lower(), []).append(record)
    by_count = sorted(by_form.values(), key=len, reverse=True)
    names = [
        records[0].text
        for records in by_count
        if records[0].text.lower() != title.lower()
    ]
    labels = dict.fromkeys(
        record.label for record in new_entity.members if record.label
    )
    meta = {
        "discovered_as": new_entity.id,
        "mentions": len(new_entity.members),
        "documents": list(
            dict.fromkeys(record.document for record in new_entity.members)
        ),
        "cohesion": new_entity.cohesion,
    }
    return Entity(
        kb_id,
        title,
        description,
        tuple(names[:max_aliases]),
        tuple(labels),
        float(len(new_entity.members)),
        meta,
    )
