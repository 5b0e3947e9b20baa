"""Convert Docs to links by offset, and write them back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spacy.tokens import Doc, Span

from ..base.calibration import log_odds
from ..base.errors import Warnings
from ..base.log import warn_once
from ..encoders.dual import one_thread_after_fork
from ..kb.entity import NIL
from ..mentions.annotations import DocLinks, Link, Overwrite, annotate, annotate_new_entities
from ..mentions.getters import place_of
from ..ranking.decisions import Decisions
from .stages import LinkingStages

# The mentions that are counted, and the share without a sure link from which advice is given.
COUNTED = 200
MANY = 0.3
# A link with less is not sure.
SURE = log_odds(0.5)


class NilCount:
    """Counts mentions without a sure link, and advises once where they are many."""

    def __init__(self, name: str):
        self.name = name
        self.mentions = 0
        self.unlinked = 0
        self.doubtful = 0

    def add(self, decisions: Decisions) -> None:
        """Count mentions by the decisions on them."""
        if self.mentions >= COUNTED:
            return
        is_linked = decisions.entities >= 0
        self.mentions += len(is_linked)
        self.unlinked += int((~is_linked).sum())
        self.doubtful += int((is_linked & (decisions.logits < SURE)).sum())
        if self.mentions >= COUNTED and self.unlinked + self.doubtful > MANY * self.mentions:
            message = Warnings.W550.format(
                name=self.name,
                count=self.mentions,
                unlinked=self.unlinked,
                doubtful=self.doubtful,
            )
            warn_once(message, f"W550 {self.name}")


@dataclass(frozen=True)
class DocumentLinker:
    """Links documents, each for itself, and writes links onto Docs.

    nil: Counts the mentions without an entity; None where nothing is advised.
    """

    stages: LinkingStages
    threshold: float
    extension: str
    overwrite: Overwrite
    nil: NilCount | None = None

    def link(self, docs: Sequence[Doc]) -> list[DocLinks]:
        """The links of docs."""
        one_thread_after_fork()
        spans = [self.stages.reader.mentions_to_link(doc) for doc in docs]
        if not any(spans):
            return self.by_doc(docs, spans, [])
        linked = self.stages.link(spans, self.threshold)
        if self.nil is not None:
            self.nil.add(linked.decisions)
        return self.by_doc(docs, spans, linked.links)

    def by_doc(
        self, docs: Sequence[Doc], spans: Sequence[Sequence[Span]], links: Iterable[Link]
    ) -> list[DocLinks]:
        """Links by the places of their mentions. NIL for mentions that are not to be linked.

        spans: For each document the mentions that were linked.
        links: One link for each of them.
        """
        rest = iter(links)
        reader = self.stages.reader
        all_links: list[DocLinks] = []
        for doc, group in zip(docs, spans):
            of_doc = {place_of(span): Link(NIL, 0.0) for span in reader.all_mentions(doc)}
            of_doc.update((place_of(span), next(rest)) for span in group)
            all_links.append(of_doc)
        return all_links

    def annotate(self, doc: Doc, links: DocLinks) -> None:
        """Write links onto a Doc."""
        annotate(doc, links, self.stages.reader.settings.getter, self.extension, self.overwrite)

    def annotate_new_entities(self, doc: Doc, links: DocLinks) -> None:
        """Write mentions of new entities to their span group."""
        getter = self.stages.reader.settings.getter
        discovery = self.stages.discovery
        if discovery is not None and discovery.spans_key:
            annotate_new_entities(doc, links, getter, discovery.spans_key)
