"""Linked Docs as HTML: drawn by displaCy, with the evidence for each link under them."""

from typing import Any, Dict, Iterable, List, Optional

from spacy import displacy
from spacy.tokens import Doc, Span

from ..annotations import Evidence, links_of
from ..kb.entity import NIL
from ..markup import NO_ADDRESS, check_template, escaped, web_address
from ..mentions.getters import EntSpans, SpanGetter, find_mentions
from .explanation import Explanation

# Candidates that are shown for a mention that is not linked.
SHOWN = 3

_STYLE = """<style>
.arbo { font: 15px/1.8 system-ui, sans-serif; margin: 0 0 2.5rem }
.arbo .step { border: 1px solid #ccc; border-radius: .4em; padding: .1em .5em }
.arbo .entity { background: #dbeafe } .arbo .exemplar { background: #dcfce7 }
.arbo .mention { background: #fef9c3 } .arbo .nil { background: #f3f4f6 }
.arbo .arrow { padding: 0 .3em; color: #666 } .arbo small { color: #666 }
</style>
"""


def to_displacy(
    doc: Doc,
    *,
    kb_url_template: Optional[str] = None,
    get_spans: Optional[SpanGetter] = None,
    extension: str = "arbo",
) -> Dict[str, Any]:
    """A Doc as input for ``displacy.render(..., style="ent", manual=True)``.

    displaCy itself draws "NIL" as a link like any other. Here a mention that no entity fits
    shows its label and the id of its new entity, and no link.

    displaCy writes ids, labels, titles and addresses as they are. Here they are escaped, so that
    a knowledge base or a document of others cannot put markup or scripts into a page.

    doc: A linked Doc.
    kb_url_template: Address of an entity, http or https; ``{}`` stands for its id.
    get_spans: Which spans to draw; ``doc.ents`` by default.
    extension: The attribute that carries the links.
    """
    if kb_url_template is not None:
        check_template(kb_url_template)
    title = doc.user_data.get("title")
    spans = find_mentions(doc, get_spans or EntSpans())
    ents = [_entity(span, kb_url_template, extension) for span in without_overlap(spans)]
    return {"text": doc.text, "ents": ents, "title": title and escaped(title)}


def render_evidence(
    docs: Iterable[Doc],
    *,
    kb_url_template: Optional[str] = None,
    get_spans: Optional[SpanGetter] = None,
    extension: str = "arbo",
    page: bool = True,
) -> str:
    """Linked Docs as HTML: each as displaCy draws it, and under it the evidence for each link.

    docs: Linked Docs.
    kb_url_template, get_spans, extension: As in ``to_displacy``.
    page: Whether the HTML is a complete page.
    """
    parts = []
    for doc in docs:
        drawn = to_displacy(
            doc, kb_url_template=kb_url_template, get_spans=get_spans, extension=extension
        )
        parts.append(displacy.render(drawn, style="ent", manual=True, jupyter=False))
        spans = find_mentions(doc, get_spans or EntSpans())
        links = zip(spans, links_of(doc, spans, extension))
        rows = (as_html(Explanation(span.text, link)) for span, link in links if link is not None)
        parts.append(f"<ol class='arbo'>{''.join(rows)}</ol>\n")
    body = _STYLE + "".join(parts)
    if not page:
        return body
    head = "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'></head>"
    return f"{head}<body>{body}</body></html>\n"


def as_html(explanation: Explanation) -> str:
    """An explanation as an item of a list: the path that supported the link, or what is nearest."""
    link = explanation.link
    if link is None:
        steps = escaped(explanation.outcome)
    elif link.evidence:
        steps = "<span class='arrow'>→</span>".join(map(_step, link.evidence))
    else:
        shown = "; ".join(f"{c.kb_id} ({c.score:.2f})" for c in link.candidates[:SHOWN])
        new = f"new entity {link.cluster}" if link.cluster else "no entity"
        text = escaped(f"{new}; nearest: {shown or 'nothing'}")
        steps = f"<span class='step nil'>{text}</span>"
    return f"<li><b>{escaped(explanation.mention)}</b> {steps}</li>"


def _step(step: Evidence) -> str:
    """A step of a path; its id, document and context show when it is pointed at."""
    about = " · ".join(part for part in (step.id, step.document, step.context) if part)
    return (
        f"<span class='step {escaped(step.kind)}' title='{escaped(about)}'>{escaped(step.text)} "
        f"<small>{escaped(step.kind)} {step.weight:.2f}</small></span>"
    )


def _entity(span: Span, kb_url_template: Optional[str], extension: str) -> Dict[str, Any]:
    linked = span.kb_id_ not in ("", NIL)
    link = span._.get(extension) if Span.has_extension(extension) else None
    label = span.label_
    if link is not None and link.cluster:
        label = f"{label} {link.cluster}".strip()
    address = NO_ADDRESS
    if linked and kb_url_template:
        address = web_address(kb_url_template, span.kb_id_)
    return {
        "start": span.start_char,
        "end": span.end_char,
        "label": escaped(label),
        "kb_id": escaped(span.kb_id_) if linked else "",
        "kb_url": address,
    }


def without_overlap(spans: Iterable[Span]) -> List[Span]:
    """Spans in order, without those that begin before the previous one has ended."""
    kept: List[Span] = []
    for span in spans:
        if not kept or span.start_char >= kept[-1].end_char:
            kept.append(span)
    return kept
