"""Learning from single mentions without training: ``learn``, ``reject_link`` and ``forget``."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from spacy.tokens import Doc, Span
from spacy.util import minibatch

from ..base.errors import Errors
from ..encoders.inputs import EncodingCache
from ..kb.entity import NIL
from ..mentions.getters import find_mentions
from ..mentions.reader import MentionReader
from ..mentions.record import MentionKey, keys_of
from ..retrieval.datastore import Datastore
from .corrections import Correction, Corrections
from .reach import NO_ENTITY, CorrectedMention, CorrectionKey, CorrectionMatcher

# Documents that are read at a time.
BATCH = 64


@dataclass(frozen=True)
class Feedback:
    """Takes up exemplars and corrections.

    An exemplar counts from the next document on. A correction decides its own mention, and mentions
    of the same string and label in its document and in passages that say the same; ``covered``
    finds these before it is made. A learned mention becomes an exemplar too, where no other entity
    has its name.
    """

    reader: MentionReader
    datastore: Datastore
    corrections: Corrections

    def learn(self, span: Span, kb_id: str) -> None:
        """Store a mention's entity, or "NIL".

        Raises ValueError where the knowledge base has no entity of that id.
        """
        with self.datastore.editing():
            correction = self._correction(span)
            if kb_id != NIL:
                self._position(span, kb_id)
            rejected = tuple(
                rejected for rejected in correction.rejected if rejected != kb_id
            )
            kb_id = "" if kb_id == NIL else kb_id
            self._correct(span, correction._replace(kb_id=kb_id, rejected=rejected))

    def reject_link(self, span: Span, kb_id: str) -> None:
        """Store that a mention is not this entity. Several can be rejected, one call for each.

        What was learned of the mention stays, unless it is this entity.
        Raises ValueError where the knowledge base has no entity of that id.
        """
        with self.datastore.editing():
            correction = self._correction(span)
            entity = self._position(span, kb_id)
            rejected = tuple(dict.fromkeys((*correction.rejected, kb_id)))
            learned = correction.kb_id
            if learned and self.datastore.kb.entities.position(learned) == entity:
                learned = None
            self._correct(span, correction._replace(kb_id=learned, rejected=rejected))

    def covered(
        self,
        span: Span,
        docs: Iterable[Doc],
        kb_id: str = NIL,
        cache: EncodingCache | None = None,
    ) -> list[Span]:
        """Find the mentions that a correction of a mention would hold for.

        Nothing is corrected, so that you can look at them before ``learn`` or ``reject_link``.

        docs: Documents with their mentions, such as those of your corpus.
        kb_id: The entity that would be learned; "NIL" for ``learn(span, "NIL")`` and
            ``reject_link``, which hold for as many.
        cache: Keeps the vectors of contexts for the next call; None to keep none.
        RETURNS: Their spans, that of the mention itself among them where it is in ``docs``.
        """
        getter = self.reader.settings.getter
        (record,) = self.reader.read([[span]]).records
        covered_spans: list[Span] = []
        with self.datastore.snapshot() as snapshot:
            entity = NO_ENTITY if kb_id == NIL else self._position(span, kb_id)
            matcher = CorrectionMatcher(
                [CorrectedMention(record, entity)], snapshot, cache=cache
            )
            for batch in minibatch(docs, BATCH):
                spans = [find_mentions(doc, getter) for doc in batch]
                flat = list(chain.from_iterable(spans))
                matched = matcher.match(self.reader.read(spans).records)
                covered_spans += [flat[number] for number in sorted(matched)]
        return covered_spans

    def forget(self, span: Span) -> bool:
        """Undo ``learn`` and ``reject_link`` for a mention. RETURNS: Whether there was anything."""
        key = key_of(span)
        with self.datastore.editing():
            correction = self.corrections.items.pop(correction_key(span), None)
            if correction is None:
                return False
            standing = self.corrections.others_at(correction_key(span))
            if standing:
                self.datastore.exemplars.relabel(key, self._labels(span, standing[-1]))
            elif correction.before is None:
                self.datastore.exemplars.remove([key])
            else:
                self.datastore.exemplars.relabel(key, correction.before)
            return True

    def add_exemplars(
        self, docs: Iterable[Doc], cache: EncodingCache | None = None
    ) -> int:
        """Store each annotated mention of ``docs`` as an exemplar of its ``span.kb_id_``.

        An annotation takes the place of an earlier correction that says something else.

        cache: Has vectors of mentions, and gets the others; None to encode them at the next
            ``refresh``.
        RETURNS: How many are new.
        """
        reader = self.reader
        batch = reader.read(
            [[s for s in reader.all_mentions(doc) if s.kb_id_] for doc in docs]
        )
        vectors = None
        if cache is not None:
            vectors = cache.mentions(
                batch.inputs, self.datastore.encoder.encode_mentions
            )
        with self.datastore.editing():
            store = self.datastore.exemplars
            before = len(store)
            store.extend(batch.records, batch.inputs, vectors)
            self.corrections.take_labels(batch.records)
            return len(store) - before

    def remove_exemplars(self, spans: Iterable[Span]) -> int:
        """Remove exemplars from the store. RETURNS: How many were stored."""
        keys = set(map(key_of, spans))
        with self.datastore.editing():
            store = self.datastore.exemplars
            stored = {key for key in keys if store.row(key) >= 0}
            self.corrections.forget_at(stored)
            store.remove(stored)
            return len(stored)

    def _correction(self, span: Span) -> Correction:
        """What was said of a mention, which is nothing at first."""
        key = correction_key(span)
        if key in self.corrections.items:
            return self.corrections.items[key]
        standing = self.corrections.others_at(key)
        row = self.datastore.exemplars.row(key[:3])
        stored = self.datastore.exemplars.records[row].kb_ids if row >= 0 else None
        return Correction(None, before=standing[-1].before if standing else stored)

    def _labels(self, span: Span, correction: Correction) -> tuple[str, ...]:
        """The ids that a corrected mention is stored with as an exemplar.

        None where another entity has the name of what was learned: everywhere else, the exemplar
        would speak against that one.
        """
        entities = self.datastore.kb.entities
        if correction.kb_id is None:
            refused = set(entities.positions_of(correction.rejected).tolist())
            before = correction.before or ()
            return tuple(
                kb_id for kb_id in before if entities.position(kb_id) not in refused
            )
        if not correction.kb_id:
            return ()
        owners = entities.with_name(self.reader.read([[span]]).normalized[0])
        learned = entities.position(correction.kb_id)
        if all(position == learned for position in owners):
            return (correction.kb_id,)
        return ()

    def _position(self, span: Span, kb_id: str) -> int:
        """The position of an entity that a mention is said to be, or not to be."""
        position = self.datastore.kb.entities.position(kb_id)
        if position < 0:
            raise Errors.E510(id=kb_id, text=span.text)
        return position

    def _correct(self, span: Span, correction: Correction) -> None:
        batch = self.reader.read([[span]])
        store = self.datastore.exemplars
        store.extend(batch.records, batch.inputs)
        store.relabel(key_of(span), self._labels(span, correction))
        self.corrections.items[correction_key(span)] = correction


def correction_key(span: Span) -> CorrectionKey:
    """Key that identifies a mention by its label too."""
    return (*key_of(span), span.label_)


def key_of(span: Span) -> MentionKey:
    """Key that identifies a mention."""
    return keys_of([span])[0]
