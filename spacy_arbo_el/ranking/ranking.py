"""Rankings of candidates, what a reranker is, and the one that ranks by the best evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from spacy.util import registry

from ..base.arrays import (
    Rows,
    TopK,
    at_columns,
    first_columns,
    minus_ones,
    take_or,
    take_rows,
)
from ..base.calibration import Calibration, log_probability, with_presence
from ..encoders.inputs import EncodingCache
from ..mentions.annotations import LEAST_RATIO, MOST_OF_EQUALS
from ..mentions.labels import Identity
from ..mentions.record import MentionBatch
from ..retrieval.neighbours import Neighbours

if TYPE_CHECKING:
    from ..retrieval.snapshot import Snapshot

# The logarithm of how many times as probable as the second the first candidate must be.
LEAST_LEAD = float(np.log(LEAST_RATIO))


@dataclass(frozen=True)
class Ranking(Rows):
    """The candidates of ``m`` mentions, best first.

    candidates: Positions in the knowledge base; scores are log-odds that the link is right.
    exemplars: (m, c) int64, the exemplar (row in the store) that speaks for each candidate; -1
        where a text of the entity does.
    presence: (m,) float32, the log-odds that the knowledge base has the mention's entity. The
        probability of a candidate is that of presence times its share among the candidates.
    """

    candidates: TopK
    exemplars: np.ndarray
    presence: np.ndarray

    @classmethod
    def from_scored(
        cls,
        entities: np.ndarray,
        logits: np.ndarray,
        exemplars: np.ndarray,
        count: int,
        presence: np.ndarray | None = None,
    ) -> "Ranking":
        """The ``count`` best entities of each mention, each by its best entry.

        Entities with equal log-odds come in the order of the knowledge base; of equal entries of
        one entity the first counts.

        entities: (m, n) int64 in any order, -1 for none.
        logits: (m, n) float32.
        exemplars: (m, n) int64, -1 for a text.
        presence: (m,) float32; None for that of the best entity.
        """
        order = np.lexsort((entities, -logits), axis=1)
        entities, logits, exemplars = (
            np.take_along_axis(array, order, axis=1)
            for array in (entities, logits, exemplars)
        )
        columns = first_columns(entities, count)
        best = TopK(
            at_columns(entities, columns, -1), at_columns(logits, columns, -np.inf)
        )
        if presence is None:
            presence = best.resized(1).scores[:, 0]
        return cls(best, at_columns(exemplars, columns, -1), presence)

    def first(self, count: int) -> "Ranking":
        """The ``count`` best candidates of each mention."""
        return Ranking(
            self.candidates.first(count), self.exemplars[:, :count], self.presence
        )

    def rescored(self, logits: np.ndarray) -> "Ranking":
        """Reorder the same candidates by other log-odds. (m, c) float32."""
        return Ranking.from_scored(
            self.candidates.ids,
            logits,
            self.exemplars,
            self.candidates.width,
            self.presence,
        )

    def shifted(self, shift: np.ndarray) -> "Ranking":
        """The same for other shares of mentions whose entity the knowledge base has.

        Only presence changes: the shares of candidates, and so their order, stay.

        shift: (m,) float, added to the log-odds of presence.
        """
        presence = (self.presence + shift).astype(np.float32)
        scores = np.where(
            self.candidates.valid,
            with_presence(self.candidates.scores, self.presence, presence),
            np.float32(-np.inf),
        )
        return replace(
            self, candidates=TopK(self.candidates.ids, scores), presence=presence
        )

    @property
    def is_tie(self) -> np.ndarray:
        """(m,) bool, where nothing tells the first candidate from the second."""
        two = self.candidates.resized(2)
        log_p = log_probability(two.scores.astype(np.float64))
        with np.errstate(invalid="ignore"):
            lead = log_p[:, 0] - log_p[:, 1]
            # Where candidates do not share the presence, two may be probable without being equal.
            share = log_p[:, 0] - log_probability(self.presence.astype(np.float64))
        shares = share < np.log(MOST_OF_EQUALS)
        return two.valid.all(axis=1) & (lead < LEAST_LEAD) & shares

    def where(self, keep: np.ndarray) -> "Ranking":
        """Drop candidates at which ``keep``, broadcast to (m, c) bool, is False."""
        return Ranking.from_scored(
            np.where(keep, self.candidates.ids, -1),
            self.candidates.scores,
            self.exemplars,
            self.candidates.width,
            self.presence,
        )


@dataclass(frozen=True)
class RankedMentions(Rows):
    """Mentions before they are decided on.

    corrected: (m,) bool, mentions that a correction holds for; no other mention influences them.
    """

    batch: MentionBatch
    neighbours: Neighbours
    ranking: Ranking
    corrected: np.ndarray

    def without_ties(self) -> "RankedMentions":
        """The same without candidates of mentions whose first two nothing tells apart."""
        ties = self.ranking.is_tie & ~self.corrected
        if not ties.any():
            return self
        return replace(self, ranking=self.ranking.where(~ties[:, None]))

    def with_mentions(self, mentions: TopK) -> "RankedMentions":
        """The same with other neighbours among the mentions."""
        mentions = mentions.where(~self.corrected[:, None])
        return replace(self, neighbours=self.neighbours.with_mentions(mentions))


@dataclass(frozen=True)
class RankingContext:
    """Data that a reranker may use beside batch and neighbours.

    snapshot: The entities and the exemplars.
    calibration: Curves from similarity to log-odds.
    n_candidates: How many candidates a ranking has at most.
    cache: Keeps vectors and scores that are needed again; None to keep none.
    """

    snapshot: "Snapshot"
    calibration: Calibration
    n_candidates: int
    cache: EncodingCache | None = None


class AnnotatedMentions(NamedTuple):
    """Annotated mentions with their neighbours.

    gold: (m, g) int64, the positions of each mention's gold entities, -1 for none.
    identities: The entity of each mention, which can be a new one.
    """

    batch: MentionBatch
    neighbours: Neighbours
    gold: np.ndarray
    identities: list[Identity]

    def take(self, rows: np.ndarray) -> "AnnotatedMentions":
        """Some of the mentions: all of each document, or none."""
        number_of = minus_ones(len(self.batch))
        number_of[rows] = np.arange(len(rows))
        neighbours = self.neighbours.take(rows)
        mentions = neighbours.mentions
        return AnnotatedMentions(
            self.batch.take(rows),
            neighbours.with_mentions(
                TopK(take_or(number_of, mentions.ids, -1), mentions.scores)
            ),
            self.gold[rows],
            take_rows(self.identities, rows),
        )


@runtime_checkable
class Reranker(Protocol):
    """Scores the candidates of mentions.

    A reranker is a frozen dataclass: its fields are its settings, ``fit`` and ``from_bytes`` give
    a new one. What it has learned is saved with the pipeline by ``to_bytes``.
    """

    def __call__(
        self, batch: MentionBatch, neighbours: Neighbours, context: RankingContext
    ) -> Ranking: ...

    def fit(
        self,
        mentions: AnnotatedMentions,
        context: RankingContext,
        fold_of: np.ndarray,
        n_folds: int,
    ) -> Sequence["Reranker"]:
        """Learn from annotated mentions, and forget what an earlier call has learned from others.

        A reranker with nothing to learn returns itself.

        fold_of: (m,) int64, the fold of each mention. Mentions of one document are in one fold.
        RETURNS: The reranker for other mentions, then for each fold one that has not seen it.
        """
        ...

    def to_bytes(self) -> bytes:
        """Serialize what it has learned; empty for nothing."""
        ...

    def from_bytes(self, data: bytes) -> Any:
        """The reranker with what ``to_bytes`` gave; from empty bytes, one without weights."""
        ...


@runtime_checkable
class FitsBesideExemplars(Protocol):
    """A reranker that learns from parts of mentions that were searched with unlike exemplars."""

    def labelled(self, mentions: AnnotatedMentions, context: RankingContext) -> Any:
        """Training data from the mentions of a fold, searched with the present exemplars."""
        ...

    def fit_folds(
        self, folds: Sequence[Any], context: RankingContext
    ) -> Sequence[Reranker]:
        """Learn from all folds, and without each: as ``Reranker.fit``.

        folds: What ``labelled`` has returned for each, None for a fold without mentions.
        """
        ...


@runtime_checkable
class TellsPresence(Protocol):
    """A reranker whose rankings have a presence apart from their scores."""

    def coverage_in(self, context: RankingContext) -> float | None:
        """The share of mentions with an entity in the list that presence is for.

        None where the reranker has no weights.
        """
        ...


@registry.misc("spacy-arbo-el.BestEvidence.v1")
@dataclass(frozen=True)
class BestEvidence:
    """Ranks candidates by their nearest text or exemplar. The larger log-odds count.

    Use it where candidates should be ranked by similarity alone. It has nothing to learn::

        [components.arbo_linker.reranker]
        @misc = "spacy-arbo-el.BestEvidence.v1"
    """

    def __call__(
        self, batch: MentionBatch, neighbours: Neighbours, context: RankingContext
    ) -> Ranking:
        return rank_by_best_evidence(
            neighbours, context.calibration, context.n_candidates
        )

    def fit(
        self,
        mentions: AnnotatedMentions,
        context: RankingContext,
        fold_of: np.ndarray,
        n_folds: int,
    ) -> list["BestEvidence"]:
        return [self] * (n_folds + 1)

    def to_bytes(self) -> bytes:
        return b""

    def from_bytes(self, data: bytes) -> "BestEvidence":
        return self


def rank_by_best_evidence(
    neighbours: Neighbours, calibration: Calibration, n_candidates: int
) -> Ranking:
    """Rank the entities of texts and of exemplars. A text goes before an exemplar where equal."""
    texts = neighbours.entities
    exemplars = neighbours.exemplars
    entities = np.concatenate([texts.ids, neighbours.exemplar_entities], axis=1)
    logits = [
        calibration.logits("entity", texts.scores),
        calibration.logits("exemplar", exemplars.scores),
    ]
    rows = np.concatenate([np.full_like(texts.ids, -1), exemplars.ids], axis=1)
    return Ranking.from_scored(
        entities, np.concatenate(logits, axis=1), rows, n_candidates
    )


def log_odds_by_vectors(neighbours: Neighbours, calibration: Calibration) -> TopK:
    """Log-odds of all neighbours, by nearest text or exemplar."""
    width = neighbours.entities.width + neighbours.exemplars.width
    return rank_by_best_evidence(neighbours, calibration, width).candidates
