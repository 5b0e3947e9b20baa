"""A reranker that learns to rank candidates by the similarity of vectors and of strings."""

from dataclasses import dataclass, field, replace
from typing import Optional

import numpy as np
from spacy.util import registry

from ..log import log
from ..mentions.batch import MentionBatch
from ..retrieval.neighbours import Neighbours
from ..settings import check_count
from .best_evidence import rank_by_best_evidence
from .entity_strings import EntityStrings
from .features import CandidateFeatures, gather_features
from .protocol import Ranking, RankingContext
from .ranker_weights import RankerWeights, fit_weights

# How far below the least candidate with features the other candidates are, in log-odds.
GAP = 1e-3


@dataclass(frozen=True)
class FeatureRanker:
    """Scores candidates by a small network over their features; see ``feature_ranker``.

    n_reranked: How many candidates of a mention get features and scores. The others follow them.
    min_ngram: The length of the shortest n-grams that strings are compared by.
    max_ngram: The length of the longest n-grams.
    weights: What ``fit`` has learned. Without, it ranks as ``BestEvidence`` does.
    """

    n_reranked: int = 24
    min_ngram: int = 1
    max_ngram: int = 3
    weights: Optional[RankerWeights] = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_count("reranker.n_reranked", self.n_reranked, 1)
        check_count("reranker.max_ngram", self.max_ngram, 1)
        check_count("reranker.min_ngram", self.min_ngram, 1, self.max_ngram)

    def __call__(
        self, batch: MentionBatch, neighbours: Neighbours, context: RankingContext
    ) -> Ranking:
        candidates = None if self.weights is None else self.gather(batch, neighbours, context)
        if self.weights is None or candidates is None:
            return rank_by_best_evidence(neighbours, context.calibration, context.n_candidates)
        logits = self.weights.logits(candidates)
        least = np.where(candidates.valid, logits, np.inf).min(axis=1, keepdims=True)
        count = neighbours.entities.width + neighbours.exemplars.width
        others = rank_by_best_evidence(neighbours, context.calibration, count)
        return Ranking.from_scored(
            np.concatenate([candidates.entities, others.candidates.ids], axis=1),
            np.concatenate([logits, np.minimum(others.candidates.scores, least - GAP)], axis=1),
            np.concatenate([candidates.exemplars, others.exemplars], axis=1),
            context.n_candidates,
        )

    def gather(
        self, batch: MentionBatch, neighbours: Neighbours, context: RankingContext
    ) -> Optional[CandidateFeatures]:
        """The candidates of a batch with their features; None where there are no entities."""
        datastore = context.datastore
        if not len(batch) or not len(datastore.kb):
            return None
        settings = self.min_ngram, self.max_ngram
        strings = datastore.derived(
            ("strings", *settings),
            lambda: EntityStrings.read(datastore, *settings),
            lambda strings: strings.updated(datastore),
        )
        allowed = datastore.allowed_entities(batch)
        return gather_features(neighbours, batch.normalized, strings, allowed, self.n_reranked)

    def fit(
        self,
        batch: MentionBatch,
        neighbours: Neighbours,
        gold: np.ndarray,
        context: RankingContext,
    ) -> "FeatureRanker":
        """Learn from annotated mentions; a ranker without weights where there are too few.

        gold: (m, g) int64, the positions of each mention's gold entities, -1 for none.
        """
        candidates = self.gather(batch, neighbours, context)
        if candidates is None:
            return replace(self, weights=None)
        correct = (candidates.entities[:, :, None] == gold[:, None, :]).any(axis=2)
        weights = fit_weights(candidates, correct, batch.documents)
        if weights is not None:
            log.info("Ranker fitted, held-out accuracy %.4f", weights.accuracy)
        return replace(self, weights=weights)

    def to_bytes(self) -> bytes:
        return b"" if self.weights is None else self.weights.to_bytes()

    def from_bytes(self, data: bytes) -> "FeatureRanker":
        """The ranker with what it has learned; without where another version has saved it."""
        return replace(self, weights=RankerWeights.from_bytes(data) if data else None)


@registry.misc("spacy-arbo-el.FeatureRanker.v1")
def feature_ranker(n_reranked: int = 24, min_ngram: int = 1, max_ngram: int = 3) -> FeatureRanker:
    """Rank candidates by all similarities at once: of vectors, n-grams, words and numbers.

    Use it where a dual encoder confuses similar strings, such as names of diseases. ``spacy arbo
    calibrate`` or the callback ``Calibrate.v1`` fits it on annotated documents. Until then it ranks
    as ``BestEvidence.v1`` does::

        [components.arbo_linker.reranker]
        @misc = "spacy-arbo-el.FeatureRanker.v1"

    n_reranked: How many candidates of a mention are ranked by features. The others follow them.
    min_ngram: The length of the shortest n-grams that strings are compared by.
    max_ngram: The length of the longest n-grams.
    """
    return FeatureRanker(n_reranked, min_ngram, max_ngram)
