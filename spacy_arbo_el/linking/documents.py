"""Convert Docs to links by offset, and write them back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from spacy.tokens import Doc, Span

from ..base.memory import release_memory
from ..encoders.dual import one_thread_after_fork
from ..kb.entity import NIL
from ..mentions.annotations import (
    DocLinks,
    Link,
    Overwrite,
    annotate,
    annotate_new_entities,
    annotate_parts,
)
from ..mentions.getters import FOUND_AS, place_of
from .stages import LinkingStages

# After so many mentions, memory that they left free is returned: it costs as much as a few of them.
MANY = 500


class Coordination(NamedTuple):
    """A way to read a mention as a coordination.

    document: The number of its document.
    start_char: Where it begins.
    parts: Spans of a new Doc, the first at the beginning of the mention.
    """

    document: int
    start_char: int
    parts: list[Span]


@dataclass(frozen=True)
class DocumentLinker:
    """Links documents, each for itself, and writes links onto Docs.

    threshold: The probability that a link must have.
    extension: Name of the attribute that carries the ``Link``.
    overwrite: Which existing kb ids are replaced.
    """

    stages: LinkingStages
    threshold: float
    extension: str
    overwrite: Overwrite

    def link(self, docs: Sequence[Doc]) -> list[DocLinks]:
        one_thread_after_fork()
        spans = [self.stages.reader.mentions_to_link(doc) for doc in docs]
        if not any(spans):
            return self.by_doc(docs, spans, [], [])
        with self.stages.datastore.snapshot():
            coordinations = self.coordinations(spans)
            # By themselves: what else the document speaks of has no part in them.
            groups = [*spans, *(parts for *_, parts in coordinations)]
            links = self.stages.link(groups, self.threshold).links
            links_of_docs = self.by_doc(docs, spans, coordinations, links)
        if sum(map(len, spans)) >= MANY:
            release_memory()
        return links_of_docs

    def coordinations(self, spans: Sequence[Sequence[Span]]) -> list[Coordination]:
        """The ways to read the mentions of documents as coordinations."""
        return [
            Coordination(number, span.start_char, parts)
            for number, group in enumerate(spans)
            for span in group
            for parts in self.stages.reader.coordinations(span)
        ]

    def by_doc(
        self,
        docs: Sequence[Doc],
        spans: Sequence[Sequence[Span]],
        coordinations: Sequence[Coordination],
        links: Iterable[Link],
    ) -> list[DocLinks]:
        """Links by the places of their mentions. NIL for discarded ones.

        Parts of coordinations whose parts are all linked have places too.

        spans: For each document the mentions that were linked.
        links: One link for each of them, then one for each part.
        """
        rest = iter(links)
        reader = self.stages.reader
        labels = reader.settings.labels
        links_of_docs: list[DocLinks] = []
        for doc, group in zip(docs, spans):
            of_doc = {
                place_of(span): Link(NIL, 0.0)
                for span in reader.all_mentions(doc)
                if labels is None or span.label_ in labels
            }
            of_doc.update(zip(map(place_of, group), rest))
            links_of_docs.append(of_doc)
        for document, start_char, parts in coordinations:
            of_parts = list(islice(rest, len(parts)))
            if len({link.kb_id for link in of_parts} - {NIL}) < len(parts):
                continue
            shift = start_char - parts[0].start_char
            for part, link in zip(parts, of_parts):
                start, end, label = place_of(part)
                place = start + shift, end + shift, label
                linked = replace(link, read_as=part._.get(FOUND_AS))
                links_of_docs[document].setdefault(place, linked)
        return links_of_docs

    def annotate(self, doc: Doc, links: DocLinks) -> None:
        annotate(
            doc,
            links,
            self.stages.reader.settings.getter,
            self.extension,
            self.overwrite,
        )
        annotate_parts(doc, links, self.stages.reader.settings.parts_key)

    def annotate_new_entities(self, doc: Doc, links: DocLinks) -> None:
        """Write mentions of new entities to their span group."""
        getter = self.stages.reader.settings.getter
        discovery = self.stages.discovery
        if discovery is not None and discovery.spans_key:
            annotate_new_entities(doc, links, getter, discovery.spans_key)
