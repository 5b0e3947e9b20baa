"""Linked Docs as HTML: drawn by displaCy, with the evidence for each link under them."""

import unicodedata
from typing import Any, Dict, Iterable, List, Optional

from spacy import displacy
from spacy.tokens import Doc, Span

from ..annotations import Evidence, Link, links_of
from ..display import counted, html_rows, shown_probability
from ..kb.entity import NIL
from ..markup import NO_ADDRESS, check_template, escaped, web_address
from ..mentions.getters import EntSpans, SpanGetter, find_mentions
from ..pages import STYLE, SortKey, item
from ..pages import page as complete_page
from .arborescence import draw_arborescence
from .explanation import SHOWN, Explanation, outcome_of

SORTS = ("order", "name", "mentions", "uncertainty")
_LEGEND = (
    "<p class='about'>Why a mention has its link: "
    "<span class='step entity'>an entity</span> <span class='arrow'>→</span> "
    "<span class='step exemplar'>an exemplar, which is a labelled mention</span> "
    "<span class='arrow'>→</span> <span class='step mention'>mentions of the text</span>, or "
    "<span class='step nil'>no entity</span>. Numbers are probabilities.</p>"
)


def to_displacy(
    doc: Doc,
    *,
    kb_url_template: Optional[str] = None,
    get_spans: Optional[SpanGetter] = None,
    extension: str = "arbo",
) -> Dict[str, Any]:
    """A Doc as input for ``displacy.render(..., style="ent", manual=True)``.

    Each link shows the title, the id and the probability. displaCy itself draws "NIL" as a link
    like any other. Here a mention that no entity fits shows its label and the id of its new
    entity, and no link. Text from right to left stays so, also beside names from left to right.

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
    return {
        "text": doc.text,
        "ents": ents,
        "title": title and escaped(title),
        "settings": {"lang": escaped(doc.lang_), "direction": direction_of(doc)},
    }


def render_evidence(
    docs: Iterable[Doc],
    *,
    kb_url_template: Optional[str] = None,
    get_spans: Optional[SpanGetter] = None,
    extension: str = "arbo",
    threshold: Optional[float] = None,
    page: bool = True,
) -> str:
    """Linked Docs as HTML: each as displaCy draws it, and under it the evidence for each link.

    docs: Linked Docs.
    kb_url_template, get_spans, extension: As in ``to_displacy``.
    threshold: The linker's, to say what fell below it.
    page: Whether the HTML is a complete page, which can be searched and sorted.
    """
    items = []
    for number, doc in enumerate(docs):
        drawn = to_displacy(
            doc, kb_url_template=kb_url_template, get_spans=get_spans, extension=extension
        )
        figure = displacy.render(drawn, style="ent", manual=True, jupyter=False)
        spans = find_mentions(doc, get_spans or EntSpans())
        links = [
            (span.text, link)
            for span, link in zip(spans, links_of(doc, spans, extension))
            if link is not None
        ]
        rows = (
            as_html(Explanation(text, link, outcome_of(link, link.title, threshold)))
            for text, link in links
        )
        name = str(doc.user_data.get("doc_id", "")) or f"document {number + 1}"
        keys: Dict[str, SortKey] = {
            # Numbers are sorted from large to small.
            "order": -number,
            "name": name,
            "mentions": len(links),
            "uncertainty": 1.0
            - min((one.score for _, one in links if not one.is_nil), default=1.0),
        }
        head = f"<h2><bdi>{escaped(name)}</bdi></h2>"
        tree = draw_arborescence(doc, get_spans=get_spans, extension=extension) if links else ""
        drawing = tree and f"<details><summary>Arborescence</summary>{tree}</details>"
        items.append(item(f"{head}{figure}<ol>{''.join(rows)}</ol>{drawing}", keys))
    if not page:
        return f"{STYLE}<div class='arbo'>{''.join(items)}</div>"
    about = f"<p>{counted(len(items), 'document')}.</p>{_LEGEND}"
    return complete_page("Links and their evidence", about, items, SORTS)


def as_html(explanation: Explanation) -> str:
    """An explanation as an item of a list: the outcome, the path to it, and the candidates."""
    link = explanation.link
    outcome = f"<bdi>{escaped(explanation.outcome)}</bdi>"
    parts = [f"<b><bdi>{escaped(explanation.mention)}</bdi></b> {outcome}"]
    if link is not None:
        parts += [f"<div>{_path(link)}</div>", _candidates(explanation, link)]
    if explanation.reranked:
        parts.append(f"<div><bdi>{escaped(explanation.reranked)}</bdi></div>")
    if explanation.reason:
        expected = f"{explanation.expected}: {explanation.reason}"
        parts.append(f"<div><bdi>{escaped(expected)}</bdi></div>")
    return f"<li>{''.join(parts)}</li>"


def _path(link: Link) -> str:
    if link.evidence:
        return "<span class='arrow'>→</span>".join(map(_step, link.evidence))
    text = f"new entity {link.cluster}" if link.cluster else "no entity"
    return f"<span class='step nil'><bdi>{escaped(text)}</bdi></span>"


def _candidates(explanation: Explanation, link: Link) -> str:
    """The first candidates, folded."""
    if not link.ids:
        return ""
    rows = [
        (
            rank,
            explanation.titles.get(candidate.kb_id, candidate.title),
            candidate.kb_id,
            shown_probability(candidate.score),
        )
        for rank, candidate in enumerate(link.candidates[:SHOWN], 1)
    ]
    counts = counted(len(link.ids), "candidate")
    return f"<details><summary>{counts}</summary>{html_rows(rows)}</details>"


def _step(step: Evidence) -> str:
    """A step of a path; its id, document and context show when it is pointed at."""
    about = " · ".join(part for part in (step.id, step.document, step.context) if part)
    return (
        f"<span class='step {escaped(step.kind)}' title='{escaped(about)}'>"
        f"<bdi>{escaped(step.text)}</bdi> "
        f"<small>{escaped(step.kind)} {shown_probability(step.weight)}</small></span>"
    )


def _entity(span: Span, kb_url_template: Optional[str], extension: str) -> Dict[str, Any]:
    linked = span.kb_id_ not in ("", NIL)
    link = span._.get(extension) if Span.has_extension(extension) else None
    label = f"<bdi>{escaped(span.label_)}</bdi>"
    if link is not None and link.cluster:
        label += f" <bdi>{escaped(link.cluster)}</bdi>"
    # What displaCy puts in place of its own texts; it takes the colour from the label.
    drawn = {"text": f"<bdi>{escaped(span.text)}</bdi>", "label": label}
    address, name = NO_ADDRESS, ""
    if linked:
        name = _name(span.kb_id_, link)
        if kb_url_template:
            address = web_address(kb_url_template, span.kb_id_)
        else:
            drawn["kb_link"] = f" <span style='font-weight: normal'>{name}</span>"
    return {
        "start": span.start_char,
        "end": span.end_char,
        "label": escaped(span.label_),
        "kb_id": name,
        "kb_url": address,
        "params": drawn,
    }


def _name(kb_id: str, link: Optional[Link]) -> str:
    """The title, the id and the probability of an entity, as HTML."""
    if link is None or link.kb_id != kb_id:
        return f"<bdi>{escaped(kb_id)}</bdi>"
    title = f"<bdi>{escaped(link.title)}</bdi> " if link.title else ""
    return f"{title}<small><bdi>{escaped(kb_id)}</bdi> {shown_probability(link.score)}</small>"


def direction_of(doc: Doc) -> str:
    """ "rtl" for a text from right to left, else "ltr"; its first letter decides."""
    for character in doc.text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return str(doc.vocab.writing_system.get("direction", "ltr"))


def without_overlap(spans: Iterable[Span]) -> List[Span]:
    """Spans in order, without those that begin before the previous one has ended."""
    kept: List[Span] = []
    for span in spans:
        if not kept or span.start_char >= kept[-1].end_char:
            kept.append(span)
    return kept
