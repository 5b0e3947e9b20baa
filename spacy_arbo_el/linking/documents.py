"""Convert Docs to links by offset, and write them back."""

from dataclasses import dataclass
from typing import Iterable, List, Sequence

from spacy.tokens import Doc, Span

from ..annotations import DocLinks, Link, Overwrite, annotate, annotate_new_entities
from ..encoders.forking import one_thread_after_fork
from ..kb.entity import NIL
from ..mentions.getters import offsets_of_span
from .stages import LinkingStages
from .stream import Stream


@dataclass(frozen=True)
class DocumentLinker:
    """Links documents, each for itself, and writes links onto Docs.

    stages: The stages of linking.
    threshold: The probability that a link must have.
    extension: Name of the attribute that carries the ``Link``.
    overwrite: Which existing kb ids are replaced.
    """

    stages: LinkingStages
    threshold: float
    extension: str
    overwrite: Overwrite

    def link(self, docs: Sequence[Doc]) -> List[DocLinks]:
        """The links of docs."""
        spans = self._spans(docs)
        if not any(spans):
            return self.by_doc(docs, spans, [])
        return self.by_doc(docs, spans, self.stages.link(spans, self.threshold).links)

    def link_and_keep(self, docs: Sequence[Doc], stream: Stream) -> List[DocLinks]:
        """The links of docs. Mentions that no entity fits are added to the new entities."""
        spans = self._spans(docs)
        return self.by_doc(docs, spans, stream.link(self.stages, spans, self.threshold))

    def _spans(self, docs: Sequence[Doc]) -> List[List[Span]]:
        one_thread_after_fork()
        return [self.stages.reader.mentions_to_link(doc) for doc in docs]

    def by_doc(
        self, docs: Sequence[Doc], spans: Sequence[Sequence[Span]], links: Iterable[Link]
    ) -> List[DocLinks]:
        """Links by the offsets of their mentions. NIL for mentions that are not to be linked.

        docs: The documents.
        spans: For each document the mentions that were linked.
        links: One link for each of them.
        """
        rest, reader = iter(links), self.stages.reader
        all_links: List[DocLinks] = []
        for doc, group in zip(docs, spans):
            of_doc = {offsets_of_span(span): Link(NIL, 0.0) for span in reader.all_mentions(doc)}
            of_doc.update((offsets_of_span(span), next(rest)) for span in group)
            all_links.append(of_doc)
        return all_links

    def annotate(self, doc: Doc, links: DocLinks, *, new_entities: bool) -> None:
        """Write links onto a Doc.

        new_entities: Whether mentions of new entities are written to their span group too.
        """
        getter, discovery = self.stages.reader.settings.getter, self.stages.discovery
        annotate(doc, links, getter, self.extension, self.overwrite)
        if new_entities and discovery is not None and discovery.spans_key:
            annotate_new_entities(doc, links, getter, discovery.spans_key)
