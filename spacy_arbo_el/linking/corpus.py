"""Many documents in one graph, in two passes over them: first mentions, then links.

The first pass reads, encodes, retrieves and reranks, a batch of documents at a time. Then one graph
decides over all mentions. The second pass writes the links. What is kept of a mention in between is
its vector, its neighbours and candidates in numbers, and its record, never a Doc.
"""

from dataclasses import dataclass, replace
from typing import Callable, Iterable, Iterator, List

import numpy as np
from spacy.tokens import Doc
from spacy.util import minibatch

from ..annotations import Link
from ..arrays import TopK
from ..discovery.entities import cluster_ids, merge_duplicates, nearest_entities
from ..discovery.new_entities import NewEntities
from ..discovery.unlinked import Unlinked
from ..errors import Errors
from ..inference.decisions import MAX_CONSIDERED, Decisions
from ..mentions.records import keys_of
from ..retrieval.mention_search import nearest_in_corpus
from .documents import DocumentLinker
from .stages import LinkingStages, RankedMentions

# Gives the documents of a corpus, anew each time.
ReadDocs = Callable[[], Iterable[Doc]]
# Documents whose mentions are encoded at a time.
BATCH = 64


@dataclass(frozen=True)
class CorpusMentions:
    """The mentions of a corpus.

    bounds: (d + 1,) int64, the mentions of document i are ``bounds[i]:bounds[i + 1]``.
    ranked: The mentions; their rankings hold the ``MAX_CONSIDERED`` best candidates.
    candidates: All ranked candidates, for people to read; ids are int32.
    """

    bounds: np.ndarray
    ranked: RankedMentions
    candidates: TopK


@dataclass(frozen=True)
class CorpusLinks:
    """A corpus as it was linked.

    mentions: Its mentions.
    decisions: Their links.
    groups: (m,) int64, the new entity of each mention, -1 for none.
    cluster_ids: The id of each mention's new entity, "" for none.
    first_unlinked: (m,) bool, the mentions of new entities; of a text that occurs several times
        only those of its first occurrence.
    """

    mentions: CorpusMentions
    decisions: Decisions
    groups: np.ndarray
    cluster_ids: List[str]
    first_unlinked: np.ndarray

    def unlinked(self, stages: LinkingStages) -> Unlinked:
        """The mentions of new entities."""
        rows = np.flatnonzero(self.first_unlinked)
        candidates = self.mentions.candidates.take(rows)
        nearest = nearest_entities(candidates, stages.datastore.kb)
        return Unlinked.from_batch(self.mentions.ranked.batch.take(rows), nearest)


@dataclass(frozen=True)
class CorpusLinker:
    """Links many documents in one graph.

    stages: The stages of linking.
    documents: Writes links onto Docs.
    """

    stages: LinkingStages
    documents: DocumentLinker

    def linked(self, read: ReadDocs, threshold: float) -> Iterator[Doc]:
        """Link the mentions of a corpus in one graph, and give its documents with their links.

        Mentions of different documents support each other, and a new entity has one id over all
        of them. ``nlp.pipe`` never does that: there a document's links depend on it alone.

        read: Function that gives the documents, the same each time it is called. It is called
            twice, so that the documents need not fit into memory.
        threshold: The probability that a link must have.
        """
        yield from self.annotated(read, self.link(read, threshold))

    def link(self, read: ReadDocs, threshold: float) -> CorpusLinks:
        """The links of a corpus, from the first pass; the parameters are those of ``linked``."""
        mentions = self.gather(read)
        batch = mentions.ranked.batch
        decisions = self.stages.decide(mentions.ranked, threshold)
        groups = self.stages.group_unlinked(batch, decisions, within_documents=False)
        keys = batch.keys
        groups = merge_duplicates(groups, keys)
        first = np.zeros(len(keys), dtype=bool)
        first[list({key: i for i, key in reversed(list(enumerate(keys)))}.values())] = True
        ids = cluster_ids(groups, keys)
        return CorpusLinks(mentions, decisions, groups, ids, first & (groups >= 0))

    def gather(self, read: ReadDocs) -> CorpusMentions:
        """The first pass: the mentions of a corpus with their candidates and neighbours."""
        parts: List[RankedMentions] = []
        candidates: List[TopK] = []
        counts: List[int] = []
        for docs in minibatch(read(), BATCH):
            spans = [self.stages.reader.mentions_to_link(doc) for doc in docs]
            counts += map(len, spans)
            part = self.stages.rank(spans, n_mentions=0)
            full = part.ranking.candidates
            candidates.append(TopK(full.ids.astype(np.int32), full.scores))
            parts.append(_narrowed(part))
        ranked = RankedMentions.concat(parts or [self.stages.rank([], n_mentions=0)])
        bounds = np.cumsum([0, *counts])
        return CorpusMentions(bounds, self._with_mentions(ranked), TopK.concat(candidates))

    def _with_mentions(self, ranked: RankedMentions) -> RankedMentions:
        """The mentions with their neighbours among all mentions of the corpus."""
        settings, n_mentions = self.stages.datastore.settings, self.stages.inference.n_mentions
        # Where there is no entity at all, no mention can lead another to one.
        if not n_mentions or not ranked.ranking.candidates.valid.any():
            return ranked
        nearest = nearest_in_corpus(ranked.batch.encoded, n_mentions, settings.similarity)
        if settings.match_types:
            labels = ranked.batch.labels
            nearest = nearest.where(labels[nearest.ids] == labels[:, None])
        return ranked.with_mentions(nearest)

    def annotated(self, read: ReadDocs, links: CorpusLinks) -> Iterator[Doc]:
        """The second pass: the documents with their links.

        Raises ValueError where ``read`` gives other documents than the first time.
        """
        bounds, records = links.mentions.bounds, links.mentions.ranked.batch.records
        number = -1
        for number, doc in enumerate(read()):
            spans = self.stages.reader.mentions_to_link(doc)
            if number + 1 >= len(bounds):
                raise ValueError(Errors.E710)
            rows = range(int(bounds[number]), int(bounds[number + 1]))
            if keys_of(spans) != [record.key for record in records[rows.start : rows.stop]]:
                raise ValueError(Errors.E710)
            (of_doc,) = self.documents.by_doc([doc], [spans], self._links(links, rows))
            self.documents.annotate(doc, of_doc, new_entities=True)
            yield doc
        if number + 2 != len(bounds):
            raise ValueError(Errors.E710)

    def _links(self, links: CorpusLinks, rows: range) -> List[Link]:
        mentions = links.mentions
        return self.stages.describe(
            rows, mentions.ranked.batch, mentions.candidates, links.decisions, links.cluster_ids
        )

    def discover(
        self, read: ReadDocs, threshold: float, write: Callable[[Doc], None]
    ) -> NewEntities:
        """Link a corpus, and group the mentions that no entity fits into new entities.

        read, threshold: As in ``linked``. The threshold for new entities is that of the
            ``Discovery``.
        write: Is given each document with its links; ``cluster`` is the id of the new entity.
        RETURNS: The new entities, the largest first.
        """
        if self.stages.discovery is None:
            raise ValueError(Errors.E709)
        links = self.link(read, threshold)
        for doc in self.annotated(read, links):
            write(doc)
        new_entities = NewEntities(threshold, self.stages.encoder.fingerprint)
        new_entities.documents = len(links.mentions.bounds) - 1
        if links.first_unlinked.any():
            unlinked = links.unlinked(self.stages)
            new_entities.put(unlinked, links.groups[links.first_unlinked])
        return new_entities


def _narrowed(ranked: RankedMentions) -> RankedMentions:
    """What decisions need, without the rest of the candidates."""
    n_exemplars = ranked.neighbours.exemplars.width
    neighbours = ranked.neighbours.narrowed(MAX_CONSIDERED, n_exemplars)
    return replace(ranked, neighbours=neighbours, ranking=ranked.ranking.first(MAX_CONSIDERED))
