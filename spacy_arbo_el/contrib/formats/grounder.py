"""A pipeline as a grounder of ssslm, for tools that take one. It needs the extra ``ssslm``."""

from pathlib import Path
from typing import Any

import ssslm
from curies import NamableReference
from spacy.language import Language

from ...linker import find_linker
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
        around = context if context and text in context else text
        doc = self.nlp.make_doc(around)
        start = around.index(text)
        name = doc.char_span(start, start + len(text), LABEL, alignment_mode="expand")
        doc.ents = [] if name is None else [name]
        links = [span._.arbo for span in find_linker(self.nlp)(doc).ents]
        linked = [link for link in links if not link.is_nil]
        return [
            self._match(candidate.kb_id, candidate.title, candidate.score)
            for link in linked
            for candidate in link.candidates
        ]

    def annotate(self, text: str, **kwargs: Any) -> "list[ssslm.Annotation[Any]]":
        """The mentions of a text that are linked, in its order."""
        linked = [span for span in self.nlp(text).ents if not span._.arbo.is_nil]
        return [
            ssslm.Annotation(
                text=text,
                start=span.start_char,
                end=span.end_char,
                match=self._match(span.kb_id_, span._.arbo.title, span._.arbo.score),
            )
            for span in linked
        ]

    def _match(self, entity_id: str, title: str, score: float) -> "ssslm.Match[Any]":
        reference = NamableReference.from_curie(curie(entity_id, self.prefix), name=title)
        return ssslm.Match(reference=reference, score=score)
