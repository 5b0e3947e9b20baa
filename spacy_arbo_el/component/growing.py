"""New entities that grow: kept from document to document, and taken into the knowledge base."""

import os
from dataclasses import replace
from typing import Dict, Iterable, List, Optional, Set, Tuple

import numpy as np
from spacy.tokens import Doc, Span

from ..annotations import Link
from ..discovery.found import Discovered, Member
from ..discovery.new_entities import NewEntities
from ..discovery.rows import Rows, Unlinked
from ..errors import Errors
from ..kb.entity import Entity
from ..mentions import keys_of
from ..retrieval.exemplars import Key, Labelled
from ..retrieval.neighbours import nearest_earlier
from .linking import Linked, LinksOfDocs, Spans, put
from .together import TogetherLinker


class GrowingLinker(TogetherLinker):
    """The part of ``ArboLinker`` that keeps new entities and takes them up.

    stream: Whether ``nlp(doc)`` and ``nlp.pipe`` keep what they find: each mention that no entity
        fits joins the new entity that it is near, in ``new_entities``, or begins one. What a
        document gets depends on the documents before it, not on batches. Off until it is set.
    new_entities: The new entities that are kept; saved with the pipeline. What ``discover`` gave
        can be put here, to go on from it.
    """

    new_entities: NewEntities
    # The process in which streaming was set, None for off.
    _streams_in: Optional[int] = None

    @property
    def stream(self) -> bool:
        """Whether documents add to ``new_entities``."""
        return self._streams_in is not None

    @stream.setter
    def stream(self, value: bool) -> None:
        self._streams_in = os.getpid() if value else None

    def predict(self, docs: Iterable[Doc]) -> LinksOfDocs:
        """Link the mentions of docs, each doc for itself, without changing them.

        With ``stream``, mentions that no entity fits are added to ``new_entities``.
        RETURNS: For each doc its links by the mentions' character offsets.
        """
        if not self.stream:
            return super().predict(docs)
        if self._streams_in != os.getpid():
            raise ValueError(Errors.E707)
        if self.discovery is None:
            raise ValueError(Errors.E709)
        docs = list(docs)
        wanted, links = self._mentions(docs)
        if any(wanted):
            put(links, wanted, self._keep(wanted, self._link(wanted, self.threshold)))
        self.new_entities.documents += len(docs)
        return links

    def set_annotations(self, docs: Iterable[Doc], links: LinksOfDocs) -> None:
        """Write the links that ``predict`` found onto the docs; see ``annotations.py``."""
        docs = list(docs)
        super().set_annotations(docs, links)
        if self.stream:
            self._annotate_new(docs, links)

    def _keep(self, spans: Spans, linked: Linked) -> List[Link]:
        """Add to the new entities. RETURNS: The links, with the ids of these."""
        found = self.new_entities
        found.threshold = self.threshold
        found.sync(self._encode_prepared, self.encoding.fingerprint)
        numbers = iter(range(len(linked.links)))
        names: Dict[int, str] = {}
        waiting = _Waiting()

        def add_waiting() -> None:
            if waiting.rows:
                ranked = linked.ranked[0][waiting.rows], linked.ranked[1][waiting.rows]
                vectors = linked.vectors[waiting.rows]
                new = self._unlinked(waiting.documents, waiting.spans, vectors, ranked)
                names.update(zip(waiting.rows, found.attach(new, self._earlier(new))))
                waiting.clear()

        for document, group in enumerate(spans, found.documents):
            here = [(n, s) for s, n in zip(group, numbers) if linked.decisions.entity[n] < 0]
            left = [span for _, span in here]
            keys = dict(zip(keys_of(left), here))
            # The same text is the same document: its mentions are there already.
            if any(key in waiting.keys or found.rows.row(key) >= 0 for key in keys):
                add_waiting()
            names.update({n: found.id_of(key) for key, (n, _) in keys.items()})
            new = {key: at for key, at in keys.items() if found.rows.row(key) < 0}
            if new:
                waiting.add(document, new)
        add_waiting()
        return [
            replace(link, cluster=names[i]) if i in names else link
            for i, link in enumerate(linked.links)
        ]

    def _earlier(self, new: Unlinked) -> np.ndarray:
        """Rows of the mentions that came before each and are near enough to be the same."""
        discovery = self.discovery
        assert discovery is not None
        rows = self.new_entities.rows
        known = rows.features(discovery.features, discovery.letters)
        here = discovery.features(new.vectors, new.forms)
        by = discovery.compared_by(self.similarity)
        near, values = nearest_earlier(known, here, discovery.neighbours, by)
        near = np.where(values >= discovery.least_similarity(self.calibration), near, -1)
        if self.cfg["match_types"]:
            same = [
                [row >= 0 and _member(row, rows, new).label == member.label for row in found]
                for found, member in zip(near.tolist(), new.members)
            ]
            near = np.where(same, near, -1)
        return near

    def accept(
        self,
        name: str,
        kb_id: Optional[str] = None,
        *,
        found: Optional[NewEntities] = None,
        title: str = "",
        description: str = "",
        max_aliases: int = 10,
    ) -> Entity:
        """Take a new entity into the knowledge base, its mentions as exemplars.

        The next document links to it. What it came from stands in the entity's ``meta`` and in the
        ``log`` of the new entities.

        name: The new entity's id. kb_id: The id to give it; by default that of "NEW-…" is "ENT-…".
            Where the knowledge base has the id, the mentions become exemplars of what is there.
        found: What ``discover`` gave, where it isn't in ``new_entities``.
        title, description: Of the entity; its title is the new entity's name by default.
        max_aliases: How many of the other forms of its mentions become aliases, the most frequent.
        RETURNS: The entity.
        """
        source = self.new_entities if found is None else found
        self.encoding.require_ready(self.name)
        source.sync(self._encode_prepared, self.encoding.fingerprint)
        one = source[name]
        kb, wanted = self.memory.kb, kb_id or one.id.replace("NEW-", "ENT-")
        is_new = kb.entities.position(wanted) < 0
        if is_new:
            kb.add(_as_entity(one, wanted, title, description, max_aliases))
        entity = kb.get(wanted)
        mentions = source.mentions_of(name)
        items = [
            Labelled(key, (entity.id,), m.text, m.context, m.label, form, m.doc_id)
            for key, m, form in zip(mentions.keys, mentions.members, mentions.forms)
        ]
        try:
            # Older vectors may be missing, or those of other weights: these are encoded with them.
            self.memory.refresh()
            self.memory.store(items, mentions.windows, mentions.vectors)
        except BaseException:
            if is_new:
                kb.remove(entity.id)
            raise
        for key in mentions.keys:
            # What was said before it was an entity: that it is none, or not this one.
            said = self.memory.corrections.items.get(key)
            if said is not None and (said.kb_id == "" or entity.id in said.refused):
                del self.memory.corrections.items[key]
        self.memory.changed()
        source.release(name, entity.id)
        if source is not self.new_entities:
            self.new_entities.leave_out(mentions.keys, entity.id)
        return entity


def _member(row: int, rows: Rows, new: Unlinked) -> Member:
    return rows.members[row] if row < len(rows) else new.members[row - len(rows)]


class _Waiting:
    """Mentions that are to be added together, by document."""

    def __init__(self) -> None:
        self.keys: Set[Key] = set()
        self.rows: List[int] = []
        self.documents: List[int] = []
        self.spans: List[List[Span]] = []

    clear = __init__

    def add(self, document: int, mentions: Dict[Key, Tuple[int, Span]]) -> None:
        self.keys.update(mentions)
        self.rows += [row for row, _ in mentions.values()]
        self.documents.append(document)
        self.spans.append([span for _, span in mentions.values()])


def _as_entity(
    one: Discovered, kb_id: str, title: str, description: str, max_aliases: int
) -> Entity:
    title = title or one.name
    forms: Dict[str, List[Member]] = {}
    for member in one.members:
        forms.setdefault(member.text.lower(), []).append(member)
    by_count = sorted(forms.values(), key=len, reverse=True)
    aliases = [group[0].text for group in by_count if group[0].text.lower() != title.lower()]
    labels = tuple(dict.fromkeys(member.label for member in one.members if member.label))
    documents = [member.doc_id or str(member.document) for member in one.members]
    meta = {
        "discovered_as": one.id,
        "mentions": len(one.members),
        "documents": list(dict.fromkeys(documents)),
        "cohesion": one.cohesion,
    }
    count = float(len(one.members))
    return Entity(kb_id, title, description, aliases[:max_aliases], labels, count, meta)  # type: ignore[arg-type]
