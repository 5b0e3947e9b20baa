"""The stages from mentions to links, written once. Everything that links calls these."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from spacy.tokens import Span

from ..base.arrays import TopK
from ..base.calibration import Calibration, log_odds
from ..discovery.grouping import Discovery
from ..discovery.same_names import number_names
from ..encoders.inputs import SpanInputs
from ..encoders.kept_results import KeptResults
from ..encoders.protocol import Encoder
from ..mentions.annotations import Link
from ..mentions.reader import MentionReader
from ..mentions.record import MentionBatch
from ..ranking.decisions import Decisions, Inference
from ..ranking.ranking import RankedMentions, RankingContext, Reranker
from ..retrieval.datastore import Datastore
from ..retrieval.neighbours import AllowedEntities, Neighbours
from .corrections import CERTAIN_LOGIT, Corrections
from .links import Wording, make_links, numbers_within

T = TypeVar("T")


@dataclass(frozen=True)
class LinkedMentions:
    """Mentions as they were linked, each document for itself."""

    ranked: RankedMentions
    decisions: Decisions
    links: list[Link]


@runtime_checkable
class Revises(Protocol):
    """An inference procedure that revises vectors. It is used where documents are linked one at
    a time.
    """

    def revise(
        self,
        stages: "LinkingStages",
        spans: Sequence[Sequence[Span]],
        batch: MentionBatch,
        min_logit: float,
    ) -> MentionBatch:
        """The batch with other vectors.

        stages: Those of the linker; its datastore must be in use.
        spans: The mentions of each document.
        batch: The same, encoded.
        min_logit: The log-odds that a link must have.
        """
        ...


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
    kept: Keeps vectors and scores, for stages that link the same mentions again; None to keep none.
    """

    reader: MentionReader
    encoder: Encoder
    datastore: Datastore
    corrections: Corrections
    reranker: Reranker
    inference: Inference
    discovery: Discovery | None
    calibration: Calibration
    kept: KeptResults | None = None

    @property
    def context(self) -> RankingContext:
        """Context of the reranker."""
        n_candidates = self.datastore.settings.n_candidates
        return RankingContext(self.datastore, self.calibration, n_candidates, self.kept)

    # The stages

    def read(self, spans: Sequence[Sequence[Span]]) -> MentionBatch:
        """Mentions of documents. For each document its spans, which may be none."""
        return self.reader.read(spans)

    def encode(self, batch: MentionBatch) -> MentionBatch:
        """The batch with its vectors."""
        return batch.with_vectors(self.encode_inputs(batch.inputs))

    def encode_inputs(self, inputs: SpanInputs) -> np.ndarray:
        """Spans of mentions -> (n, width) float32, prepared for comparing."""
        encode = self.encoder.encode_mentions
        if self.kept is None:
            vectors = encode(inputs)
        else:
            vectors = self.kept.of(
                "mentions", inputs.keys(), lambda new: encode(inputs.take(np.array(new, np.int64)))
            )
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
        with self.datastore.reading() as retriever:
            allowed = allowed or self.datastore.allowed_entities(batch)
            neighbours = retriever.neighbours(
                batch,
                self.datastore.settings.n_candidates,
                self.inference.n_exemplars,
                self.inference.n_mentions if n_mentions is None else n_mentions,
                allowed=allowed,
                named=self.datastore.named_entities(batch),
            )
        if allowed is not None:
            neighbours = neighbours.within_labels(batch.labels)
        return neighbours

    def rerank(self, batch: MentionBatch, neighbours: Neighbours) -> RankedMentions:
        """The ranked candidates of mentions, with corrections applied."""
        with self.datastore.reading():
            ranking = self.reranker(batch, neighbours, self.context)
            corrected = self.corrections.apply(batch, neighbours, ranking, self.datastore)
        return RankedMentions(batch, *corrected)

    def decide(self, ranked: RankedMentions, threshold: float) -> Decisions:
        """The links of mentions. threshold: The probability that a link must have."""
        return self.inference.decide(ranked, self.calibration, _least_logit(threshold))

    def group_unlinked(self, batch: MentionBatch, decisions: Decisions) -> np.ndarray:
        """Group unlinked mentions into new entities: (m,) int64, -1 for linked ones.

        The mentions of each document are grouped by themselves.
        """
        groups = np.full(len(batch), -1, dtype=np.int64)
        rows = np.flatnonzero(decisions.entities < 0)
        if self.discovery is None:
            groups[rows] = np.arange(len(rows))
        elif len(rows):
            settings = self.datastore.settings
            records = [batch.records[row] for row in rows.tolist()]
            normalized = [record.normalized for record in records]
            groups[rows] = self.discovery.group(
                self.discovery.features(batch.encoded[rows], normalized),
                settings.similarity,
                self.calibration,
                batch.documents[rows],
                batch.labels[rows] if settings.match_types else None,
                names=number_names(records),
            )
        return groups

    def wording(self, candidates: TopK, decisions: Decisions) -> Wording:
        """Ids, entities and exemplars that mentions' links refer to."""
        kb, exemplars = self.datastore.kb, self.datastore.exemplars
        return Wording.read(candidates, decisions, kb, exemplars)

    # The stages in turn

    def rank(
        self, spans: Sequence[Sequence[Span]], n_mentions: int | None = None
    ) -> RankedMentions:
        """Rank candidates of spans.

        n_mentions: As in ``retrieve``.
        """
        return self.rank_encoded(self.encode(self.read(spans)), n_mentions)

    def rank_encoded(
        self,
        batch: MentionBatch,
        n_mentions: int | None = None,
        allowed: AllowedEntities | None = None,
    ) -> RankedMentions:
        """Rank candidates of encoded mentions.

        n_mentions, allowed: As in ``retrieve``.
        """
        with self.datastore.reading():
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
        with self.datastore.reading():
            if isinstance(self.inference, Revises):
                batch = self.inference.revise(self, spans, batch, _least_logit(threshold))
            ranked = self.rank_encoded(batch, allowed=allowed)
            candidates = ranked.ranking.candidates
            decisions = self.decide(ranked, threshold)
            groups = self.group_unlinked(batch, decisions)
            wording = self.wording(candidates, decisions)
        cluster_ids = numbers_within(batch.documents, groups)
        rows = range(len(batch))
        links = make_links(rows, batch.records, candidates, decisions, cluster_ids, wording)
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


def _least_logit(threshold: float) -> float:
    """The log-odds that a link must have. What a person has said is certain enough for all."""
    return min(log_odds(threshold), CERTAIN_LOGIT)
