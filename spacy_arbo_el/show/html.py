"""Linked Docs as HTML. Drawn by displaCy, with the evidence for each link under them."""

import re
import unicodedata
from collections.abc import Iterable
from html import escape
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from spacy import displacy
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from ..base.display import shown_probability
from ..base.errors import Errors
from ..base.pages import page as render
from ..kb.entity import NIL
from ..mentions.annotations import Link, links_of
from ..mentions.explanation import Explanation, outcome_of
from ..mentions.getters import EntSpans, SpanGetter, find_mentions
from ..mentions.record import document_id
from .arborescence import draw_arborescence

_WEB = re.compile(r"https?://[^/]", re.IGNORECASE)
# Where an address has no meaning in a link, as displaCy writes it.
NO_ADDRESS = "#"
# The characters that an address may have; all others are quoted.
_OF_ADDRESSES = ":/?#[]@!$&'()*+,;=%~"


def to_displacy(
    doc: Doc,
    *,
    kb_url_template: str | None = None,
    get_spans: SpanGetter | None = None,
    extension: str = "arbo",
) -> dict[str, Any]:
    """A Doc as input for ``displacy.render(..., style="ent", manual=True)``.

    Each link shows the title, the id and the probability. displaCy itself draws "NIL" as a link
    like any other. Here a mention that no entity fits shows its label and the id of its new
    entity, and no link. Text from right to left stays so, also beside names from left to right.

    displaCy writes ids, labels, titles and addresses unescaped. Here they are escaped, so that
    a knowledge base or a document of others cannot put markup or scripts into a page.

    doc: A linked Doc.
    kb_url_template: Address of an entity, http or https; ``{}`` stands for its id.
    get_spans: Which spans to draw; ``doc.ents`` by default. Of those that overlap, the longest.
    extension: The attribute that carries the links.
    """
    if kb_url_template is not None:
        # It must give web addresses.
        example = kb_url_template.replace("{}", "x")
        if not kb_url_template.startswith("{}") and not _WEB.match(example):
            raise Errors.E750(value=kb_url_template)
    spans = find_mentions(doc, get_spans or EntSpans())
    ents = [_entity(span, kb_url_template, extension) for span in filter_spans(spans)]
    title = doc.user_data.get("title")
    return {
        "text": doc.text,
        "ents": ents,
        "title": title and escaped(title),
        "settings": {"lang": escaped(doc.lang_), "direction": direction_of(doc)},
    }


def render_evidence(
    docs: Iterable[Doc],
    *,
    kb_url_template: str | None = None,
    get_spans: SpanGetter | None = None,
    extension: str = "arbo",
    threshold: float | None = None,
    page: bool = True,
) -> str:
    """Linked Docs as HTML. Each as displaCy draws it, and under it the evidence for each link.

    docs: Linked Docs.
    kb_url_template, get_spans, extension: As in ``to_displacy``.
    threshold: The linker's, to say what fell below it.
    page: Whether the HTML is a complete page, which can be searched and sorted.
    """
    get_spans = get_spans or EntSpans()
    options: dict[str, Any] = {"get_spans": get_spans, "extension": extension}
    shown = []
    for number, doc in enumerate(docs):
        drawn = to_displacy(doc, kb_url_template=kb_url_template, **options)
        figure = displacy.render(drawn, style="ent", manual=True, jupyter=False)
        spans = find_mentions(doc, get_spans)
        pairs = list(zip(spans, links_of(doc, spans, extension)))
        links = [(span.text, link) for span, link in pairs if link is not None]
        scores = [link.score for _, link in links if not link.is_nil]
        shown.append(
            {
                "name": document_id(doc) or f"document {number + 1}",
                "figure": Markup(figure),
                "explanations": [
                    Explanation(text, link, outcome_of(link, link.title, threshold))
                    for text, link in links
                ],
                "uncertainty": 1.0 - min(scores, default=1.0),
                "drawing": Markup(draw_arborescence(doc, **options)) if links else "",
            }
        )
    return render("evidence", docs=shown, page=page)


def _entity(span: Span, kb_url_template: str | None, extension: str) -> dict[str, Any]:
    linked = span.kb_id_ not in ("", NIL)
    link = span._.get(extension) if Span.has_extension(extension) else None
    label = f"<bdi>{escaped(span.label_)}</bdi>"
    if link is not None and link.cluster:
        label += f" <bdi>{escaped(link.cluster)}</bdi>"
    # What displaCy puts in place of its texts; it takes the colour from the label.
    drawn = {"text": f"<bdi>{escaped(span.text)}</bdi>", "label": label}
    address = NO_ADDRESS
    name = ""
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


def _name(kb_id: str, link: Link | None) -> str:
    if link is None or link.kb_id != kb_id:
        return f"<bdi>{escaped(kb_id)}</bdi>"
    title = f"<bdi>{escaped(link.title)}</bdi> " if link.title else ""
    return f"{title}<small><bdi>{escaped(kb_id)}</bdi> {shown_probability(link.score)}</small>"


def direction_of(doc: Doc) -> str:
    """ "rtl" for a text from right to left, else "ltr". Its first letter decides."""
    for character in doc.text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return str(doc.vocab.writing_system.get("direction", "ltr"))


def escaped(text: object) -> str:
    """Escape a text for HTML elements and quoted attributes.

    Half characters (lone surrogates), which no file can hold, become question marks.
    """
    return escape(str(text).encode("utf8", "replace").decode("utf8"), quote=True)


def web_address(template: str, kb_id: str) -> str:
    """Address of an entity for an attribute; "#" where it is none of the web.

    template: ``{}`` stands for the id.
    """
    kb_id = kb_id.encode("utf8", "replace").decode("utf8")
    address = template.replace("{}", quote(kb_id, safe=_OF_ADDRESSES))
    return escaped(address) if _WEB.match(address) else NO_ADDRESS
