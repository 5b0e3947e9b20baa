"""Linking: from the mentions of a doc to links, each doc for itself."""

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from spacy.tokens import Doc, Span

from ..annotations import Link, annotate
from ..discovery.grouping import Discovery
from ..encoders.forking import one_thread_after_fork
from ..encoders.sequences import Sequences
from ..inference.calibration import Calibration, log_odds
from ..inference.decisions import Decisions, Inference, rank_candidates, weighed
from ..inference.links import make_links, numbers_within, tell_spans
from ..kb.entity import NIL
from ..kb.knowledge_base import ArboKB
from ..mentions import Offsets, SpanGetter, find_mentions, keys_of, offsets_of_span
from ..retrieval.corpus import same_label_only
from ..retrieval.corrections import Asked
from ..retrieval.entities import Types
from ..retrieval.exemplars import ExemplarStore
from ..retrieval.neighbours import Neighbours, Retriever
from ..retrieval.similarity import Similarity
from .correcting import CorrectableLinker

Spans = Sequence[Sequence[Span]]
LinksOfDocs = List[Dict[Offsets, Link]]
Ranked = Tuple[np.ndarray, np.ndarray]
Encoded = Tuple[np.ndarray, List[str]]


class Linked(NamedTuple):
    """Mentions as they were linked: in words, in numbers, their candidates and vectors."""

    links: List[Link]
    decisions: Decisions
    ranked: Ranked
    vectors: np.ndarray


class LinkingLinker(CorrectableLinker):
    """The part of ``ArboLinker`` that walks the road from Doc to links."""

    cfg: Dict[str, Any]
    span_getter: SpanGetter
    similarity: Similarity
    inference: Inference
    discovery: Optional[Discovery]
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

    def predict(self, docs: Iterable[Doc]) -> LinksOfDocs:
        """Link the mentions of docs, each doc for itself, without changing them.

        RETURNS: For each doc its links by the mentions' character offsets.
        """
        wanted, links = self._mentions(list(docs))
        if any(wanted):
            put(links, wanted, self._link(wanted, self.threshold).links)
        return links

    def set_annotations(self, docs: Iterable[Doc], links: LinksOfDocs) -> None:
        """Write the links that ``predict`` found onto the docs; see ``annotations.py``."""
        name, overwrite = self.cfg["extension"], self.cfg["overwrite"]
        for doc, links_of_doc in zip(docs, links):
            annotate(doc, links_of_doc, self.span_getter, name, overwrite)

    def encode_mentions(self, spans: Spans) -> Encoded:
        """The vectors of mentions, (m, width) float32, prepared; and what is read for each.

        spans: The mentions of each document.
        """
        windows, forms = self.reader.read(spans)
        return self._encode_prepared(windows), forms

    def _encode_prepared(self, windows: Sequences) -> np.ndarray:
        return self.similarity.prepare(self.encoding.encode_windows(windows))

    def find_neighbours(self, spans: Spans, encoded: Optional[Encoded] = None) -> Neighbours:
        """What is near the mentions of each document, see ``Neighbours``.

        encoded: What ``encode_mentions`` gave for them, where it is known.
        """
        vectors, forms = encoded or self.encode_mentions(spans)
        return self._near(spans, vectors, forms, self.inference.mentions)

    def mentions_of(self, doc: Doc) -> List[Span]:
        """The mentions of a Doc that are to be linked, in order."""
        return self._kept_labels(find_mentions(doc, self.span_getter))

    def _kept_labels(self, spans: Sequence[Span]) -> List[Span]:
        return [span for span in spans if span.label_ not in self.labels_discard]

    def _mentions(self, docs: Sequence[Doc]) -> Tuple[List[List[Span]], LinksOfDocs]:
        """The mentions of each doc that are to be linked, and NIL for all, by their offsets."""
        one_thread_after_fork()
        self.encoding.require_ready(self.name)
        spans = [find_mentions(doc, self.span_getter) for doc in docs]
        return list(map(self._kept_labels, spans)), [
            {offsets_of_span(span): Link(NIL, 0.0) for span in group} for group in spans
        ]

    def _link(self, spans: Spans, threshold: float) -> Linked:
        vectors, forms = self.encode_mentions(spans)
        found = self.find_neighbours(spans, (vectors, forms))
        neighbours = weighed(found, self.calibration)
        decisions = self.inference(neighbours, self.calibration, log_odds(threshold))
        ranked = rank_candidates(neighbours, self.calibration, self.cfg["n_candidates"])
        flat = [span for group in spans for span in group]
        labels = np.array([span.label for span in flat], dtype=np.uint64)
        groups = self._group(decisions, vectors, forms, labels, neighbours.document)
        names = numbers_within(neighbours.document, groups)
        rows = range(len(flat))
        told = tell_spans(flat)
        links = make_links(rows, decisions, ranked, names, self.kb, self.exemplars, told)
        return Linked(links, decisions, ranked, vectors)

    def _group(
        self,
        decisions: Decisions,
        vectors: np.ndarray,
        forms: Sequence[str],
        labels: np.ndarray,
        document: Optional[np.ndarray] = None,
    ) -> np.ndarray:
        """Groups of the mentions that nothing reaches: (m,) int64, -1 for those linked.

        labels: (m,), what the mentions' labels are. document: Where mentions of other documents
            don't count, the document of each.
        """
        groups = np.full(len(vectors), -1, dtype=np.int64)
        left = np.flatnonzero(decisions.entity < 0)
        if self.discovery is None:
            groups[left] = np.arange(len(left))
        elif len(left):
            within = None if document is None else document[left]
            features = self.discovery.features(vectors[left], [forms[i] for i in left.tolist()])
            known = labels[left] if self.cfg["match_types"] else None
            settings = self.similarity, self.calibration, within, known
            groups[left] = self.discovery.group(features, *settings)
        return groups

    def _near(
        self,
        spans: Spans,
        vectors: np.ndarray,
        forms: List[str],
        mentions: int,
    ) -> Neighbours:
        """What is near mentions, ``mentions`` of their neighbours in the document included."""
        retriever = self.refresh()
        document = np.repeat(np.arange(len(spans)), [len(group) for group in spans])
        types = self._types(spans)
        neighbours = retriever.neighbours(
            vectors,
            document,
            self.cfg["n_candidates"],
            self.inference.exemplars,
            mentions,
            types=types,
            named=self.memory.named(forms),
        )
        if types is not None:
            neighbours = same_label_only(neighbours, types.label)
        if self.inference.exemplars:
            neighbours = self.memory.weigh_up(neighbours, forms, types)
        if not len(self.memory.corrections):
            return neighbours
        keys = [key for group in spans for key in keys_of(group)]
        return self.memory.correct(neighbours, Asked(keys, forms, vectors))

    def _types(self, spans: Spans) -> Optional[Types]:
        if not self.cfg["match_types"]:
            return None
        return self.memory.types([span.label_ for group in spans for span in group])


def put(links: LinksOfDocs, spans: Spans, found: Sequence[Link]) -> None:
    """Put the links found, one for each span, in their places."""
    flat = ((i, span) for i, group in enumerate(spans) for span in group)
    for (i, span), link in zip(flat, found):
        links[i][offsets_of_span(span)] = link
