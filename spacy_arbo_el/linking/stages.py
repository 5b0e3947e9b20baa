"""The stages from mentions to links, written once. Everything that links calls these."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from spacy.tokens import Span

from ..base.arrays import TopK, int_array, minus_ones, take_rows
from ..base.calibration import Calibration, log_odds, probability
from ..base.errors import Errors
from ..discovery.grouping import Discovery
from ..discovery.mention_names import MentionNames
from ..encoders.dual import DualEncoder
from ..encoders.inputs import EncodingCache, SpanInputs
from ..kb.entity import NIL
from ..mentions.annotations import Evidence, Link
from ..mentions.reader import MentionReader
from ..mentions.record import MentionBatch, MentionRecord
from ..ranking.decisions import Decisions, Inference, Step
from ..ranking.ranking import (
    RankedMentions,
    Ranking,
    RankingContext,
    Reranker,
    TellsPresence,
)
from ..retrieval.datastore import Datastore
from ..retrieval.neighbours import AllowedEntities, Neighbours
from .by_label import ByLabel
from .corrections import CERTAIN_LOGIT, Corrections
from .coverage import ESTIMATE, CoverageSetting, with_coverage
from .only import Only

T = TypeVar("T")


@dataclass(frozen=True)
class LinkedMentions:
    """Mentions as they were linked, each document for itself."""

    ranked: RankedMentions
    decisions: Decisions
    links: list[Link]


@dataclass(frozen=True)
class LinkingStages:
    """A linker's parts and the stages they perform.

    ``dataclasses.replace`` gives stages with other parts, to link by another inference procedure or
    another calibration without changing the linker.

    reader: Docs -> mentions.
    encoder: Mentions -> vectors.
    datastore: The search space: the knowledge base and the exemplars.
    corrections: What people have said about single mentions.
    reranker: Neighbours -> ranked candidates.
    inference: Ranked candidates -> links.
    discovery: Groups the mentions that no entity fits; None leaves each by itself.
    calibration: Similarities -> log-odds.
    coverage: The share of mentions whose entity the knowledge base has, see ``coverage.py``.
    only: The entities that mentions may be linked to; None for all.
    cache: Keeps vectors and scores for stages that link the same mentions again; None for none.
    """

    reader: MentionReader
    encoder: DualEncoder
    datastore: Datastore
    corrections: Corrections
    reranker: Reranker
    inference: Inference
    discovery: Discovery | None
    calibration: Calibration
    coverage: CoverageSetting = None
    only: Only | None = None
    cache: EncodingCache | None = None

    @property
    def context(self) -> RankingContext:
        """Context of the reranker."""
        n_candidates = self.datastore.settings.n_candidates
        return RankingContext(
            self.datastore.refresh(), self.calibration, n_candidates, self.cache
        )

    # The stages

    def read(self, spans: Sequence[Sequence[Span]]) -> MentionBatch:
        """Mentions of documents. For each document its spans, which may be none."""
        return self.reader.read(spans)

    def encode(self, batch: MentionBatch) -> MentionBatch:
        """The batch with its vectors."""
        return replace(batch, vectors=self.encode_inputs(batch.inputs))

    def encode_inputs(self, inputs: SpanInputs) -> np.ndarray:
        """Spans of mentions -> (n, width) float32, prepared for comparing."""
        if self.cache is None:
            vectors = self.encoder.encode_mentions(inputs)
        else:
            vectors = self.cache.mentions(inputs, self.encoder.encode_mentions)
        return self.datastore.settings.similarity.prepare(vectors)

    def retrieve(
        self,
        batch: MentionBatch,
        n_mentions: int | None = None,
        allowed: AllowedEntities | None = None,
    ) -> Neighbours:
        """The neighbours of mentions.

        n_mentions: How many other mentions of the document; by default as many as the inference
            procedure looks at.
        allowed: The entities that they may be linked to; by default those that suit their labels.
        """
        with self.datastore.snapshot() as snapshot:
            allowed = allowed or snapshot.allowed_entities(batch)
            if self.only is not None:
                excluded = ~self.only.mask(snapshot.kb)
                allowed = AllowedEntities.all_but(excluded, len(batch), allowed)
            neighbours = snapshot.retriever.neighbours(
                batch,
                snapshot.settings.n_candidates,
                self.inference.n_exemplars,
                self.inference.n_mentions if n_mentions is None else n_mentions,
                allowed=allowed,
                named=snapshot.named_entities(batch),
            )
        if allowed is not None:
            mentions = neighbours.mentions.within(batch.labels)
            neighbours = neighbours.with_mentions(mentions)
        return neighbours

    def rerank(self, batch: MentionBatch, neighbours: Neighbours) -> RankedMentions:
        """The ranked candidates of mentions, with corrections applied."""
        with self.datastore.snapshot() as snapshot:
            ranking = self.reranker(batch, neighbours, self.context)
            corrected = np.zeros(len(batch), dtype=bool)
            if self.corrections.items:
                neighbours, ranking, corrected = self.corrections.apply(
                    batch, neighbours, ranking, snapshot, self.cache
                )
            if self.only is not None:
                ranking = self.only.restrict(ranking, snapshot.kb)
        ranked = RankedMentions(batch, neighbours, ranking, corrected)
        return self.with_coverage(ranked, self.coverage)

    def with_coverage(
        self, ranked: RankedMentions, coverage: CoverageSetting
    ) -> RankedMentions:
        """Ranked mentions for another coverage than that of the ranker's fit."""
        if coverage is None or coverage == ESTIMATE or not len(ranked.batch):
            return ranked
        fitted = self.fitted_coverage
        ranking = with_coverage(
            ranked.ranking, ranked.batch.records, ranked.corrected, coverage, fitted
        )
        return replace(ranked, ranking=ranking)

    @property
    def coverage_of_fit(self) -> float | None:
        """The coverage that the reranker was fitted for; None where it tells no presence."""
        reranker = self.reranker
        if isinstance(reranker, TellsPresence):
            return reranker.coverage_in(self.context)
        return None

    @property
    def fitted_coverage(self) -> float:
        """The coverage that the reranker was fitted for. Raises ValueError where it has none."""
        fitted = self.coverage_of_fit
        if fitted is None:
            raise Errors.E404(reranker=type(self.reranker).__name__)
        return fitted

    def decide(self, ranked: RankedMentions, threshold: float) -> Decisions:
        """The links of mentions. threshold: The probability that a link must have.

        A mention whose first two candidates nothing tells apart has neither, unless all are linked.
        """
        if threshold > 0.0:
            ranked = ranked.without_ties()
        thresholds = ByLabel(threshold)
        least = least_logit(min(thresholds.table.values()))
        if not thresholds.by_label:
            return self.inference.decide(ranked, self.calibration, least)
        labels = [record.label for record in ranked.batch.records]
        needed = np.array([least_logit(thresholds.of(label)) for label in labels])
        likely = ranked.ranking.candidates.scores >= needed[:, None]
        ranked = replace(ranked, ranking=ranked.ranking.where(likely))
        decisions = self.inference.decide(ranked, self.calibration, least)
        # A mention may have come to its entity by way of another one, of a label with less.
        return decisions.where(decisions.logits >= needed)

    def group_unlinked(self, batch: MentionBatch, decisions: Decisions) -> np.ndarray:
        """Group unlinked mentions into new entities: (m,) int64, -1 for linked ones.

        The mentions of each document are grouped by themselves.
        """
        groups = minus_ones(len(batch))
        rows = np.flatnonzero(decisions.entities < 0)
        groups[rows] = np.arange(len(rows))
        documents = batch.documents[rows]
        if self.discovery is not None and len(np.unique(documents)) < len(rows):
            settings = self.datastore.settings
            records = take_rows(batch.records, rows)
            groups[rows] = self.discovery.group(
                batch.encoded[rows],
                settings.similarity,
                self.calibration,
                MentionNames.of(records),
                documents,
                batch.labels[rows] if settings.match_types else None,
            )
        return groups

    def link_texts(self, candidates: TopK, decisions: Decisions) -> "LinkTexts":
        """Look up all that mentions' links refer to.

        candidates: Positions in the KB, (m, c).
        decisions: Of the same m mentions.
        """
        entities = self.datastore.kb.entities
        steps = {(step.kind, step.ref) for path in decisions.paths for step in path}
        on_paths = int_array([ref for kind, ref in steps if kind == "entity"])
        positions = np.unique(
            np.concatenate([on_paths, candidates.ids.ravel(), decisions.entities])
        )
        ids = dict(zip(positions.tolist(), entities.ids_of(positions).tolist()))
        records = self.datastore.exemplars.records
        exemplars = {row: records[row] for kind, row in steps if kind == "exemplar"}
        return LinkTexts(ids, entities.titles_at(positions.tolist()), exemplars)

    # The stages in turn

    def rank(
        self, spans: Sequence[Sequence[Span]], n_mentions: int | None = None
    ) -> RankedMentions:
        """Rank candidates of spans. n_mentions: As in ``retrieve``."""
        return self.rank_encoded(self.encode(self.read(spans)), n_mentions)

    def rank_encoded(
        self,
        batch: MentionBatch,
        n_mentions: int | None = None,
        allowed: AllowedEntities | None = None,
    ) -> RankedMentions:
        """Rank candidates of encoded mentions; see ``retrieve`` for the other arguments."""
        with self.datastore.snapshot():
            return self.rerank(batch, self.retrieve(batch, n_mentions, allowed))

    def link(
        self,
        spans: Sequence[Sequence[Span]],
        threshold: float,
        allowed: AllowedEntities | None = None,
    ) -> LinkedMentions:
        """Link the mentions of documents, each document for itself.

        All mentions see one state of the datastore, whatever other threads change meanwhile.

        spans: For each document its mentions.
        threshold: The probability that a link must have.
        allowed: As in ``retrieve``.
        """
        batch = self.encode(self.read(spans))
        with self.datastore.snapshot():
            ranked = self.rank_encoded(batch, allowed=allowed)
            candidates = ranked.ranking.candidates
            decisions = self.decide(ranked, threshold)
            groups = self.group_unlinked(batch, decisions)
            texts = self.link_texts(candidates, decisions)
        cluster_ids = numbers_within(batch.documents, groups)
        rows = range(len(batch))
        links = make_links(
            rows, batch.records, ranked.ranking, decisions, cluster_ids, texts
        )
        return LinkedMentions(ranked, decisions, links)


class StagePart(Generic[T]):
    """An attribute that delegates to a part of ``stages``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, linker: Any, owner: type | None = None) -> T:
        if linker is None:
            raise AttributeError(f"{self.name} belongs to a linker, not to its class")
        return getattr(linker.stages, self.name)

    def __set__(self, linker: Any, value: T) -> None:
        linker.stages = replace(linker.stages, **{self.name: value})


def least_logit(threshold: float) -> float:
    """The log-odds that a link must have. What a person has said is certain enough for all."""
    return min(log_odds(threshold), CERTAIN_LOGIT)


@dataclass(frozen=True)
class LinkTexts:
    """Data that links refer to, frozen when linking.

    ids: From positions in the knowledge base to ids.
    titles: From positions to titles.
    exemplars: The exemplars that are steps of paths, by their row in the store.
    """

    ids: dict[int, str]
    titles: dict[int, str]
    exemplars: dict[int, MentionRecord]


def make_links(
    mentions: range,
    records: Sequence[MentionRecord],
    ranking: Ranking,
    decisions: Decisions,
    cluster_ids: Sequence[str],
    texts: LinkTexts,
) -> list[Link]:
    """The ``Link`` of each of some of the m mentions.

    mentions: Which of them.
    records: All m mentions.
    ranking: The candidates of these mentions alone.
    decisions: Of all m mentions.
    cluster_ids: For each of the m mentions the id of its new entity, "" for linked ones.
    """
    of_mentions = slice(mentions.start, mentions.stop)
    entities = ranking.candidates.ids
    counts = (entities >= 0).sum(axis=1).tolist()
    linked_ids = [
        texts.ids.get(p, "") for p in decisions.entities[of_mentions].tolist()
    ]
    # In double precision, so that people see 0.0865 and not 0.08649999648332596.
    probabilities = probability(ranking.candidates.scores).astype(np.float64)
    ranked_scores = np.round(probabilities, 4).tolist()
    presence = np.round(probability(ranking.presence.astype(np.float64)), 4).tolist()
    link_scores = probability(decisions.logits[of_mentions]).tolist()
    links = []
    for row, (mention, count) in enumerate(zip(mentions, counts)):
        positions = entities[row, :count].tolist()
        ids = [texts.ids[position] for position in positions]
        titles = [texts.titles.get(position, "") for position in positions]
        scores = ranked_scores[row][:count]
        if not linked_ids[row]:
            best = scores[0] if scores else 0.0
            grouping = cluster_ids[mention], titles, presence[row]
            links.append(Link(NIL, best, ids, scores, (), *grouping))
            continue
        evidence = [
            _evidence(step, records[mention], records, texts)
            for step in decisions.paths[mention]
        ]
        score = round(link_scores[row], 4)
        link = Link(
            linked_ids[row], score, ids, scores, evidence, "", titles, presence[row]
        )
        links.append(link)
    return links


def _evidence(
    step: Step,
    target: MentionRecord,
    records: Sequence[MentionRecord],
    texts: LinkTexts,
) -> Evidence:
    weight = round(float(probability(step.logit)), 4)
    if step.kind == "entity":
        return Evidence(
            "entity", texts.ids[step.ref], texts.titles[step.ref], "", weight
        )
    record = (
        texts.exemplars[step.ref] if step.kind == "exemplar" else records[step.ref]
    )
    fingerprint, start, end = record.key
    if step.kind == "mention" and fingerprint == target.key[0]:
        return Evidence("mention", f"{start}:{end}", record.text, "", weight)
    name = f"{fingerprint}:{start}:{end}"
    return Evidence(
        step.kind, name, record.text, record.context, weight, record.document
    )


def numbers_within(documents: np.ndarray, clusters: np.ndarray) -> list[str]:
    """Number new entities per document: "new-1", "new-2", …. They are in order of first mention.

    documents: (m,) int64.
    clusters: (m,) int64, -1 for linked mentions.
    RETURNS: "" where the cluster is -1.
    """
    numbers: dict[int, dict[int, int]] = {}
    names = []
    for document, cluster in zip(documents.tolist(), clusters.tolist()):
        numbers_here = numbers.setdefault(document, {})
        names.append(
            f"new-{numbers_here.setdefault(cluster, len(numbers_here) + 1)}"
            if cluster >= 0
            else ""
        )
    return names
