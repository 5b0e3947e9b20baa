"""Import of new entities from a file of ``arbo discover``."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span

from ....base.errors import ArboError
from ....discovery.clusters import Clusters
from ....discovery.entities import NearestEntity
from ....discovery.new_entities import NewEntities
from ....discovery.store import Unlinked
from ....linker import find_linker
from ....mentions.record import MentionKey
from ....storage.lines import read_records
from ..errors import ReviewMessages

FoundRecord = dict[str, Any]
# The key of a mention, the number of its entity, the mention, the nearest entities.
_Member = tuple[MentionKey, int, Span, list[NearestEntity]]


def read_found(nlp: Language, path: Path) -> list[FoundRecord]:
    """The new entities of a file, checked. Raises ValueError with the line of a wrong one."""
    records = []
    for line, record in read_records(path):
        try:
            _members(nlp, record, 0)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ArboError(ReviewMessages.E914.format(path=path, line=line)) from None
        records.append(record)
    return records


def import_new_entities(nlp: Language, records: Sequence[FoundRecord]) -> bool:
    """Let a linker keep new entities. RETURNS: Whether there was anything new.

    Mentions are encoded in the text round them that the records have.
    """
    linker = find_linker(nlp)
    ids = [record["id"] for record in records]
    members = [one for i, record in enumerate(records) for one in _members(nlp, record, i)]
    if all(entity in linker.new_entities.clusters for entity in ids):
        return False
    linker.encoder.require_ready(linker.name)
    places = {key[0]: place for place, (key, *_) in reversed(list(enumerate(members)))}
    members.sort(key=lambda member: (places[member[0][0]], member[0][1]))
    batch = linker.stages.encode(linker.stages.read([[span] for _, _, span, _ in members]))
    kept = [replace(one, key=key) for one, (key, *_) in zip(batch.records, members)]
    documents = np.array([places[key[0]] for key, *_ in members], dtype=np.int64)
    nearest = [one for *_, one in members]
    new = NewEntities(linker.threshold, linker.encoder.fingerprint)
    new.rows.extend(Unlinked(kept, documents, nearest, batch.inputs, batch.encoded))
    numbers = np.array([number for _, number, *_ in members], dtype=np.int64)
    own = np.arange(len(ids), dtype=np.int64)
    new.clusters = Clusters(new.rows, new.history, ids, numbers, own)
    new.documents = len(places)
    linker.new_entities.update(new)
    return True


def _members(nlp: Language, record: FoundRecord, number: int) -> list[_Member]:
    """The mentions of a new entity. Each has its nearest entities, so that any part has them."""
    fields = (map(one.get, NearestEntity._fields) for one in record["nearest"])
    near = [NearestEntity(str(a), str(b), float(p)) for a, b, p in fields]
    found = []
    for member in record["members"]:
        document = member.get("fingerprint", member["document"])
        key = (str(document), int(member["start"]), int(member["end"]))
        found.append((key, number, span_in(nlp, member), near))
    if not found or not isinstance(record["id"], str):
        raise ValueError
    return found


def span_in(nlp: Language, member: FoundRecord) -> Span:
    """A mention in the text around it."""
    parts = member["before"], member["text"], member["after"]
    return in_text(nlp, parts, member["document"], member["label"])


def in_text(nlp: Language, parts: Sequence[str], document: str, label: str) -> Span:
    """A mention in a document of at most three words.

    parts: The text before it, its own, and the text after it."""
    words = [part for part in parts if part]
    doc = Doc(nlp.vocab, words, [False] * len(words))
    doc.user_data["doc_id"] = document
    start = int(bool(parts[0]))
    return Span(doc, start, start + 1, label=label)
