"""Learning from single mentions without training: ``learn``, ``reject_link`` and ``forget``."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from spacy.tokens import Doc, Span

from ..base.errors import ArboError, Errors
from ..kb.entity import NIL
from ..mentions.reader import MentionReader
from ..mentions.record import MentionKey, keys_of
from ..retrieval.datastore import Datastore
from .corrections import Correction, Corrections


@dataclass(frozen=True)
class Feedback:
    """Takes up exemplars and corrections.

    An exemplar counts from the next document on. A correction is an exemplar that decides its own
    mention, and mentions with the same surface form in a similar context.

    reader: Reads mentions.
    datastore: Where they are stored.
    corrections: What was said about them.
    """

    reader: MentionReader
    datastore: Datastore
    corrections: Corrections

    def learn(self, span: Span, kb_id: str) -> None:
        """Store a mention's entity, or "NIL".

        Raises ValueError where the knowledge base has no entity of that id.
        """
        with self.datastore.editing():
            if kb_id == NIL:
                self._correct(span, Correction(""), ())
                return
            self._require_entity(span, kb_id)
            self._correct(span, Correction(kb_id), (kb_id,))

    def reject_link(self, span: Span, kb_id: str) -> None:
        """Store that a mention is not this entity. Several can be rejected, one call for each.

        Raises ValueError where the knowledge base has no entity of that id.
        """
        with self.datastore.editing():
            self._require_entity(span, kb_id)
            before = self.corrections.items.get(key_of(span))
            rejected = before.rejected if before is not None and before.kb_id is None else ()
            rejected = tuple(dict.fromkeys((*rejected, kb_id)))
            self._correct(span, Correction(None, rejected), self._other_labels(span, rejected))

    def forget(self, span: Span) -> bool:
        """Undo ``learn`` and ``reject_link`` for a mention. RETURNS: Whether there was anything."""
        key = key_of(span)
        with self.datastore.editing():
            correction = self.corrections.items.pop(key, None)
            if correction is None:
                return False
            if correction.before is None:
                self.datastore.exemplars.remove([key])
            else:
                self.datastore.exemplars.relabel(key, correction.before)
            self.datastore.changed()
            return True

    def add_exemplars(self, docs: Iterable[Doc]) -> int:
        """Store each annotated mention of ``docs`` as an exemplar of its ``span.kb_id_``.

        An annotation takes the place of an earlier correction that says something else.

        RETURNS: How many are new.
        """
        batch = self.reader.read_docs(docs)
        with self.datastore.editing():
            before = len(self.datastore.exemplars)
            self.datastore.add_exemplars(batch.records, batch.inputs)
            self.corrections.take_labels(batch.records)
            return len(self.datastore.exemplars) - before

    def remove_exemplars(self, spans: Iterable[Span]) -> int:
        """Remove exemplars from the store. RETURNS: How many were stored."""
        keys = set(map(key_of, spans))
        with self.datastore.editing():
            store = self.datastore.exemplars
            stored = {key for key in keys if store.row(key) >= 0}
            for key in stored:
                self.corrections.items.pop(key, None)
            store.remove(stored)
            self.datastore.changed()
            return len(stored)

    def _other_labels(self, span: Span, rejected: tuple[str, ...]) -> tuple[str, ...]:
        """Stored ids of a mention without those rejected."""
        store, entities = self.datastore.exemplars, self.datastore.kb.entities
        row = store.row(key_of(span))
        kb_ids = store.records[row].kb_ids if row >= 0 else ()
        refused = set(entities.positions_of(rejected).tolist())
        return tuple(kb_id for kb_id in kb_ids if entities.position(kb_id) not in refused)

    def _require_entity(self, span: Span, kb_id: str) -> None:
        if self.datastore.kb.entities.position(kb_id) < 0:
            raise ArboError(Errors.E510.format(id=kb_id, text=span.text))

    def _correct(self, span: Span, correction: Correction, kb_ids: tuple[str, ...]) -> None:
        key, store = key_of(span), self.datastore.exemplars
        row, existing = store.row(key), self.corrections.items.get(key)
        before = existing.before if existing is not None else None
        if row >= 0 and existing is None:
            before = store.records[row].kb_ids
        batch = self.reader.read([[span]])
        (record,) = batch.records
        self.datastore.add_exemplars([replace(record, kb_ids=kb_ids)], batch.inputs)
        self.corrections.items[key] = correction._replace(before=before)
        self.datastore.changed()


def key_of(span: Span) -> MentionKey:
    """Key that identifies a mention."""
    return keys_of([span])[0]
