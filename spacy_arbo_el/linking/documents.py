"""Convert Docs to links by offset, and write them back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

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
            return self.by_doc(docs, spans, [])
        with self.stages.datastore.reading():
            links = self.stages.link(spans, self.threshold).links
            links_of_docs = self.by_doc(docs, spans, links)
        if sum(map(len, spans)) >= MANY:
            release_memory()
        return links_of_docs

    def by_doc(
        self,
        docs: Sequence[Doc],
        spans: Sequence[Sequence[Span]],
        links: Iterable[Link],
    ) -> list[DocLinks]:
        """Links by the places of their mentions. NIL for discarded ones.

        Parts of coordinations have places too.

        spans: For each document the mentions that were linked.
        links: One link for each of them.
        """
        rest = iter(links)
        reader = self.stages.reader
        labels = reader.settings.labels
        all_links: list[DocLinks] = []
        for doc, group, of_parts in zip(docs, spans, self._parts(spans)):
            of_doc = {
                place_of(span): Link(NIL, 0.0)
                for span in reader.all_mentions(doc)
                if labels is None or span.label_ in labels
            }
            of_doc.update(zip(map(place_of, group), rest))
            all_links.append(of_parts | of_doc)
        return all_links

    def _parts(self, spans: Sequence[Sequence[Span]]) -> list[DocLinks]:
        """By document, the links of the parts of coordinations whose parts are all linked."""
        links_of_docs: list[DocLinks] = [{} for _ in spans]
        readings = [
            (links, span.start_char, parts)
            for links, group in zip(links_of_docs, spans)
            for span in group
            for parts in self.stages.reader.coordinations(span)
        ]
        if not readings:
            return links_of_docs
        # By themselves: what else the document speaks of has no part in it.
        groups = [parts for _, _, parts in readings]
        linked = iter(self.stages.link(groups, self.threshold).links)
        for links, start_char, parts in readings:
            of_parts = list(islice(linked, len(parts)))
            if len({link.kb_id for link in of_parts} - {NIL}) < len(parts):
                continue
            shift = start_char - parts[0].start_char
            for part, link in zip(parts, of_parts):
                start, end, label = place_of(part)
                place = start + shift, end + shift, label
                links.setdefault(place, replace(link, read_as=part._.get(FOUND_AS)))
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
