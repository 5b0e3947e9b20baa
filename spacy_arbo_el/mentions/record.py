"""Mentions in plain values: records of them, and batches."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span

from ..base.arrays import Rows, check_vectors, has_vector, int_array, offsets_of
from ..base.errors import Errors
from ..encoders.inputs import SpanInputs, check_inputs
from ..kb.entity import NIL
from .getters import offsets_of_span
from .sentences import WeightedSentences, contexts_around

# Joins the ids of a composite mention.
ID_SEPARATOR = "|"
# Characters of text kept on either side of a mention, as its context.
CONTEXT = 160
# Characters of it that people see.
SHOWN_CONTEXT = 80

# What identifies a mention: its document's fingerprint, start and end character.
MentionKey = tuple[str, int, int]


@dataclass(frozen=True)
class MentionRecord:
    """One mention.

    key: Identifies it: fingerprint of its document's text, start and end character.
    kb_ids: Its gold ids; several for a composite mention, none where it has none or is NIL.
    text: The surface form.
    before, after: The text on either side, up to ``CONTEXT`` characters.
    label: The span's label, such as "Disease"; may be empty.
    normalized: The surface form as it is read: the text itself where there is no normalizer.
    doc_id: Its document's ``doc.user_data["doc_id"]``, "" where it has none.
    sentences: Those around it, see ``sentences.py``; they are not stored.
    """

    key: MentionKey
    kb_ids: tuple[str, ...]
    text: str
    before: str = ""
    after: str = ""
    label: str = ""
    normalized: str = ""
    doc_id: str = ""
    sentences: WeightedSentences = field(default=(), compare=False, repr=False)

    @property
    def context(self) -> str:
        """The mention with the text around it, on one line, for people to read."""
        before = self.before[-SHOWN_CONTEXT:]
        after = self.after[:SHOWN_CONTEXT]
        return " ".join(f"{before}{self.text}{after}".split())

    @property
    def begins_sentence(self) -> bool:
        """Return whether the mention is at the beginning of the text or behind a full stop."""
        return self.before.rstrip()[-1:] in ("", *".!?")

    @property
    def surroundings(self) -> str:
        """The mention with the text around it, without cut words at the ends."""
        before = self.before
        after = self.after
        if len(before) >= CONTEXT:
            before = before[before.find(" ") + 1 :]
        if len(after) >= CONTEXT:
            after = after[: after.rfind(" ") + 1]
        return f"{before}{self.text}{after}"

    @property
    def document(self) -> str:
        """Name of the document. The ``doc_id``, or the fingerprint if there is none."""
        return self.doc_id or self.key[0]

    @property
    def values(self) -> list[Any]:
        """What is stored, in its order, which msgpack can write."""
        return [getattr(self, name) for name in FIELDS]

    @classmethod
    def from_values(cls, values: Sequence[Any]) -> "MentionRecord":
        """A record of ``values`` that msgpack has read."""
        (document, start, end), kb_ids, *texts = values
        return cls((document, start, end), tuple(kb_ids), *texts)


# The fields that are stored.
FIELDS = tuple(field.name for field in fields(MentionRecord) if field.compare)


@dataclass(frozen=True)
class MentionBatch(Rows):
    """``m`` mentions of some documents, in document order.

    records: A record of each.
    inputs: The m spans that they are encoded from.
    documents: (m,) int64, ascending, the number of the document each is in, which ``take`` leaves
        unchanged.
    labels: (m,) uint64, their spans' labels as numbers of spaCy's string store.
    n_documents: How many documents there are, those without mentions included.
    vectors: (m, width) float32, prepared for comparing (see ``Similarity.prepare``); None before
        they are encoded.
    """

    records: Sequence[MentionRecord]
    inputs: SpanInputs
    documents: np.ndarray
    labels: np.ndarray
    n_documents: int
    vectors: np.ndarray | None = None

    @property
    def encoded(self) -> np.ndarray:
        """The vectors; an error where the batch is not encoded."""
        if self.vectors is None:
            raise ValueError("The mentions are not encoded yet.")
        return self.vectors

    @property
    def has_vector(self) -> np.ndarray:
        """(m,) bool, the mentions that the encoder can read. The vectors of others are zeros."""
        return has_vector(self.encoded)

    @property
    def keys(self) -> list[MentionKey]:
        """Keys that identify the mentions."""
        return [record.key for record in self.records]

    @property
    def normalized(self) -> list[str]:
        """The normalized surface form of each mention."""
        return [record.normalized for record in self.records]

    @classmethod
    def empty(cls) -> "MentionBatch":
        none = int_array()
        return cls([], SpanInputs.empty(), none, none.astype(np.uint64), 0)

    @classmethod
    def concat(cls, batches: Sequence["MentionBatch"]) -> "MentionBatch":
        """Concatenate batches, numbering their documents on."""
        if not batches:
            return cls.empty()
        starts = offsets_of([batch.n_documents for batch in batches])
        numbered = [
            replace(batch, documents=batch.documents + start)
            for batch, start in zip(batches, starts)
        ]
        return replace(super().concat(numbered), n_documents=int(starts[-1]))


def gold_ids(span: Span) -> tuple[str, ...]:
    """The gold ids of an annotated span: several for a composite ("D1|D2"), none for NIL."""
    ids = (kb_id.strip() for kb_id in span.kb_id_.split(ID_SEPARATOR))
    return tuple(kb_id for kb_id in ids if kb_id and kb_id != NIL)


def text_fingerprint(text: str) -> str:
    """The fingerprint of a document: a hash of its text in 16 hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf8"), digest_size=8).hexdigest()


def document_id(doc: Doc) -> str:
    """The id that a document has, "" for none."""
    return str(doc.user_data.get("doc_id", ""))


def keys_of(spans: Sequence[Span]) -> list[MentionKey]:
    """Keys that identify the spans of one Doc."""
    offsets = [offsets_of_span(span) for span in spans]
    fingerprint = text_fingerprint(spans[0].doc.text) if spans else ""
    return [(fingerprint, *place) for place in offsets]


def records_of(
    spans: Sequence[Span], text: str, normalized: Sequence[str]
) -> Iterator[MentionRecord]:
    """The mentions of one Doc.

    spans: At least one.
    normalized: The normalized surface form of each.
    """
    doc: Doc = spans[0].doc
    doc_id = document_id(doc)
    fingerprint = text_fingerprint(text)
    offsets = [offsets_of_span(span) for span in spans]
    contexts = contexts_around(text, offsets)
    for span, (start, end), form, sentences in zip(
        spans, offsets, normalized, contexts
    ):
        yield MentionRecord(
            (fingerprint, start, end),
            gold_ids(span),
            text[start:end],
            text[max(start - CONTEXT, 0) : start],
            text[end : end + CONTEXT],
            span.label_,
            form,
            doc_id,
            sentences,
        )


def check_encoded(
    records: Sequence[MentionRecord], inputs: SpanInputs, vectors: np.ndarray
) -> None:
    """ValueError where mentions, their inputs and their vectors are damaged, or do not fit."""
    if not len(records) == len(inputs) == len(vectors):
        raise Errors.E302(records=len(records), inputs=len(inputs))
    for record in records:
        check_key(record.key)
        if not are_texts([*record.kb_ids, *record.values[2:]]):
            raise ValueError(
                f"a mention has something else than texts: {record!r:.80}"
            )
    check_inputs(inputs)
    if vectors.dtype != np.float32:
        raise ValueError("the vectors are not of type float32")
    if len(records):
        check_vectors(vectors, len(records))


def check_key(key: Any) -> None:
    """ValueError where this identifies no mention."""
    is_key = isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], str)
    if (
        not is_key
        or not all(type(place) is int for place in key[1:])
        or not 0 <= key[1] <= key[2]
    ):
        raise ValueError(f"this identifies no mention: {key!r:.80}")


def are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
