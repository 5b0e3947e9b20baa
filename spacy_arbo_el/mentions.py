"""Which spans of a Doc are mentions, what is known of them, and the window of text round each."""

import hashlib
from typing import Callable, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from .encoders.encoding import DualEncoding
from .encoders.sequences import Sequences
from .kb.entity import NIL
from .retrieval.exemplars import Key, Labelled
from .rewriting.text import Rewrite

# Joins the ids of a composite mention.
ID_SEPARATOR = "|"
# Characters of text kept on either side of an exemplar, for people to read.
CONTEXT = 60

SpanGetter = Callable[[Doc], Iterable[Span]]
Offsets = Tuple[int, int]


@registry.misc("spacy-arbo-el.EntSpans.v1")
def ent_spans() -> SpanGetter:
    """The entities of ``doc.ents``."""

    def get_spans(doc: Doc) -> Iterable[Span]:
        return doc.ents

    return get_spans


@registry.misc("spacy-arbo-el.GroupSpans.v1")
def group_spans(key: str = "sc") -> SpanGetter:
    """The spans of the group ``doc.spans[key]``; none where the Doc has no such group."""

    def get_spans(doc: Doc) -> Iterable[Span]:
        return doc.spans.get(key, [])

    # Tells set_annotations where to write the links.
    get_spans.spans_key = key  # type: ignore[attr-defined]
    return get_spans


def find_mentions(doc: Doc, get_spans: SpanGetter) -> List[Span]:
    """The Doc's mentions, each stretch of text once, in order of start and end.

    Two spans over the same text (of different labels, say) are one mention, so that they
    cannot get different links.
    """
    spans = {(span.start_char, span.end_char): span for span in get_spans(doc) if len(span)}
    return [spans[offsets] for offsets in sorted(spans)]


def offsets_of_span(span: Span) -> Offsets:
    return span.start_char, span.end_char


def gold_ids(span: Span) -> Tuple[str, ...]:
    """The gold ids of an annotated span: several for a composite ("D1|D2"), none for NIL."""
    ids = (kb_id.strip() for kb_id in span.kb_id_.split(ID_SEPARATOR))
    return tuple(kb_id for kb_id in ids if kb_id and kb_id != NIL)


def gold_mentions_example(example: Example, get_spans: SpanGetter) -> Tuple[Example, bool]:
    """The example with the reference's mentions, unlinked, as the predicted ones.

    RETURNS: the example and whether it is a new one; one whose predicted mentions are the
        reference's is given back as it is.
    """
    gold = find_mentions(example.reference, get_spans)
    there = find_mentions(example.predicted, get_spans)
    if [offsets_of_span(s) for s in gold] == [offsets_of_span(s) for s in there]:
        return example, False
    # Built over the reference's tokens, so that no mention is lost where tokens differ.
    doc = Doc(
        example.reference.vocab,
        words=[token.text for token in example.reference],
        spaces=[bool(token.whitespace_) for token in example.reference],
    )
    spans = [Span(doc, span.start, span.end, label=span.label) for span in gold]
    set_mentions(doc, spans, get_spans)
    return Example(doc, example.reference), True


def set_mentions(doc: Doc, spans: Sequence[Span], get_spans: SpanGetter) -> None:
    """Put spans where a getter finds them: its span group, or ``doc.ents``."""
    key = getattr(get_spans, "spans_key", None)
    if key is None:
        doc.ents = spans  # type: ignore[assignment]
    else:
        doc.spans[key] = spans


class MentionReader:
    """Cuts the windows round mentions.

    rewrite: What of a text is read in other words, see ``rewriting``.
    """

    def __init__(
        self, encoding: DualEncoding, get_spans: SpanGetter, rewrite: Optional[Rewrite] = None
    ):
        self.encoding = encoding
        self.get_spans = get_spans
        self.rewrite = rewrite

    def windows(self, spans: Sequence[Sequence[Span]]) -> Sequences:
        """One window a span, in order; each inner list holds the spans of one Doc."""
        return self.read(spans)[0]

    def read(self, spans: Sequence[Sequence[Span]]) -> Tuple[Sequences, List[str]]:
        """As ``windows``, and what is read for each mention itself."""
        spans = [group for group in spans if group]
        if not spans:
            return Sequences.empty(), []
        texts = [group[0].doc.text for group in spans]
        offsets_of_texts = [
            np.array([offsets_of_span(s) for s in group], dtype=np.int64) for group in spans
        ]
        if self.rewrite is not None:
            rewritten = [self.rewrite(*read) for read in zip(texts, offsets_of_texts)]
            texts, offsets_of_texts = map(list, zip(*rewritten))
        offsets = np.concatenate(offsets_of_texts)
        forms = [
            text[start:end]
            for text, pairs in zip(texts, offsets_of_texts)
            for start, end in pairs.tolist()
        ]
        windows = self.encoding.tokenizer("mention").windows(
            texts,
            np.repeat(np.arange(len(spans)), [len(group) for group in spans]),
            offsets[:, 0],
            offsets[:, 1],
        )
        return windows, forms

    def labelled(self, docs: Sequence[Doc]) -> Tuple[List[Labelled], Sequences]:
        """The annotated mentions of docs: what is known of them, and their windows."""
        return self.labelled_spans([find_mentions(doc, self.get_spans) for doc in docs])

    def labelled_spans(self, spans: Sequence[Sequence[Span]]) -> Tuple[List[Labelled], Sequences]:
        """As ``labelled``, of spans; each inner list holds the spans of one Doc."""
        spans = [group for group in spans if group]
        windows, forms = self.read(spans)
        read = iter(forms)
        return [item for group in spans for item in _labelled_group(group, read)], windows


def document_name(doc: Doc) -> str:
    """A fingerprint of the Doc's text: the same text is the same document."""
    return fingerprint_of(doc.text)


def fingerprint_of(text: str) -> str:
    """What identifies a document: a hash of its text, 16 hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf8"), digest_size=8).hexdigest()


def document_id(doc: Doc) -> str:
    """What the user calls the Doc: ``doc.user_data["doc_id"]``, "" where there is none."""
    return str(doc.user_data.get("doc_id", ""))


def keys_of(spans: Sequence[Span]) -> List[Key]:
    """What identifies each of the spans of one Doc."""
    name = document_name(spans[0].doc) if spans else ""
    return [(name, *offsets_of_span(span)) for span in spans]


def _labelled_group(spans: Sequence[Span], forms: Iterable[str]) -> Iterator[Labelled]:
    """What is known of the mentions of one Doc."""
    text, known_as = spans[0].doc.text, document_id(spans[0].doc)
    name = fingerprint_of(text)
    # A Doc puts its text together each time it is asked for.
    for span, form in zip(spans, forms):
        start, end = offsets_of_span(span)
        context = " ".join(text[max(start - CONTEXT, 0) : end + CONTEXT].split())
        surface, label = text[start:end], span.label_
        key = (name, start, end)
        yield Labelled(key, gold_ids(span), surface, context, label, form, known_as)
