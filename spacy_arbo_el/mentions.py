"""Which spans of a Doc are mentions."""

from typing import Callable, Iterable, List, Tuple

from spacy.tokens import Doc, Span
from spacy.util import registry

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
