"""Links and their candidates as rows."""

from collections.abc import Iterable, Iterator
from typing import Any

from spacy.tokens import Doc

from ..base.errors import Warnings
from ..base.log import warn_once
from ..mentions.annotations import DEFAULT_EXTENSION, Link, links_of
from ..mentions.getters import EntSpans, SpanGetter, find_mentions, offsets_of_span
from ..mentions.record import document_id, text_fingerprint

MENTION = ("document", "start", "end", "text", "label")
LINK = (*MENTION, "kb_id", "title", "score", "presence", "undecided", "new_entity")
LINK_WITH_EVIDENCE = (*LINK, "evidence")
# The folder of such rows in the output of a linking in shards.
LINKS = "links"
LinkColumns = dict[str, Any]


def links_to_dicts(
    docs: Iterable[Doc],
    *,
    get_spans: SpanGetter | None = None,
    extension: str = DEFAULT_EXTENSION,
) -> list[dict[str, Any]]:
    """The links of documents, one dict per mention, JSON-serialisable.

    They follow the document: a mention that was removed after linking has no row, and one whose
    ``kb_id_`` was changed has the new id. Documents that were stored without their user data have
    rows with these ids alone.

    docs: Linked Docs. Each is named by its ``doc.user_data["doc_id"]``, or by the fingerprint of
        its text.
    get_spans: Which spans to take; ``doc.ents`` by default.
    extension: The attribute that carries the links.
    """
    return [
        link_row(mention, link)
        for mention, link in linked_mentions(docs, get_spans, extension)
    ]


def link_row(mention: dict[str, Any], link: Link) -> dict[str, Any]:
    """The columns ``LINK`` of a mention."""
    return {
        **mention,
        "kb_id": link.kb_id,
        "title": link.title,
        "score": link.score,
        "presence": link.presence,
        "undecided": " ".join(candidate.kb_id for candidate in link.undecided),
        "new_entity": link.cluster,
    }


def rows_of(
    docs: Iterable[Doc], get_spans: SpanGetter, extension: str
) -> Iterator[LinkColumns]:
    """The rows ``LINK_WITH_EVIDENCE`` of linked documents, one per mention.

    ``evidence`` has the ids of the steps of the path, from the entity to the mention.
    """
    for mention, link in linked_mentions(docs, get_spans, extension):
        yield {
            **link_row(mention, link),
            "evidence": [step.id for step in link.evidence],
        }


def candidates_to_dicts(
    docs: Iterable[Doc],
    *,
    count: int = 5,
    get_spans: SpanGetter | None = None,
    extension: str = DEFAULT_EXTENSION,
) -> list[dict[str, Any]]:
    """Convert first candidates to dicts that can be written as JSON.

    count: How many candidates of a mention. Links have the titles of the first five.
    docs, get_spans, extension: As in ``links_to_dicts``.
    """
    return [
        {
            **mention,
            "rank": rank,
            **candidate._asdict(),
            "is_linked": candidate.kb_id == link.kb_id,
        }
        for mention, link in linked_mentions(docs, get_spans, extension)
        for rank, candidate in enumerate(link.candidates[:count], 1)
    ]


def linked_mentions(
    docs: Iterable[Doc], get_spans: SpanGetter | None, extension: str
) -> Iterator[tuple[dict[str, Any], Link]]:
    """The place of each linked mention, and its link."""
    for doc in docs:
        spans = find_mentions(doc, get_spans or EntSpans())
        if get_spans is None and not any(span.kb_id_ for span in spans):
            _warn_of_groups(doc)
        document = document_id(doc) or text_fingerprint(doc.text)
        for span, link in zip(
            spans, links_of(doc, spans, extension, with_annotated=True)
        ):
            if link is not None:
                place = (document, *offsets_of_span(span), span.text, span.label_)
                yield dict(zip(MENTION, place)), link


def _warn_of_groups(doc: Doc) -> None:
    linked = [
        name for name, group in doc.spans.items() if any(span.kb_id_ for span in group)
    ]
    if linked:
        names = ", ".join(map(repr, linked))
        warn_once(Warnings.W111.format(groups=names, first=linked[0]))
