"""Linked Docs for displaCy: links with an address, new entities without one."""

from typing import Any, Dict, Iterable, List, Optional

from spacy.tokens import Doc, Span

from .kb.entity import NIL
from .mentions import SpanGetter, ent_spans, find_mentions


def to_displacy(
    doc: Doc,
    *,
    kb_url_template: Optional[str] = None,
    get_spans: Optional[SpanGetter] = None,
    extension: str = "arbo",
) -> Dict[str, Any]:
    """A Doc as input for ``displacy.render(..., style="ent", manual=True)``.

    displaCy itself draws "NIL" as a link like any other. Here a mention that no entity fits
    shows its label and the number of the new entity, and no link.

    kb_url_template: Address of an entity, ``{}`` stands for its id.
    get_spans: Which spans to draw; ``doc.ents`` by default.
    """
    spans = find_mentions(doc, get_spans or ent_spans())
    ents = [_entity(span, kb_url_template, extension) for span in without_overlap(spans)]
    return {"text": doc.text, "ents": ents, "title": doc.user_data.get("title")}


def _entity(span: Span, kb_url_template: Optional[str], extension: str) -> Dict[str, Any]:
    linked = span.kb_id_ not in ("", NIL)
    link = span._.get(extension) if Span.has_extension(extension) else None
    label = span.label_
    if link is not None and link.cluster:
        label = f"{label} {link.cluster}".strip()
    return {
        "start": span.start_char,
        "end": span.end_char,
        "label": label,
        "kb_id": span.kb_id_ if linked else "",
        "kb_url": kb_url_template.format(span.kb_id_) if linked and kb_url_template else "#",
    }


def without_overlap(spans: Iterable[Span]) -> List[Span]:
    """Spans in order, those left out that begin before the last one has ended."""
    kept: List[Span] = []
    for span in spans:
        if not kept or span.start_char >= kept[-1].end_char:
            kept.append(span)
    return kept
