"""Learning from single mentions: ``learn``, ``refuse`` and ``forget``, without training."""

from dataclasses import replace
from typing import Iterable, Tuple

from spacy.tokens import Doc, Span

from ..errors import Errors
from ..kb.entity import NIL
from ..mentions import keys_of
from ..retrieval.corrections import Correction
from ..retrieval.exemplars import Key
from .saving import SavedLinker


class CorrectableLinker(SavedLinker):
    """The part of ``ArboLinker`` that takes up exemplars and corrections.

    An exemplar counts from the next document on. A correction is an exemplar that has the last
    word on its own mention, and on mentions of the same string in much the same words.
    """

    def learn(self, span: Span, kb_id: str) -> None:
        """Say which entity a mention is, "NIL" for none in the knowledge base.

        ValueError where the knowledge base has no entity of that id: add it first.
        """
        if kb_id == NIL:
            self._correct(span, Correction(""), ())
            return
        position = self.memory.kb.entities.position(kb_id)
        if position < 0:
            raise ValueError(Errors.E510.format(id=kb_id, text=span.text))
        self._correct(span, Correction(kb_id), (kb_id,))

    def refuse(self, span: Span, kb_id: str) -> None:
        """Say of a mention that it is not this entity; one after the other, of several."""
        before = self.memory.corrections.items.get(self._key(span))
        refused = before.refused if before is not None and before.kb_id is None else ()
        self._correct(span, Correction(None, tuple(dict.fromkeys((*refused, kb_id)))), ())

    def forget(self, span: Span) -> bool:
        """Take back what was said of a mention. RETURNS: Whether there was anything."""
        key, store = self._key(span), self.memory.exemplars
        correction = self.memory.corrections.items.pop(key, None)
        if correction is None:
            return False
        if correction.before is None:
            store.remove([key])
        else:
            store.relabel(key, correction.before)
        self.memory.changed()
        return True

    def add_exemplars(self, docs: Iterable[Doc]) -> int:
        """Store the annotated mentions of docs (``span.kb_id_``) as exemplars, each once.

        RETURNS: How many are new.
        """
        before = len(self.memory.exemplars)
        self.memory.store(*self.reader.labelled(list(docs)))
        return len(self.memory.exemplars) - before

    def remove_exemplars(self, spans: Iterable[Span]) -> int:
        """Take exemplars out of the store. RETURNS: How many there were."""
        store = self.memory.exemplars
        keys = [key for key in map(self._key, spans) if store.row(key) >= 0]
        for key in keys:
            self.memory.corrections.items.pop(key, None)
        store.remove(keys)
        self.memory.changed()
        return len(set(keys))

    def _key(self, span: Span) -> Key:
        return keys_of([span])[0]

    def _correct(self, span: Span, correction: Correction, kb_ids: Tuple[str, ...]) -> None:
        memory, key = self.memory, self._key(span)
        self.encoding.require_ready(self.name)
        row = memory.exemplars.row(key)
        known = memory.corrections.items.get(key)
        before = known.before if known else None
        if row >= 0 and known is None:
            before = memory.exemplars.items[row].kb_ids
        (item,), windows = self.reader.labelled_spans([[span]])
        memory.store([replace(item, kb_ids=kb_ids)], windows)
        memory.corrections.items[key] = correction._replace(before=before)
        memory.changed()
