"""The record of one mention, in plain values. It does without the Doc."""

import hashlib
from dataclasses import dataclass, fields
from typing import Any, Iterator, List, Sequence, Tuple

from spacy.tokens import Doc, Span

from ..kb.entity import NIL
from .getters import offsets_of_span

# Joins the ids of a composite mention.
ID_SEPARATOR = "|"
# Characters of text kept on either side of a mention, for people to read.
CONTEXT = 80

# What identifies a mention: its document's fingerprint, start and end character.
MentionKey = Tuple[str, int, int]


@dataclass(frozen=True)
class MentionRecord:
    """One mention.

    key: Identifies it: fingerprint of its document's text, start and end character.
    kb_ids: Its gold ids; several for a composite mention, none where it has none or is NIL.
    text: The surface form.
    before, after: The text on either side, for people to read.
    label: The span's label, such as "Disease"; may be empty.
    normalized: The surface form as it is read: the text itself where there is no normalizer.
    doc_id: Its document's ``doc.user_data["doc_id"]``, "" where it has none.
    """

    key: MentionKey
    kb_ids: Tuple[str, ...]
    text: str
    before: str = ""
    after: str = ""
    label: str = ""
    normalized: str = ""
    doc_id: str = ""

    @property
    def context(self) -> str:
        """The mention with the text around it, on one line."""
        return " ".join(f"{self.before}{self.text}{self.after}".split())

    @property
    def document(self) -> str:
        """Name of the document. The ``doc_id``, or the fingerprint if there is none."""
        return self.doc_id or self.key[0]

    @property
    def values(self) -> List[Any]:
        """The fields in their order, which msgpack can write."""
        return [getattr(self, name) for name in FIELDS]

    @classmethod
    def from_values(cls, values: Sequence[Any]) -> "MentionRecord":
        """A record of ``values`` that msgpack has read."""
        (document, start, end), kb_ids, *texts = values
        return cls((document, start, end), tuple(kb_ids), *texts)


FIELDS = tuple(field.name for field in fields(MentionRecord))


def gold_ids(span: Span) -> Tuple[str, ...]:
    """The gold ids of an annotated span. Several for a composite ("D1|D2"), none for NIL."""
    ids = (kb_id.strip() for kb_id in span.kb_id_.split(ID_SEPARATOR))
    return tuple(kb_id for kb_id in ids if kb_id and kb_id != NIL)


def text_fingerprint(text: str) -> str:
    """Fingerprint of a document: a hash of its text. 16 hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf8"), digest_size=8).hexdigest()


def keys_of(spans: Sequence[Span]) -> List[MentionKey]:
    """Keys that identify the spans of one Doc."""
    fingerprint = text_fingerprint(spans[0].doc.text) if spans else ""
    return [(fingerprint, *offsets_of_span(span)) for span in spans]


def records_of(spans: Sequence[Span], normalized: Sequence[str]) -> Iterator[MentionRecord]:
    """The mentions of one Doc.

    spans: At least one.
    normalized: The normalized surface form of each.
    """
    doc: Doc = spans[0].doc
    # A Doc builds its text on every access.
    text, doc_id = doc.text, str(doc.user_data.get("doc_id", ""))
    fingerprint = text_fingerprint(text)
    for span, form in zip(spans, normalized):
        start, end = offsets_of_span(span)
        yield MentionRecord(
            (fingerprint, start, end),
            gold_ids(span),
            text[start:end],
            text[max(start - CONTEXT, 0) : start],
            text[end : end + CONTEXT],
            span.label_,
            form,
            doc_id,
        )
