"""Linking the documents of a corpus together, and discovering what is new in them.

The documents are read twice: once to encode their mentions and find what is near, once to write the
links. In between stands the graph over all mentions; what is kept of a mention is its vector, its
edges and candidates in numbers, and a line of text for the evidence, never a Doc.
"""

from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence

import numpy as np
from spacy.tokens import Doc
from spacy.util import minibatch

from ..annotations import annotate_new
from ..discovery.found import NEAREST, members_of, name_groups, near_of, same_for_same
from ..discovery.new_entities import NewEntities
from ..discovery.rows import Unlinked
from ..errors import Errors
from ..inference.calibration import log_odds
from ..inference.decisions import LOOKED_AT, Decisions, rank_candidates, weighed
from ..inference.links import make_links, tell_items
from ..mentions import keys_of
from ..retrieval.candidates import leading
from ..retrieval.corpus import concatenate, narrow, same_label_only, with_mentions
from ..retrieval.exemplars import Labelled
from ..retrieval.neighbours import Neighbours, nearest_in_corpus
from .linking import LinkingLinker, LinksOfDocs, Ranked, Spans, put
from .saving import check_threshold

# Gives the documents of a corpus, anew each time.
Read = Callable[[], Iterable[Doc]]
# Documents whose mentions are encoded at a time.
BATCH = 64


class Gathered(NamedTuple):
    """The mentions of a corpus.

    bounds: (d + 1,) int64, those of document i are bounds[i]:bounds[i + 1]. items: Each in words.
    ranked: Candidates and their logits, (m, c) each.
    labels: (m,) uint64, the numbers of their labels in the vocabulary.
    """

    bounds: np.ndarray
    items: List[Labelled]
    neighbours: Neighbours
    ranked: Ranked
    labels: np.ndarray

    @property
    def vectors(self) -> np.ndarray:
        """(m, width) float32, prepared."""
        assert self.neighbours.vectors is not None
        return self.neighbours.vectors


class Together(NamedTuple):
    """A corpus as it was linked.

    groups: (m,) int64, the new entity of each mention, -1 for none. clusters: Its id, "" for none.
    is_first_left: (m,) bool, those of a new entity, of texts that come again the first only.
    """

    gathered: Gathered
    decisions: Decisions
    groups: np.ndarray
    clusters: List[str]
    is_first_left: np.ndarray


class TogetherLinker(LinkingLinker):
    """The part of ``ArboLinker`` that links many documents in one graph."""

    def link_corpus(self, docs: Iterable[Doc]) -> List[Doc]:
        """Link the mentions of all docs together, in one graph.

        Mentions of different docs support each other, and a new entity has one id over all of
        them, which ``nlp.pipe`` never does: there a doc's links depend on it alone.

        RETURNS: The docs, annotated.
        """
        docs = list(docs)
        return list(self.link_stream(lambda: docs))

    def link_stream(self, read: Read, *, threshold: Optional[float] = None) -> Iterator[Doc]:
        """As ``link_corpus``, without all docs in memory: they are read twice.

        read: Function that gives the docs, the same each time it is called.
        threshold: The chance of being right that a link must have; the linker's own by default.
        """
        yield from self._annotated(read, self._link_together(read, self._least(threshold)), None)

    def discover(self, docs: Iterable[Doc], *, threshold: Optional[float] = None) -> NewEntities:
        """The new entities of all docs together: groups of mentions that no entity fits.

        The docs are annotated as by ``link_corpus``, with the new entities' ids as ``cluster``.

        threshold: As for ``link_stream``; λ for the new entities is the ``discovery``'s.
        RETURNS: The new entities, the largest first; ``linker.accept`` takes them up.
        """
        docs = list(docs)
        return self.discover_stream(lambda: docs, threshold=threshold)

    def discover_stream(
        self,
        read: Read,
        *,
        threshold: Optional[float] = None,
        write: Callable[[Doc], None] = lambda doc: None,
    ) -> NewEntities:
        """As ``discover``, without all docs in memory.

        read: As for ``link_stream``. write: Is given each doc when it is linked.
        """
        least = self._least(threshold)
        if self.discovery is None:
            raise ValueError(Errors.E709)
        together = self._link_together(read, least)
        left: List[Unlinked] = []
        for doc in self._annotated(read, together, left):
            write(doc)
        found = NewEntities(least, self.encoding.fingerprint)
        found.documents = len(together.gathered.bounds) - 1
        if left:
            found.put(Unlinked.concat(left), together.groups[together.is_first_left])
        return found

    def _least(self, threshold: Optional[float]) -> float:
        least = self.threshold if threshold is None else threshold
        check_threshold(least)
        return least

    def _link_together(self, read: Read, threshold: float) -> Together:
        gathered = self.gather(read)
        decisions = self.inference(gathered.neighbours, self.calibration, log_odds(threshold))
        forms = [item.form for item in gathered.items]
        groups = self._group(decisions, gathered.vectors, forms, gathered.labels)
        keys = [item.key for item in gathered.items]
        groups = same_for_same(groups, keys)
        clusters = name_groups(groups, keys)
        first = np.zeros(len(keys), dtype=bool)
        first[list({key: i for i, key in reversed(list(enumerate(keys)))}.values())] = True
        return Together(gathered, decisions, groups, clusters, first & (groups >= 0))

    def gather(self, read: Read) -> Gathered:
        """The first pass: what is near each mention."""
        parts: List[Gathered] = []
        counts: List[int] = []
        for docs in minibatch(read(), BATCH):
            wanted, _ = self._mentions(docs)
            counts += map(len, wanted)
            if any(wanted):
                parts.append(self._gather_batch(wanted))
        bounds = np.cumsum([0, *counts])
        if not parts:
            parts.append(self._gather_batch([]))
        labels = np.concatenate([part.labels for part in parts])
        near = concatenate([part.neighbours for part in parts])
        vectors = near.vectors
        assert vectors is not None
        # Where there is no entity at all, no mention can carry another to one.
        if self.inference.mentions and ((near.entities >= 0).any() or near.exemplars.size):
            found = nearest_in_corpus(vectors, self.inference.mentions, self.similarity)
            near = with_mentions(near, *found)
            near = same_label_only(near, labels) if self.cfg["match_types"] else near
        ranked = tuple(map(np.concatenate, zip(*(part.ranked for part in parts))))
        items = [item for part in parts for item in part.items]
        return Gathered(bounds, items, near, ranked, labels)  # type: ignore[arg-type]

    def _gather_batch(self, spans: Spans) -> Gathered:
        items, windows = self.reader.labelled_spans(spans)
        vectors = self._encode_prepared(windows)
        near = self._near(spans, vectors, [item.form for item in items], mentions=0)
        near = weighed(near, self.calibration)
        entities, logits = rank_candidates(near, self.calibration, self.cfg["n_candidates"])
        candidates = near.candidates
        if candidates is not None:
            # Without a ranker nothing looks at them.
            by_ranker = candidates.logits
            candidates = None if by_ranker is None else leading(candidates, by_ranker, LOOKED_AT)
        near = narrow(near, LOOKED_AT, candidates)
        # The numbers of labels in the vocabulary hold for all batches.
        labels = np.array([span.label for group in spans for span in group], dtype=np.uint64)
        ranked = entities.astype(np.int32), logits.astype(np.float32)
        return Gathered(np.zeros(0), items, near, ranked, labels)

    def _annotated(
        self, read: Read, together: Together, left: Optional[List[Unlinked]]
    ) -> Iterator[Doc]:
        """The second pass: docs with their links; what was left unlinked is added to ``left``."""
        bounds, count, number = together.gathered.bounds, 0, 0
        for docs in minibatch(read(), BATCH):
            wanted, links = self._mentions(docs)
            keys = [key for group in wanted for key in keys_of(group)]
            mentions = range(number, number + len(keys))
            known = together.gathered.items[number : mentions.stop]
            if count + len(docs) >= len(bounds) or keys != [item.key for item in known]:
                raise ValueError(Errors.E710)
            put(links, wanted, self._links_of(together, mentions))
            self.set_annotations(docs, links)
            self._annotate_new(docs, links)
            if left is not None:
                self._add_left(left, together, wanted, mentions, count)
            yield from docs
            count, number = count + len(docs), mentions.stop
        if count != len(bounds) - 1:
            raise ValueError(Errors.E710)

    def _annotate_new(self, docs: Iterable[Doc], links: LinksOfDocs) -> None:
        """Write mentions whose new entities have ids that stay to a span group."""
        if self.discovery is not None and self.discovery.spans_key:
            for doc, found in zip(docs, links):
                annotate_new(doc, found, self.span_getter, self.discovery.spans_key)

    def _links_of(self, together: Together, mentions: range):
        gathered = together.gathered
        told = tell_items(gathered.items)
        rest = together.decisions, gathered.ranked, together.clusters, self.kb, self.exemplars
        return make_links(mentions, *rest, told)

    def _add_left(
        self,
        left: List[Unlinked],
        together: Together,
        spans: Spans,
        mentions: range,
        first: int,
    ) -> None:
        numbers = iter(mentions)
        rows, documents, chosen = [], [], []
        for document, group in enumerate(spans, first):
            here = [(n, span) for span, n in zip(group, numbers) if together.is_first_left[n]]
            if here:
                rows += [n for n, _ in here]
                documents.append(document)
                chosen.append([span for _, span in here])
        if rows:
            vectors = together.gathered.vectors[rows]
            entities, logits = together.gathered.ranked
            left.append(self._unlinked(documents, chosen, vectors, (entities[rows], logits[rows])))

    def _unlinked(
        self, documents: Sequence[int], spans: Spans, vectors: np.ndarray, ranked: Ranked
    ) -> Unlinked:
        """Mentions that nothing fits, as they are kept.

        documents: The numbers of the documents that ``spans`` has the mentions of.
        """
        items, windows = self.reader.labelled_spans(spans)
        members = [m for n, group in zip(documents, spans) for m in members_of(group, n)]
        near = near_of(ranked[0][:, :NEAREST], ranked[1][:, :NEAREST], self.kb)
        keys, forms = [item.key for item in items], [item.form for item in items]
        return Unlinked(keys, members, forms, near, windows, vectors)
