"""Many documents in one graph, in two passes over them: first mentions, then links.

The first pass reads, encodes, retrieves and reranks, a batch of documents at a time. Then one graph
decides over all mentions. The second pass writes the links. What is kept of a mention in between is
its vector, its neighbours and candidates in numbers, and its record, never a Doc.
"""

from dataclasses import dataclass, replace
from typing import Callable, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from spacy.tokens import Doc
from spacy.util import minibatch

from ..annotations import Link
from ..arrays import TopK, offsets_of
from ..discovery.clustering import ScoreNeighbours
from ..discovery.continuation import group_mentions
from ..discovery.entities import nearest_entities
from ..discovery.new_entities import NewEntities
from ..discovery.unlinked import Unlinked
from ..encoders.inputs import SpanInputs
from ..errors import Errors
from ..inference.decisions import Decisions
from ..mentions.records import MentionRecord, keys_of
from ..reranking.protocol import Ranking
from ..retrieval.mention_search import nearest_in_corpus
from ..retrieval.neighbours import Neighbours
from .corpus_part import CorpusPart
from .documents import DocumentLinker
from .links import Wording, make_links
from .stages import LinkingStages, RankedMentions

# Gives the documents of a corpus, anew each time.
ReadDocs = Callable[[], Iterable[Doc]]
# Documents whose mentions are encoded at a time.
BATCH = 64


@dataclass(frozen=True)
class CorpusMentions:
    """The mentions of a corpus.

    The documents are in the order of their texts' fingerprints, so that nothing depends on the
    order in which they were read.

    places: For each document, in the order in which they were read, its mentions.
    documents: (m,) int64, the number of each mention's document in that order.
    ranked: The mentions; their rankings hold the ``MAX_CONSIDERED`` best candidates.
    candidates: All ranked candidates, for people to read; ids are int32.
    """

    places: List[range]
    documents: np.ndarray
    ranked: RankedMentions
    candidates: TopK

    @property
    def as_read(self) -> np.ndarray:
        """(m,) int64, the mentions in the order in which they were read."""
        rows = [row for place in self.places for row in place]
        return np.array(rows, dtype=np.int64)


@dataclass(frozen=True)
class CorpusLinks:
    """A corpus as it was linked.

    mentions: Its mentions.
    decisions: Their links.
    cluster_ids: The id of each mention's new entity, "" for none.
    new_entities: The new entities.
    wording: What the links refer to, as it was when they were made.
    """

    mentions: CorpusMentions
    decisions: Decisions
    cluster_ids: List[str]
    new_entities: NewEntities
    wording: Wording


@dataclass(frozen=True)
class CorpusLinker:
    """Links many documents in one graph.

    stages: The stages of linking.
    documents: Writes links onto Docs.
    kept: New entities; what was decided on them holds.
    """

    stages: LinkingStages
    documents: DocumentLinker
    kept: NewEntities

    def linked(self, read: ReadDocs, threshold: float) -> Iterator[Doc]:
        """Link the mentions of a corpus in one graph, and give its documents with their links.

        Mentions of different documents support each other, and a new entity has one id over all
        of them. ``nlp.pipe`` never does that: there a document's links depend on it alone. Edits
        by other threads wait until the first pass has ended.

        read: Function that gives the documents, the same each time it is called. It is called
            twice, so that the documents need not fit into memory.
        threshold: The probability that a link must have.
        """
        yield from self.annotated(read, self.link(read, threshold))

    def link(self, read: ReadDocs, threshold: float) -> CorpusLinks:
        """The links of a corpus, from the first pass; the parameters are those of ``linked``."""
        with self.stages.datastore.reading():
            return self.link_mentions(self.gather(read), threshold)

    def link_mentions(self, mentions: CorpusMentions, threshold: float) -> CorpusLinks:
        """The links of the mentions of a corpus. threshold: The probability that a link must have.

        The knowledge base must be as it was when they were gathered.
        """
        with self.stages.datastore.reading():
            decisions = self.stages.decide(mentions.ranked, threshold)
            wording = self.stages.wording(mentions.candidates, decisions)
            new_entities = self._new_entities(mentions, decisions, threshold)
        unlinked = (decisions.entities < 0).tolist()
        keys = mentions.ranked.batch.keys
        ids = [new_entities.id_of(key) if is_new else "" for key, is_new in zip(keys, unlinked)]
        return CorpusLinks(mentions, decisions, ids, new_entities, wording)

    def _new_entities(
        self, mentions: CorpusMentions, decisions: Decisions, threshold: float
    ) -> NewEntities:
        """The mentions that are not linked, in groups.

        Those of a text that occurs several times are taken once.
        """
        stages, batch = self.stages, mentions.ranked.batch
        with self.kept.lock:
            self.kept.sync(stages.encode_inputs, stages.encoder.fingerprint)
            new_entities, decided = self.kept.continued(), self.kept.decided()
        new_entities.threshold, new_entities.documents = threshold, len(mentions.places)
        unlinked = np.flatnonzero(decisions.entities < 0).tolist()
        first = {batch.records[row].key: row for row in reversed(unlinked)}
        taken = np.array(sorted(first.values()), dtype=np.int64)
        # In the order in which the documents were read.
        taken = taken[np.argsort(mentions.documents[taken], kind="stable")]
        settings = stages.datastore.settings
        records = [batch.records[row] for row in taken.tolist()]

        def scores_of(rows: np.ndarray) -> Optional[ScoreNeighbours]:
            if not stages.scores_mentions:
                return None
            inputs = SpanInputs.concat([batch.inputs.take(taken), decided.mentions.inputs])
            return stages.score_neighbours(inputs, rows)

        groups, known = group_mentions(
            records,
            batch.encoded[taken],
            decided,
            stages.discovery,
            settings.similarity,
            stages.calibration,
            settings.match_types,
            scores_of,
        )
        stored = np.array([new_entities.rows.row(r.key) >= 0 for r in records], dtype=bool)
        added = np.flatnonzero((groups >= 0) & ~stored)
        if len(added):
            rows = taken[added]
            nearest = nearest_entities(mentions.candidates.take(rows), stages.datastore.kb)
            numbered = replace(batch.take(rows), documents=mentions.documents[rows])
            new_entities.put(Unlinked.from_batch(numbered, nearest), groups[added], known)
        return new_entities

    def gather(self, read: ReadDocs) -> CorpusMentions:
        """The first pass: the mentions of a corpus with their candidates and neighbours."""
        return self.joined([self.gather_part(docs) for docs in minibatch(read(), BATCH)])

    def gather_part(self, docs: Sequence[Doc]) -> CorpusPart:
        """The first pass over some documents: their mentions with their candidates."""
        spans = [self.stages.reader.mentions_to_link(doc) for doc in docs]
        ranked = self.stages.rank(spans, n_mentions=0)
        return CorpusPart.of(ranked, list(map(len, spans)), self.stages.inference.n_exemplars)

    def joined(self, parts: Sequence[CorpusPart]) -> CorpusMentions:
        """The mentions of all parts of a corpus, with their neighbours among each other.

        parts: In the order in which their documents were read.
        """
        part = CorpusPart.concat(parts or [self.gather_part([])])
        rows, places = canonical_order(part.ranked.batch.records, part.counts)
        documents = part.ranked.batch.documents[rows]
        ranked = self._with_mentions(_reordered(part.ranked, rows))
        return CorpusMentions(places, documents, ranked, part.candidates.take(rows))

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
        ranked = ranked.with_mentions(nearest)
        scored = self.stages.with_mention_scores(ranked.batch.inputs, ranked.neighbours)
        return replace(ranked, neighbours=scored)

    def annotated(self, read: ReadDocs, links: CorpusLinks) -> Iterator[Doc]:
        """The second pass: the documents with their links.

        Raises ValueError where ``read`` gives other documents than the first time.
        """
        places, records = links.mentions.places, links.mentions.ranked.batch.records
        number = -1
        for number, doc in enumerate(read()):
            if number >= len(places):
                raise ValueError(Errors.E710)
            rows = places[number]
            keys = keys_of(self.stages.reader.mentions_to_link(doc))
            if keys != [record.key for record in records[rows.start : rows.stop]]:
                raise ValueError(Errors.E710)
            self.write(doc, self.links_of(links, rows))
            yield doc
        if number + 1 != len(places):
            raise ValueError(Errors.E710)

    def links_of(self, links: CorpusLinks, rows: range) -> List[Link]:
        """The links of some mentions, such as those of a document by ``CorpusMentions.places``."""
        mentions = links.mentions
        return make_links(
            rows,
            mentions.ranked.batch.records,
            mentions.candidates,
            links.decisions,
            links.cluster_ids,
            links.wording,
        )

    def write(self, doc: Doc, links: Sequence[Link]) -> None:
        """Write links onto a document. links: Those of its mentions that are to be linked."""
        spans = self.stages.reader.mentions_to_link(doc)
        (of_doc,) = self.documents.by_doc([doc], [spans], links)
        self.documents.annotate(doc, of_doc, new_entities=True)

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
        return links.new_entities


def canonical_order(
    records: Sequence[MentionRecord], counts: Sequence[int]
) -> Tuple[np.ndarray, List[range]]:
    """An order of documents that does not depend on the order in which they were read.

    records: The mentions of all documents.
    counts: How many mentions each document has.
    RETURNS: The numbers of the mentions in that order, (m,) int64; and for each document, in the
        order in which they were read, where its mentions are in it.
    """
    starts = offsets_of(np.array(counts, dtype=np.int64)).tolist()
    documents = [
        [(r.key, r.label, r.doc_id) for r in records[start:end]]
        for start, end in zip(starts[:-1], starts[1:])
    ]
    order = sorted(range(len(documents)), key=documents.__getitem__)
    rows = [row for number in order for row in range(starts[number], starts[number + 1])]
    places, at = [range(0)] * len(documents), 0
    for number in order:
        places[number] = range(at, at + counts[number])
        at += counts[number]
    return np.array(rows, dtype=np.int64), places


def _reordered(ranked: RankedMentions, rows: np.ndarray) -> RankedMentions:
    """The mentions, which have no neighbours among each other yet, in another order."""
    batch, neighbours = ranked.batch.take(rows), ranked.neighbours
    # Whole documents move: they are numbered anew.
    borders = np.flatnonzero(np.diff(batch.documents, prepend=-1))
    counts = np.diff(np.append(borders, len(batch)))
    documents = np.repeat(np.arange(len(borders)), counts)
    return RankedMentions(
        replace(batch, documents=documents),
        Neighbours(
            neighbours.entities.take(rows),
            neighbours.exemplars.take(rows),
            TopK.empty(len(rows)),
            neighbours.exemplar_entities[rows],
            neighbours.metric,
        ),
        Ranking(ranked.ranking.candidates.take(rows), ranked.ranking.exemplars[rows]),
        ranked.corrected[rows],
    )
