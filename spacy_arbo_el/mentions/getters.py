"""Getters of mentions from a Doc."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab

from ..base.display import shortened
from ..base.errors import Errors, Warnings
from ..base.log import warn_once

# Start and end character in the text of the Doc, end exclusive.
Offsets = tuple[int, int]
# The offsets of a mention with its label: spans over the same text may have different labels.
Place = tuple[int, int, str]

# The name of the list that a mention was found by, where its text is another form of that; "" for
# the text itself. It is read in the place of the mention.
FOUND_AS = "arbo_name"
Span.set_extension(FOUND_AS, default="", force=True)


@runtime_checkable
class SpanGetter(Protocol):
    """Gives the mentions of a Doc.

    spans_key: The group of ``doc.spans`` that they are in, where links are written to; None for
        ``doc.ents``.
    """

    @property
    def spans_key(self) -> str | None: ...

    def __call__(self, doc: Doc) -> Iterable[Span]: ...


@registry.misc("spacy-arbo-el.EntSpans.v1")
@dataclass(frozen=True)
class EntSpans:
    """The entities of ``doc.ents``, the default."""

    @property
    def spans_key(self) -> str | None:
        return None

    def __call__(self, doc: Doc) -> Iterable[Span]:
        check_doc(doc)
        return doc.ents


@registry.misc("spacy-arbo-el.GroupSpans.v1")
@dataclass(frozen=True)
class GroupSpans:
    """The spans of a group of ``doc.spans``. None, and a warning, where a Doc has no such group.

    Use it for mentions that overlap, or that a span categorizer finds::

        [components.arbo_linker.mentions.getter]
        @misc = "spacy-arbo-el.GroupSpans.v1"
        spans_key = "sc"

    spans_key: Name of the group.
    """

    spans_key: str = "sc"

    def __call__(self, doc: Doc) -> Iterable[Span]:
        check_doc(doc)
        if self.spans_key not in doc.spans:
            warn_once(Warnings.W541.format(key=self.spans_key))
            return []
        return doc.spans[self.spans_key]


def check_doc(doc: Doc) -> None:
    """Raise ValueError for what is no Doc, such as a text."""
    if not isinstance(doc, Doc):
        raise Errors.E512(value=shortened(repr(doc), 60))


def find_mentions(doc: Doc, get_spans: SpanGetter) -> list[Span]:
    """Find a Doc's mentions by start, end and label, without duplicates.

    Two spans over the same text are two mentions where their labels differ.
    """
    spans = {place_of(span): span for span in get_spans(doc) if len(span)}
    return [spans[place] for place in sorted(spans)]


def offsets_of_span(span: Span) -> Offsets:
    """The offsets of a span. ValueError for what is none, such as a text."""
    if not isinstance(span, Span):
        raise Errors.E513(value=shortened(repr(span), 60))
    return span.start_char, span.end_char


def place_of(span: Span) -> Place:
    """The offsets and the label of a span."""
    # Without a check: it is called many times for each document.
    return span.start_char, span.end_char, span.label_


def set_mentions(doc: Doc, spans: Sequence[Span], get_spans: SpanGetter) -> None:
    """Store spans where a getter finds them: in its span group, or ``doc.ents``."""
    if get_spans.spans_key is None:
        doc.ents = spans
    else:
        doc.spans[get_spans.spans_key] = spans


def same_tokens(doc: Doc, vocab: Vocab) -> Doc:
    """A Doc with the same tokens and ``doc_id`` only."""
    words = [token.text for token in doc]
    copy = Doc(vocab, words=words, spaces=[bool(token.whitespace_) for token in doc])
    if "doc_id" in doc.user_data:
        copy.user_data["doc_id"] = doc.user_data["doc_id"]
    return copy


def gold_mentions_example(
    example: Example, get_spans: SpanGetter
) -> tuple[Example, bool]:
    """Make an example whose prediction has the reference's mentions without links.

    RETURNS: The example, and whether it is a new one. An example whose predicted mentions are the
        reference's is given back as it is.
    """
    gold = find_mentions(example.reference, get_spans)
    predicted = find_mentions(example.predicted, get_spans)
    if [offsets_of_span(s) for s in gold] == [offsets_of_span(s) for s in predicted]:
        return example, False
    # Built over the reference's tokens, so that no mention is lost where tokens differ.
    doc = same_tokens(example.reference, example.reference.vocab)
    spans = [Span(doc, span.start, span.end, label=span.label) for span in gold]
    set_mentions(doc, spans, get_spans)
    return Example(doc, example.reference), True
