"""Linking: from the mentions of docs to links, each doc for itself or all together."""

from dataclasses import replace
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from spacy.tokens import Doc, Span

from .annotations import Link, annotate
from .correcting import CorrectableLinker
from .discovery.found import Discovered, describe
from .encoders.forking import one_thread_after_fork
from .inference.calibration import Calibration, log_odds
from .inference.decisions import Decisions, Inference, rank_candidates
from .inference.links import make_links
from .kb.entity import NIL
from .kb.knowledge_base import ArboKB
from .mentions import Offsets, SpanGetter, find_mentions, offsets_of_span
from .retrieval.corrections import Asked
from .retrieval.entities import Types
from .retrieval.exemplars import ExemplarStore
from .retrieval.neighbours import Neighbours, Retriever
from .retrieval.similarity import Similarity
from .serialization import check_threshold


class Linked(NamedTuple):
    """Mentions as they were linked: in words, in numbers, their candidates and vectors."""

    links: List[Link]
    decisions: Decisions
    ranked: Tuple[np.ndarray, np.ndarray]
    vectors: np.ndarray


class LinkingLinker(CorrectableLinker):
    """The part of ``ArboLinker`` that walks the road from Doc to links."""

    cfg: Dict[str, Any]
    span_getter: SpanGetter
    similarity: Similarity
    inference: Inference
    labels_discard: frozenset
    threshold: float
    calibration: Calibration

    @property
    def kb(self) -> ArboKB:
        """The knowledge base; entities added, updated or removed here count at once."""
        return self.memory.kb

    @property
    def exemplars(self) -> ExemplarStore:
        """The labelled mentions that are searched beside the entities."""
        return self.memory.exemplars

    def refresh(self) -> Retriever:
        """Encode entities and exemplars whose vectors are not those of the present encoder.

        Linking, training and saving do so by themselves.
        """
        self.encoding.require_ready(self.name)
        return self.memory.refresh()

    def link_corpus(self, docs: Iterable[Doc]) -> List[Doc]:
        """Link the mentions of all docs together, in one graph.

        Mentions of different docs support each other, and a new entity's ``cluster`` has one name
        over all of them, which ``nlp.pipe`` never does: there a doc's links depend on it alone.

        RETURNS: The docs, annotated.
        """
        docs = list(docs)
        self.set_annotations(docs, self._predict(docs, across=True))
        return docs

    def discover(
        self, docs: Iterable[Doc], *, threshold: Optional[float] = None
    ) -> List[Discovered]:
        """The new entities of all docs together: clusters of mentions that no entity fits.

        The docs are annotated as by ``link_corpus``, with the new entities' ids as ``cluster``.

        threshold: The chance of being right that a link must have; the linker's own by default.
        RETURNS: The largest first.
        """
        docs, least = list(docs), self.threshold if threshold is None else threshold
        check_threshold(least)
        spans, links = self._mentions(docs)
        if not any(spans):
            self.set_annotations(docs, links)
            return []
        linked = self._link(spans, across=True, threshold=least)
        flat = [span for group in spans for span in group]
        numbers = np.repeat(np.arange(len(docs)), [len(group) for group in spans])
        decisions, ranked = linked.decisions, linked.ranked
        found = describe(flat, numbers, decisions.cluster, linked.vectors, ranked, self.kb, least)
        ids = {(m.document, m.start, m.end): one.id for one in found for m in one.members}
        keys = ((number, *offsets_of_span(s)) for number, s in zip(numbers.tolist(), flat))
        named = [replace(link, cluster=ids.get(key, "")) for key, link in zip(keys, linked.links)]
        _put(links, spans, named)
        self.set_annotations(docs, links)
        return found

    def predict(self, docs: Iterable[Doc]) -> List[Dict[Offsets, Link]]:
        """Link the mentions of docs, each doc for itself, without changing them.

        RETURNS: For each doc its links by the mentions' character offsets.
        """
        return self._predict(list(docs), across=False)

    def _mentions(self, docs: List[Doc]) -> Tuple[List[List[Span]], List[Dict[Offsets, Link]]]:
        """The mentions of each doc that are to be linked, and NIL for all, by their offsets."""
        one_thread_after_fork()
        self.encoding.require_ready(self.name)
        spans = [find_mentions(doc, self.span_getter) for doc in docs]
        wanted = [[s for s in group if s.label_ not in self.labels_discard] for group in spans]
        return wanted, [
            {offsets_of_span(span): Link(NIL, 0.0) for span in group} for group in spans
        ]

    def _predict(self, docs: List[Doc], across: bool) -> List[Dict[Offsets, Link]]:
        wanted, links = self._mentions(docs)
        if not any(wanted):
            return links
        _put(links, wanted, self._link(wanted, across, self.threshold).links)
        return links

    def _link(self, spans: Sequence[Sequence[Span]], across: bool, threshold: float) -> "Linked":
        vectors, forms = self._encode(spans)
        neighbours = self._near(spans, vectors, forms, across)
        decisions = self.inference(neighbours, self.calibration, log_odds(threshold))
        ranked = rank_candidates(neighbours, self.calibration, self.cfg["n_candidates"])
        flat = [span for group in spans for span in group]
        scope = np.zeros_like(neighbours.document) if across else neighbours.document
        links = make_links(flat, scope, decisions, ranked, self.kb, self.exemplars)
        return Linked(links, decisions, ranked, vectors)

    def find_neighbours(
        self, spans: Sequence[Sequence[Span]], *, across: bool = False
    ) -> Neighbours:
        """What is near the mentions of each document, see ``Neighbours``.

        across: Whether mentions of other documents count as neighbours too.
        """
        return self._near(spans, *self._encode(spans), across)

    def _encode(self, spans: Sequence[Sequence[Span]]) -> Tuple[np.ndarray, List[str]]:
        """The vectors of mentions, prepared, and what is read for each."""
        windows, forms = self.reader.read(spans)
        return self.similarity.prepare(self.encoding.encode_windows(windows)), forms

    def _near(
        self,
        spans: Sequence[Sequence[Span]],
        vectors: np.ndarray,
        forms: List[str],
        across: bool,
    ) -> Neighbours:
        retriever = self.refresh()
        document = np.repeat(np.arange(len(spans)), [len(group) for group in spans])
        neighbours = retriever.neighbours(
            vectors,
            document,
            self.cfg["n_candidates"],
            self.inference.exemplars,
            self.inference.mentions,
            across=across,
            types=self._types(spans),
            named=self.memory.named(forms),
        )
        if self.inference.exemplars:
            neighbours = self.memory.weigh_up(neighbours, forms)
        if not len(self.memory.corrections):
            return neighbours
        keys = [self._key(span) for group in spans for span in group]
        return self.memory.correct(neighbours, Asked(keys, forms, vectors))

    def _types(self, spans: Sequence[Sequence[Span]]) -> Optional[Types]:
        if not self.cfg["match_types"]:
            return None
        return self.memory.types([span.label_ for group in spans for span in group])

    def set_annotations(self, docs: Iterable[Doc], links: Sequence[Dict[Offsets, Link]]) -> None:
        """Write the links that ``predict`` found onto the docs; see ``annotations.py``."""
        name, overwrite = self.cfg["extension"], self.cfg["overwrite"]
        for doc, links_of_doc in zip(docs, links):
            annotate(doc, links_of_doc, self.span_getter, name, overwrite)


def _put(
    links: List[Dict[Offsets, Link]], spans: Sequence[Sequence[Span]], found: Sequence[Link]
) -> None:
    """Put the links found, one for each span, in their places."""
    flat = ((i, span) for i, group in enumerate(spans) for span in group)
    for (i, span), link in zip(flat, found):
        links[i][offsets_of_span(span)] = link
