"""Adds a new entity to the knowledge base, and its mentions to the exemplars."""

from dataclasses import replace
from typing import Callable, Dict, List, Optional, Sequence

import numpy as np

from ..encoders.inputs import SpanInputs
from ..kb.entity import Entity
from ..mentions.records import MentionKey, MentionRecord
from ..retrieval.datastore import Datastore
from .entities import NewEntity
from .new_entities import NewEntities


def accept(
    new_entities: NewEntities,
    entity_id: str,
    datastore: Datastore,
    forget_outdated: Callable[[Sequence[MentionKey], str], object],
    *,
    stored: Optional[NewEntities] = None,
    kb_id: Optional[str] = None,
    title: str = "",
    description: str = "",
    max_aliases: int = 10,
) -> Entity:
    """Add a new entity to the knowledge base, with its mentions as exemplars.

    Either both are added or, on an error, neither. The encoder must be ready.

    new_entities: Where the new entity is; it is released from there.
    entity_id: The id of the new entity.
    datastore: The knowledge base and the exemplars.
    forget_outdated: Drops the corrections of mentions (their keys) that contradict an entity (its
        id in the knowledge base).
    stored: Other new entities that the same mentions leave, those of the linker.
    kb_id: The id to give it; by default that of "NEW-…" is "ENT-…". Where the knowledge base has
        the id, the mentions become exemplars of the existing entity.
    title: Its title; by default its name.
    description: Its description.
    max_aliases: How many of the other surface forms of its mentions become aliases, the most
        frequent first.
    RETURNS: The entity.
    """

    def encode(inputs: SpanInputs) -> np.ndarray:
        return datastore.settings.similarity.prepare(datastore.encoder.encode_mentions(inputs))

    new_entities.sync(encode, datastore.encoder.fingerprint)
    new_entity = new_entities[entity_id]
    kb, wanted = datastore.kb, kb_id or new_entity.id.replace("NEW-", "ENT-")
    is_new = kb.entities.position(wanted) < 0
    if is_new:
        kb.add(entity_from(new_entity, wanted, title, description, max_aliases))
    entity = kb.get(wanted)
    mentions = new_entities.mentions_of(entity_id)
    records = [replace(record, kb_ids=(entity.id,)) for record in mentions.records]
    try:
        # Stored vectors may be missing, or may come from other weights: they are encoded first.
        datastore.refresh()
        datastore.add_exemplars(records, mentions.inputs, mentions.vectors)
    except BaseException:
        if is_new:
            kb.remove(entity.id)
        raise
    forget_outdated(mentions.keys, entity.id)
    datastore.changed()
    new_entities.release(entity_id, entity.id)
    if stored is not None and stored is not new_entities:
        stored.leave_out(mentions.keys, entity.id)
    return entity


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
