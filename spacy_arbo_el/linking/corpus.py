"""Many documents in one graph, in two passes over them. First mentions, then links.

The first pass reads, encodes, retrieves and reranks, a batch of documents at a time. Then one graph
decides over all mentions. The second pass writes the links. In between, a mention keeps
its vector, its neighbours and candidates in numbers, and its record, never a Doc.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from spacy.tokens import Doc
from spacy.util import minibatch

from ..base.arrays import TopK, int_array, minus_ones, take_rows
from ..base.errors import Errors
from ..base.log import log
from ..discovery.entities import nearest_entities
from ..discovery.grouping import group_mentions
from ..discovery.new_entities import NewEntities
from ..discovery.store import Unlinked
from ..mentions.annotations import Link
from ..mentions.record import keys_of
from ..ranking.decisions import Decisions
from ..ranking.ranking import Ranking
from ..retrieval.mention_search import CorpusSearch
from .by_label import ByLabel, ThresholdSetting, check_threshold
from .corpus_mentions import CorpusMentions, CorpusPart
from .coverage import (
    ESTIMATE,
    MIN_MENTIONS,
    CoverageEstimate,
    CoverageSetting,
    estimate_coverage,
    with_coverage,
)
from .documents import DocumentLinker
from .stages import LinkingStages, LinkTexts, make_links

# Gives the documents of a corpus, anew each time.
ReadDocs = Callable[[], Iterable[Doc]]
# Documents whose mentions are encoded at a time.
BATCH = 64


@dataclass(frozen=True)
class CorpusDecisions:
    """Decisions on the mentions of a corpus.

    cluster_ids: The id of each mention's new entity, "" for none.
    coverage: The coverage that was estimated from the mentions; None where none was.
    """

    decisions: Decisions
    cluster_ids: Sequence[str]
    coverage: CoverageSetting = None


@dataclass(frozen=True)
class CorpusLinks:
    """A corpus as it was linked.

    decided: Their links and new entities.
    texts: What the links refer to, as it was when they were made.
    """

    mentions: CorpusMentions
    decided: CorpusDecisions
    texts: LinkTexts


@dataclass(frozen=True)
class CorpusLinker:
    """Links many documents in one graph.

    documents: Writes links onto Docs.
    stored: New entities; what was decided on them holds.
    report: Is given the coverage that is estimated.
    """

    stages: LinkingStages
    documents: DocumentLinker
    stored: NewEntities
    report: Callable[[CoverageEstimate], None] = partial(log.info, "%s")

    def link(
        self, docs: Iterable[Doc], *, threshold: ThresholdSetting | None = None
    ) -> list[Doc]:
        """Link the mentions of all docs in one graph. RETURNS: The docs, with their links.

        Mentions of different documents support each other, and a new entity has one id over all
        of them. ``nlp.pipe`` never does that: there a document's links depend on it alone. Edits
        by other threads wait until all mentions are decided on.

        threshold: The probability that a link must have; by default the linker's.
        """
        docs = list(docs)
        return list(self.link_stream(lambda: docs, threshold=threshold))

    def link_stream(
        self, read: ReadDocs, *, threshold: ThresholdSetting | None = None
    ) -> Iterator[Doc]:
        """Link a stream of docs with little memory. See ``link``.

        read: Function that gives the documents, the same each time it is called. It is called
            twice.
        """
        yield from self.annotated(
            read, self.links(read, self._threshold(threshold))[0]
        )

    def discover(
        self, docs: Iterable[Doc], *, threshold: ThresholdSetting | None = None
    ) -> NewEntities:
        """Link docs and discover new entities among unlinked mentions.

        The ``cluster`` of a link is the id of the new entity; ``accept`` of what this gives adds
        one to the knowledge base.

        threshold: The probability that a link must have; by default the linker's. That of new
            entities is in the ``Discovery``.
        RETURNS: The new entities, the largest first.
        """
        docs = list(docs)
        return self.discover_stream(lambda: docs, threshold=threshold)

    def discover_stream(
        self,
        read: ReadDocs,
        *,
        threshold: ThresholdSetting | None = None,
        write: Callable[[Doc], None] = lambda doc: None,
    ) -> NewEntities:
        """Discover in a stream of docs with little memory. See ``discover``.

        read: As for ``link_stream``.
        write: Is given each document with its links.
        """
        if self.stages.discovery is None:
            raise Errors.E709()
        links, new_entities = self.links(read, self._threshold(threshold))
        for doc in self.annotated(read, links):
            write(doc)
        return new_entities

    def _threshold(self, value: ThresholdSetting | None) -> float:
        if value is None:
            return self.documents.threshold
        return ByLabel(check_threshold(value))

    # The passes

    def links(
        self, read: ReadDocs, threshold: float
    ) -> tuple[CorpusLinks, NewEntities]:
        """Links and new entities of a corpus's first pass."""
        with self.stages.datastore.snapshot():
            mentions = self.gather(read)
            decided, new_entities = self.decide(mentions, threshold)
            texts = self.stages.link_texts(mentions.candidates, decided.decisions)
        return CorpusLinks(mentions, decided, texts), new_entities

    def decide(
        self, mentions: CorpusMentions, threshold: float
    ) -> tuple[CorpusDecisions, NewEntities]:
        """Decide on a corpus's mentions: links and new entities.

        The knowledge base must be as it was when they were gathered.

        mentions: With their neighbours among each other.
        threshold: The probability that a link must have.
        """
        coverage = self._estimated(mentions, threshold)
        with self.stages.datastore.snapshot():
            ranked = self.stages.with_coverage(mentions.ranked, coverage)
            decisions = self.stages.decide(ranked, threshold)
            new_entities = self._new_entities(mentions, decisions, threshold, coverage)
        records = mentions.ranked.batch.records
        ids = [""] * len(decisions.entities)
        for row in np.flatnonzero(decisions.entities < 0).tolist():
            ids[row] = new_entities.id_of(records[row].key)
        return CorpusDecisions(decisions, ids, coverage), new_entities

    def estimate_coverage(self, docs: Iterable[Doc]) -> CoverageEstimate:
        """Estimate the share of mentions whose entity the knowledge base has.

        Nothing is set, see ``ArboLinker.estimate_coverage``.
        """
        plain = replace(self, stages=replace(self.stages, coverage=None))
        with self.stages.datastore.snapshot():
            fitted = self.stages.fitted_coverage
            batches = [plain.gather_part(batch) for batch in minibatch(docs, BATCH)]
            mentions = CorpusMentions.joined(batches or [plain.gather_part([])])
            ranked = mentions.ranked
        before = self.stages.coverage
        return estimate_coverage(ranked, fitted, self.documents.threshold, before)

    def _estimated(
        self, mentions: CorpusMentions, threshold: float
    ) -> CoverageSetting:
        """The coverage by the mentions of the corpus, where it is to be estimated."""
        if self.stages.coverage != ESTIMATE:
            return None
        fitted = self.stages.coverage_of_fit
        if fitted is None or (~mentions.ranked.corrected).sum() < MIN_MENTIONS:
            return None
        estimate = estimate_coverage(mentions.ranked, fitted, threshold, None)
        self.report(estimate)
        return estimate.setting

    def _shown(
        self, mentions: CorpusMentions, rows: np.ndarray, coverage: CoverageSetting
    ) -> Ranking:
        """All candidates of some mentions, (n,) int64 rows, for people to read."""
        ranked = mentions.ranked
        candidates = mentions.candidates.take(rows)
        none = minus_ones(candidates.ids.shape)
        ranking = Ranking(candidates, none, ranked.ranking.presence[rows])
        if coverage is None or not len(rows):
            return ranking
        records = take_rows(ranked.batch.records, rows)
        corrected = ranked.corrected[rows]
        return with_coverage(
            ranking, records, corrected, coverage, self.stages.fitted_coverage
        )

    def _new_entities(
        self,
        mentions: CorpusMentions,
        decisions: Decisions,
        threshold: float,
        coverage: CoverageSetting,
    ) -> NewEntities:
        """The mentions that are not linked, in groups.

        Those of a text that occurs several times are taken once.
        """
        stages = self.stages
        batch = mentions.ranked.batch
        with self.stored.lock:
            self.stored.sync(stages.encode_inputs, stages.encoder.fingerprint)
            new_entities = self.stored.continued()
            decided = self.stored.decided()
        new_entities.threshold = float(threshold)
        new_entities.documents = len(mentions.places)
        unlinked = np.flatnonzero(decisions.entities < 0).tolist()
        first = {batch.records[row].key: row for row in reversed(unlinked)}
        taken = int_array(sorted(first.values()))
        # In the order in which the documents were read.
        taken = taken[np.argsort(mentions.documents[taken], kind="stable")]
        settings = stages.datastore.settings
        new_mentions = batch.take(taken)
        groups, continued = group_mentions(
            new_mentions.records,
            new_mentions.encoded,
            decided,
            stages.discovery,
            settings.similarity,
            stages.calibration,
            settings.match_types,
        )
        stored = np.array(
            [new_entities.rows.row(key) >= 0 for key in new_mentions.keys], dtype=bool
        )
        added = np.flatnonzero((groups >= 0) & ~stored)
        if len(added):
            shown = self._shown(mentions, taken[added], coverage)
            nearest = nearest_entities(shown.candidates, stages.datastore.kb)
            documents = mentions.documents[taken[added]]
            # Those of most discoveries are all new: their vectors need not be copied.
            new = (
                new_mentions
                if len(added) == len(new_mentions)
                else new_mentions.take(added)
            )
            unlinked_mentions = Unlinked(
                new.records, documents, nearest, new.inputs, new.encoded
            )
            new_entities.add_groups(unlinked_mentions, groups[added], continued)
        return new_entities

    def gather(self, read: ReadDocs) -> CorpusMentions:
        """The first pass: the mentions of a corpus with their candidates and neighbours."""
        batches = [self.gather_part(docs) for docs in minibatch(read(), BATCH)]
        mentions = CorpusMentions.joined(batches or [self.gather_part([])])
        search = self.search(mentions)
        if search is None:
            return mentions
        return self.with_neighbours(
            mentions, search.nearest(np.arange(len(mentions.documents)))
        )

    def gather_part(self, docs: Sequence[Doc]) -> CorpusPart:
        """The first pass over some documents: their mentions with their candidates."""
        spans = [self.stages.reader.mentions_to_link(doc) for doc in docs]
        ranked = self.stages.rank(spans, n_mentions=0)
        return CorpusPart.of(
            ranked, list(map(len, spans)), self.stages.inference.n_exemplars
        )

    def search(self, mentions: CorpusMentions) -> CorpusSearch | None:
        """The search for neighbours among mentions. None where they need none."""
        count = self.stages.inference.n_mentions
        ranked = mentions.ranked
        # Where there is no entity at all, no mention can lead another to one.
        if not count or not ranked.ranking.candidates.valid.any():
            return None
        similarity = self.stages.datastore.settings.similarity
        return CorpusSearch.build(ranked.batch.encoded, count, similarity)

    def with_neighbours(
        self, mentions: CorpusMentions, nearest: TopK
    ) -> CorpusMentions:
        """Add neighbours among the mentions, as ``search`` finds them."""
        if self.stages.datastore.settings.match_types:
            nearest = nearest.within(mentions.ranked.batch.labels)
        return replace(mentions, ranked=mentions.ranked.with_mentions(nearest))

    def annotated(self, read: ReadDocs, links: CorpusLinks) -> Iterator[Doc]:
        """The second pass: the documents with their links.

        Raises ValueError where ``read`` gives other documents than the first time.
        """
        places = links.mentions.places
        records = links.mentions.ranked.batch.records
        number = -1
        for number, doc in enumerate(read()):
            if number >= len(places):
                raise Errors.E710()
            rows = places[number]
            keys = keys_of(self.stages.reader.mentions_to_link(doc))
            if keys != [record.key for record in records[rows.start : rows.stop]]:
                raise Errors.E710()
            self.write(doc, self.links_of(links, rows))
            yield doc
        if number + 1 != len(places):
            raise Errors.E710()

    def links_of(self, links: CorpusLinks, rows: range) -> list[Link]:
        """The links of some mentions of a corpus, such as those of a document.

        ``CorpusMentions.places`` gives their places.
        """
        mentions = links.mentions
        return make_links(
            rows,
            mentions.ranked.batch.records,
            self._shown(mentions, int_array(rows), links.decided.coverage),
            links.decided.decisions,
            links.decided.cluster_ids,
            links.texts,
        )

    def write(self, doc: Doc, links: Sequence[Link]) -> None:
        """Write links onto a document. links: Those of its mentions that are to be linked."""
        spans = [self.stages.reader.mentions_to_link(doc)]
        coordinations = self.documents.coordinations(spans)
        groups = [parts for *_, parts in coordinations]
        if groups:
            of_parts = self.stages.link(groups, self.documents.threshold).links
            links = [*links, *of_parts]
        (of_doc,) = self.documents.by_doc([doc], spans, coordinations, links)
        self.documents.annotate(doc, of_doc)
        self.documents.annotate_new_entities(doc, of_doc)
