"""A reranker that reads mention and entity together (arborescence paper, §3.3–3.4)."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import srsly
from spacy.util import registry

from ....base.calibration import Calibration
from ....base.log import log, warn_once
from ....base.settings import check_count
from ....encoders.inputs import SpanInputs
from ....encoders.windows import check_size
from ....mentions.labels import is_gold
from ....mentions.record import MentionBatch
from ....ranking.feature_ranker import GAP, FeatureRanker
from ....ranking.features import CandidateFeatures
from ....ranking.ranking import (
    AnnotatedMentions,
    Ranking,
    RankingContext,
    Reranker,
    log_odds_by_vectors,
)
from ....retrieval.neighbours import Neighbours
from ..errors import PaperMessages
from .pair_inputs import NAMES, EntityParts, entity_texts, make_pairs
from .pair_scorer import CrossEncoderFit, PairScorer, with_scores

# What separates candidates with equal scores, in log-odds.
TIE = 1e-5


class Scored(NamedTuple):
    """Mentions with the scores of their first candidates.

    before: The ranking of the ranker inside.
    first: (m, k) int64, its first candidates, -1 for none.
    scores: (m, k) float32, NaN where a candidate was not scored: of a mention that the encoder
        can't read, or that has one candidate.
    """

    batch: MentionBatch
    neighbours: Neighbours
    before: Ranking
    first: np.ndarray
    scores: np.ndarray

    @property
    def is_scored(self) -> np.ndarray:
        """(m,) bool, the mentions whose candidates were scored."""
        return np.isfinite(self.scores).any(axis=1)


@dataclass(frozen=True)
class CrossEncoder:
    """Scores the first candidates by reading them with the mention. See ``cross_encoder``.

    scorer: What ``arbo rerank`` has trained; None for nothing: then the ranker ranks alone.
    vector_curves: The curves of the retriever's log-odds that are added to the scores; None
        for separate scores. The scorer was trained with them, so they stay when the linker is
        calibrated again.
    fitted: What ``fit`` has learned.
    """

    ranker: Reranker
    n_reranked: int = 8
    as_feature: bool = True
    window: int = 48
    text: int = 48
    scorer: PairScorer | None = field(default=None, repr=False)
    vector_curves: Calibration | None = field(default=None, repr=False)
    fitted: CrossEncoderFit = field(default=CrossEncoderFit(), repr=False)

    def __post_init__(self) -> None:
        check_count("reranker.n_reranked", self.n_reranked, 1)
        check_size("reranker.window", self.window)
        check_size("reranker.text", self.text)
        if self.as_feature and not isinstance(self.ranker, FeatureRanker):
            raise PaperMessages.E870(ranker=type(self.ranker).__name__)

    @property
    def size(self) -> int:
        """The most word pieces of a pair."""
        return self.window + self.text

    def __call__(
        self, batch: MentionBatch, neighbours: Neighbours, context: RankingContext
    ) -> Ranking:
        if self.scorer is None:
            return self.ranker(batch, neighbours, context)
        scored = self.score(batch, neighbours, context)
        if not scored.is_scored.any():
            return scored.before
        return self._reranked(scored, self._logits(scored, context))

    def variants(self) -> "dict[str, Reranker]":
        """Rerankers to compare a trained one with, by what their rows are called."""
        if self.scorer is None:
            return {}
        by_scores = replace(self, as_feature=False)
        return {
            "without the cross-encoder": self.ranker,
            "by the scores, not in the ranker": by_scores,
        }

    def score(
        self, batch: MentionBatch, neighbours: Neighbours, context: RankingContext
    ) -> Scored:
        """The scores of the first candidates of mentions. There must be a ``scorer``."""
        before = self.ranker(batch, neighbours, context)
        first = before.candidates.first(self.n_reranked).ids
        valid = (first >= 0) & batch.inputs.readable[:, None]
        valid &= ((first >= 0).sum(axis=1) > 1)[:, None]
        scores = np.full(first.shape, np.nan, dtype=np.float32)
        if valid.any():
            assert self.scorer is not None
            if self.scorer.retriever != context.snapshot.encoder.fingerprint:
                warn_once(PaperMessages.W870)
            pairs = self.pairs(batch, np.where(valid, first, -1), context)
            scores[valid] = self.scorer(pairs, context.cache)
            if self.vector_curves is not None:
                scores += log_odds_by_vectors(
                    neighbours, self.vector_curves
                ).scores_or_least(first)
        return Scored(batch, neighbours, before, first, scores)

    def pairs(
        self, batch: MentionBatch, candidates: np.ndarray, context: RankingContext
    ) -> SpanInputs:
        """The pairs of mentions and candidates, mention by mention.

        candidates: (m, c) int64 positions of entities, -1 for none.
        """
        assert self.scorer is not None
        snapshot = context.snapshot
        tokenizer = self.scorer.tokenizer
        strings = snapshot.strings
        rows, columns = np.nonzero(candidates >= 0)
        entities = candidates[rows, columns]
        names = strings.nearest_names(batch.normalized, candidates)[rows, columns]
        keys, part_of = np.unique(entities * NAMES + names, return_inverse=True)
        titled = list(zip((keys // NAMES).tolist(), (keys % NAMES).tolist()))
        entity_of = snapshot.kb.entities.at_all([entity for entity, _ in titled])
        texts = [
            entity_texts(
                entity_of[entity], name, strings.names_of(entity), snapshot.normalizer
            )
            for entity, name in titled
        ]
        entity_parts = EntityParts.read(tokenizer, texts, self.text)
        return make_pairs(
            batch.inputs, entity_parts, rows, part_of, tokenizer.specials, self.window
        )

    def _logits(self, scored: Scored, context: RankingContext) -> np.ndarray:
        """(m, k) float32, the log-odds of the scored candidates, NaN for others."""
        rows = np.flatnonzero(scored.is_scored)
        logits = np.full(scored.first.shape, np.nan, dtype=np.float32)
        scores = scored.scores[rows]
        valid = np.isfinite(scored.scores[rows])
        if self.as_feature and self.fitted.weights is not None:
            features = self._features(scored, rows, context)
            logits[rows] = self.fitted.weights.logits(features)
        else:
            best = scored.before.candidates.resized(1).scores[rows, 0]
            logits[rows] = self.fitted.logits(scores, valid, best)
        logits[rows] = np.where(valid, logits[rows], np.nan)
        return logits

    def _features(
        self, scored: Scored, rows: np.ndarray, context: RankingContext
    ) -> CandidateFeatures:
        assert isinstance(self.ranker, FeatureRanker)
        neighbours = scored.neighbours.take(rows)
        wide = replace(
            self.ranker, n_reranked=max(self.ranker.n_reranked, self.n_reranked)
        )
        gathered = wide.gather(scored.batch.take(rows), neighbours, context)
        assert gathered is not None, "a mention with scores has candidates"
        return with_scores(gathered, scored.first[rows], scored.scores[rows])

    def _reranked(self, scored: Scored, logits: np.ndarray) -> Ranking:
        before = scored.before
        k = scored.first.shape[1]
        ids = before.candidates.ids
        old = before.candidates.scores
        is_scored = scored.is_scored[:, None]
        # Of equal ones, the one that was first stays first.
        logits = logits - TIE * np.arange(k, dtype=np.float32)
        least = np.where(np.isfinite(logits), logits, np.inf).min(
            axis=1, keepdims=True
        )
        places_behind = np.arange(ids.shape[1], dtype=np.float32) - k + 1
        behind = np.minimum(old, least - GAP * np.maximum(places_behind, 1))
        new = behind.astype(np.float32)
        new[:, :k] = np.where(np.isfinite(logits), logits, behind[:, :k])
        new = np.where(is_scored & before.candidates.valid, new, old)
        return before.rescored(new)

    def fit(
        self,
        mentions: AnnotatedMentions,
        context: RankingContext,
        fold_of: np.ndarray,
        n_folds: int,
    ) -> list["CrossEncoder"]:
        """Fit the ranker inside, and how the scores count. The scores' weights stay unchanged."""
        rankers = self.ranker.fit(mentions, context, fold_of, n_folds)
        return [
            replace(self, ranker=ranker)._fit_scores(
                mentions.take(np.flatnonzero(fold_of != fold)), context
            )
            for fold, ranker in enumerate(rankers, -1)
        ]

    def _fit_scores(
        self, mentions: AnnotatedMentions, context: RankingContext
    ) -> "CrossEncoder":
        batch, neighbours, gold, _ = mentions
        plain = replace(self, fitted=CrossEncoderFit())
        if self.scorer is None or not len(batch):
            return plain
        scored = plain.score(batch, neighbours, context)
        rows = np.flatnonzero(scored.is_scored)
        if not len(rows):
            return plain
        correct = is_gold(scored.first[rows], gold[rows])
        features = None
        if self.as_feature:
            features = self._features(scored, rows, context)
        best = scored.before.candidates.resized(1).scores[rows, 0]
        fitted = CrossEncoderFit.fit(
            scored.scores[rows], correct, best, features, batch.documents[rows]
        )
        if fitted.weights is not None:
            log.info(
                "Cross-encoder fitted, held-out accuracy %.4f", fitted.weights.accuracy
            )
        return replace(plain, fitted=fitted)

    def to_bytes(self) -> bytes:
        ranker = self.ranker.to_bytes()
        if self.scorer is None and not ranker:
            return b""
        content = {
            "scorer": b"" if self.scorer is None else self.scorer.to_bytes(),
            "ranker": ranker,
            "vector_curves": self.vector_curves and self.vector_curves.to_config(),
            "fitted": self.fitted.to_bytes(),
        }
        return srsly.msgpack_dumps(content)

    def from_bytes(self, data: bytes) -> "CrossEncoder":
        """Load what was trained and fitted. Raises ValueError where it needs other settings."""
        if not data:
            ranker = self.ranker.from_bytes(b"")
            nothing = CrossEncoderFit()
            return replace(
                self, scorer=None, ranker=ranker, vector_curves=None, fitted=nothing
            )
        content: Any = srsly.msgpack_loads(data)
        scorer = (
            PairScorer.from_bytes(content["scorer"]) if content["scorer"] else None
        )
        if scorer is not None:
            self._check_size(scorer)
        curves = content.get("vector_curves")
        return replace(
            self,
            scorer=scorer,
            ranker=self.ranker.from_bytes(content["ranker"]),
            vector_curves=None if curves is None else Calibration.from_config(curves),
            fitted=CrossEncoderFit.from_bytes(content["fitted"]),
        )

    def _check_size(self, scorer: PairScorer) -> None:
        """Raise ValueError where the scorer was trained on shorter pairs."""
        size = scorer.tower.attrs["reader"].size
        if size < self.size:
            raise PaperMessages.E871(trained=size, now=self.size)


@registry.misc("spacy-arbo-el.CrossEncoder.v1")
def cross_encoder(
    ranker: Reranker,
    n_reranked: int = 8,
    as_feature: bool = True,
    window: int = 48,
    text: int = 48,
) -> CrossEncoder:
    """Score the first candidates by reading them with the mention.

    By default, the score is the retriever's log-odds of the candidate and what the model adds to
    them, see ``RerankerTraining.v1``.

    Use it where context or spelling decides between candidates that the encoder finds equally near,
    and where linking may take several times as long. ``python -m spacy arbo rerank`` trains it for
    a trained pipeline, whose encoder stays as it is; ``arbo fit`` weighs its scores.
    Until it is trained, the ranker inside ranks alone::

        [components.arbo_linker.reranker]
        @misc = "spacy-arbo-el.CrossEncoder.v1"
        n_reranked = 8

        [components.arbo_linker.reranker.ranker]
        @misc = "spacy-arbo-el.FeatureRanker.v1"

    It reads the word pieces that the linker's encoder of mentions reads, so that this must be a
    transformer. The cost is one pass over at most ``window + text`` word pieces for each candidate.

    ranker: Ranks the candidates before.
    n_reranked: How many candidates of a mention are scored. The others follow them, in their order.
    as_feature: Whether the score is one more feature of the ranker, which must be a
        ``FeatureRanker``. Otherwise candidates are ranked by the score.
    window: The most word pieces of the mention and the text around it. There are no more than the
        encoder of mentions reads.
    text: The most word pieces of the names, types and description of a candidate. Give more where
        descriptions decide.
    """
    return CrossEncoder(ranker, n_reranked, as_feature, window, text)
