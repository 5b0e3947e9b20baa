"""A pipeline as a grounder of ssslm, for tools that take one. It needs the extra ``ssslm``."""

import re
from pathlib import Path
from typing import Any

import ssslm
from curies import NamableReference
from spacy.language import Language
from spacy.tokens import Doc, Span

from ...linker import find_linker
from ...mentions.annotations import Link
from ...mentions.getters import find_mentions, set_mentions
from ...pipelines import load_pipeline
from .sssom import curie

# The label of a name that is looked up by itself.
LABEL = "NAME"


class ArboGrounder(ssslm.Grounder):
    """Links names, and annotates texts, by a pipeline with a linker.

    nlp: To annotate, it must find mentions, as ``arbo init`` makes it.
    prefix: That of ids which have none, such as "DOID".
    """

    def __init__(self, nlp: Language, prefix: str = ""):
        self.nlp = nlp
        self.prefix = prefix

    @classmethod
    def from_disk(cls, path: str | Path, prefix: str = "") -> "ArboGrounder":
        """The grounder of a saved pipeline."""
        return cls(load_pipeline(path), prefix)

    def not_empty(self) -> bool:
        """Return whether the list has entities."""
        return len(find_linker(self.nlp).kb) > 0

    def get_matches(
        self, text: str, context: str | None = None, **kwargs: Any
    ) -> "list[ssslm.Match[Any]]":
        """The candidates for a name, the best first; none where it is of no entity of the list.

        context: A text with the name in it.
        """
        linker = find_linker(self.nlp)
        place = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", context or "")
        doc = self.nlp.make_doc(place.string if place else text)
        start, end = place.span() if place else (0, len(text))
        name = doc.char_span(start, end, LABEL, alignment_mode="expand")
        set_mentions(doc, [] if name is None else [name], linker.mentions.getter)
        return [
            self._match(candidate.kb_id, candidate.title, candidate.score)
            for _, link in self._linked(linker(doc))
            for candidate in link.candidates
        ]

    def annotate(self, text: str, **kwargs: Any) -> "list[ssslm.Annotation[Any]]":
        """The mentions of a text that are linked, in its order."""
        return [
            ssslm.Annotation(
                text=text,
                start=span.start_char,
                end=span.end_char,
                match=self._match(link.kb_id, link.title, link.score),
            )
            for span, link in self._linked(self.nlp(text))
        ]

    def _linked(self, doc: Doc) -> list[tuple[Span, Link]]:
        """The mentions of a document that are linked, with their links."""
        linker = find_linker(self.nlp)
        spans = find_mentions(doc, linker.mentions.getter)
        links = [(span, span._.get(linker.cfg["extension"])) for span in spans]
        return [
            (span, link)
            for span, link in links
            if link is not None and not link.is_nil
        ]

    def _match(self, entity_id: str, title: str, score: float) -> "ssslm.Match[Any]":
        reference = NamableReference.from_curie(
            curie(entity_id, self.prefix), name=title
        )
        return ssslm.Match(reference=reference, score=score)
