"""Adds a new entity to the knowledge base, and its mentions to the exemplars."""

from dataclasses import replace
from typing import Callable, Dict, List, Optional, Sequence

import numpy as np

from ..encoders.inputs import SpanInputs
from ..kb.entity import Entity
from ..mentions.records import MentionKey, MentionRecord
from ..retrieval.datastore import Datastore
from .entities import EntityOrId, NewEntity
from .new_entities import NewEntities
from .verdicts import Entry


def accept(
    new_entities: NewEntities,
    entity: EntityOrId,
    datastore: Datastore,
    forget_outdated: Callable[[Sequence[MentionKey], str], object],
    *,
    stored: Optional[NewEntities] = None,
    kb_id: Optional[str] = None,
    title: str = "",
    description: str = "",
    types: Optional[Sequence[str]] = None,
    max_aliases: int = 10,
) -> Entity:
    """Add a new entity to the knowledge base, with its mentions as exemplars.

    Either both are added or, on an error, neither. The encoder must be ready. Raises ValueError
    where the id leads to another new entity by now, because it was merged.

    new_entities: Where the new entity is; it is released from there.
    entity: The new entity, or its id.
    datastore: The knowledge base and the exemplars.
    forget_outdated: Drops the corrections of mentions (their keys) that contradict an entity (its
        id in the knowledge base).
    stored: Other new entities that the same mentions leave, those of the linker.
    kb_id: The id to give it; by default that of "NEW-…" is "ENT-…". Where the knowledge base has
        the id, the mentions become exemplars of the existing entity.
    title: Its title; by default its name.
    description: Its description.
    types: Its types; by default the labels of its mentions.
    max_aliases: How many of the other surface forms of its mentions become aliases, the most
        frequent first.
    RETURNS: The entity.
    """

    def encode(inputs: SpanInputs) -> np.ndarray:
        return datastore.settings.similarity.prepare(datastore.encoder.encode_mentions(inputs))

    # The datastore's lock is always taken before that of the new entities.
    with datastore.editing(), new_entities.lock:
        new_entities.sync(encode, datastore.encoder.fingerprint)
        new_entity = new_entities.named(entity)
        kb, wanted = datastore.kb, kb_id or new_entity.id.replace("NEW-", "ENT-")
        is_new = kb.entities.position(wanted) < 0
        if is_new:
            added = entity_from(new_entity, wanted, title, description, max_aliases)
            kb.add(added if types is None else replace(added, types=tuple(types)))
        accepted = kb.get(wanted)
        mentions = new_entities.mentions_of(new_entity)
        records = [replace(record, kb_ids=(accepted.id,)) for record in mentions.records]
        before = _labels_of(mentions.keys, datastore)
        try:
            # Stored vectors may be missing, or may come from other weights: they come first.
            datastore.refresh()
            datastore.add_exemplars(records, mentions.inputs, mentions.vectors)
        except BaseException:
            if is_new:
                kb.remove(accepted.id)
            raise
        forget_outdated(mentions.keys, accepted.id)
        datastore.changed()
        new_entities.release(new_entity, accepted.id, added=is_new, labels=before)
    if stored is not None and stored is not new_entities:
        stored.leave_out(mentions.keys, accepted.id)
    return accepted


def _labels_of(keys: Sequence[MentionKey], datastore: Datastore) -> List[Optional[List[str]]]:
    """The gold ids of each mention that is an exemplar, None for one that is not."""
    rows = map(datastore.exemplars.row, keys)
    records = datastore.exemplars.records
    return [list(records[row].kb_ids) if row >= 0 else None for row in rows]


def undo(
    new_entities: NewEntities,
    datastore: Datastore,
    is_learned: Callable[[MentionKey, str], bool],
    *,
    stored: Optional[NewEntities] = None,
) -> Entry:
    """Take back the last decision on new entities, an acceptance also in the knowledge base.

    An entity that was added is removed again. Mentions that were exemplars before get back the
    entity that they had.

    new_entities: Where the decision was made.
    datastore: The knowledge base and the exemplars.
    is_learned: Whether a person has said of a mention (its key) that it is an entity (its id).
    stored: Other new entities that the same mentions have left, those of the linker.
    RETURNS: What the log says of the decision.
    """
    with datastore.editing(), new_entities.lock:
        entry = new_entities.undo(acceptances=True)[-1]
        if entry["action"] != "accept":
            return entry
        if "labels" in entry:
            _take_back(entry, datastore, is_learned)
    if stored is not None and stored is not new_entities:
        stored.take_in(entry["mentions"], entry["kb_id"])
    return entry


def _take_back(
    entry: Entry, datastore: Datastore, is_learned: Callable[[MentionKey, str], bool]
) -> None:
    """Undo what an acceptance has done to the knowledge base and the exemplars."""
    kb_id, store = entry["kb_id"], datastore.exemplars
    for (document, start, end), labels in zip(entry["mentions"], entry["labels"]):
        key = document, start, end
        row = store.row(key)
        # What was learned of a mention since then stays, also where it is the same entity.
        if row < 0 or store.records[row].kb_ids != (kb_id,) or is_learned(key, kb_id):
            continue
        if labels is None:
            store.remove([key])
        else:
            store.relabel(key, tuple(labels))
    if entry["added"] and kb_id in datastore.kb:
        datastore.kb.remove(kb_id)
    datastore.changed()


def entity_from(
    new_entity: NewEntity, kb_id: str, title: str, description: str, max_aliases: int
) -> Entity:
    """The entity of the knowledge base that a new entity becomes; see ``accept``."""
    title = title or new_entity.name
    by_form: Dict[str, List[MentionRecord]] = {}
    for record in new_entity.members:
        by_form.setdefault(record.text.lower(), []).append(record)
    by_count = sorted(by_form.values(), key=len, reverse=True)
    names = [records[0].text for records in by_count if records[0].text.lower() != title.lower()]
    labels = dict.fromkeys(record.label for record in new_entity.members if record.label)
    meta = {
        "discovered_as": new_entity.id,
        "mentions": len(new_entity.members),
        "documents": list(dict.fromkeys(record.document for record in new_entity.members)),
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
