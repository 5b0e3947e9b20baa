"""Convert Docs to links by offset, and write them back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spacy.tokens import Doc, Span

from ..encoders.dual import one_thread_after_fork
from ..kb.entity import NIL
from ..mentions.annotations import (
    DocLinks,
    Link,
    Overwrite,
    annotate,
    annotate_new_entities,
)
from ..mentions.getters import place_of
from .stages import LinkingStages


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
        return self.by_doc(docs, spans, self.stages.link(spans, self.threshold).links)

    def by_doc(
        self,
        docs: Sequence[Doc],
        spans: Sequence[Sequence[Span]],
        links: Iterable[Link],
    ) -> list[DocLinks]:
        """Links by the places of their mentions. NIL for discarded ones.

        spans: For each document the mentions that were linked.
        links: One link for each of them.
        """
        rest = iter(links)
        reader = self.stages.reader
        labels = reader.settings.labels
        all_links: list[DocLinks] = []
        for doc, group in zip(docs, spans):
            of_doc = {
                place_of(span): Link(NIL, 0.0)
                for span in reader.all_mentions(doc)
                if labels is None or span.label_ in labels
            }
            of_doc.update((place_of(span), next(rest)) for span in group)
            all_links.append(of_doc)
        return all_links

    def annotate(self, doc: Doc, links: DocLinks) -> None:
        annotate(
            doc,
            links,
            self.stages.reader.settings.getter,
            self.extension,
            self.overwrite,
        )

    def annotate_new_entities(self, doc: Doc, links: DocLinks) -> None:
        """Write mentions of new entities to their span group."""
        getter = self.stages.reader.settings.getter
        discovery = self.stages.discovery
        if discovery is not None and discovery.spans_key:
            annotate_new_entities(doc, links, getter, discovery.spans_key)
