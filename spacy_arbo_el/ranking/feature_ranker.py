"""A ranker of candidates by all their similarities, and the weights that come with the package."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from spacy.util import registry

from ..base.arrays import int_array, take_or, take_rows, unit
from ..base.calibration import log_odds
from ..base.errors import Errors
from ..base.log import log
from ..base.settings import check_count
from ..encoders.dual import DualEncoder
from ..mentions.labels import is_gold
from ..mentions.record import MentionBatch, MentionRecord
from ..names.string_features import SAME_STRING
from ..retrieval.neighbours import AllowedEntities, Neighbours
from ..retrieval.similarity import Cosine
from ..storage.files import pack_arrays, unpack_arrays
from .contexts import fits_of
from .features import FEATURES, CandidateFeatures, gather_features, namesakes
from .ranker_fit import Labelled, cross_fit
from .ranker_weights import Assessment, RankerWeights, share_among_equals
from .ranking import AnnotatedMentions, Ranking, RankingContext, rank_by_best_evidence

# The weights were fitted on public corpora by ``experiments/default_ranker.py``. They weigh
# similarities of vectors, and each encoder has its own scale of these. So they are used only while
# the encoder gives the vectors that it gave then, as far as a few probes show.
PRETRAINED = Path(__file__).with_name("pretrained.npz")
# Each is encoded as the text of an entity and as a mention.
PROBES = (
    "heart attack",
    "Paris, the capital of France",
    "tumour necrosis factor 2",
    "Hello",
)
# Linear layers of 8 bits (0.997) and lower precision on a GPU give at least this mean cosine;
# an encoder that has been trained for some steps does not.
SAME = 0.995


@dataclass(frozen=True, eq=False)
class PretrainedWeights:
    """Weights, and how to recognize the encoder they suit.

    weights: The weights.
    vectors: (2 * len(PROBES), width) float32, of length 1: the probes as texts, then as mentions.
    """

    weights: RankerWeights
    vectors: np.ndarray
    # Whether they suit an encoder, by its fingerprint.
    _suits: dict[str, bool] = field(default_factory=dict, repr=False)

    def suit(self, encoder: DualEncoder) -> bool:
        """Return whether the encoder is theirs and untrained since."""
        if encoder.fingerprint not in self._suits:
            vectors = vectors_of_probes(encoder)
            same = vectors.shape == self.vectors.shape
            same = same and float((vectors * self.vectors).sum(axis=1).mean()) >= SAME
            self._suits[encoder.fingerprint] = same
        return self._suits[encoder.fingerprint]

    def to_bytes(self) -> bytes:
        weights = np.frombuffer(self.weights.to_bytes(), dtype=np.uint8)
        return pack_arrays({"weights": weights, "vectors": self.vectors})

    @classmethod
    def from_bytes(cls, data: bytes) -> "PretrainedWeights":
        """Load the result of ``to_bytes``. Raises ValueError where it is damaged."""
        try:
            arrays = unpack_arrays(data)
            weights = RankerWeights.from_bytes(arrays["weights"].tobytes())
            vectors = arrays["vectors"]
        except Exception as error:  # zipfile and NumPy raise errors of many kinds
            raise ValueError(f"{type(error).__name__}: {error}") from error
        if (
            vectors.dtype != np.float32
            or vectors.ndim != 2
            or len(vectors) != 2 * len(PROBES)
        ):
            raise ValueError(
                f"the probes have the type {vectors.dtype}, shape {vectors.shape}"
            )
        return cls(weights, vectors)


@lru_cache(maxsize=1)
def pretrained_weights() -> PretrainedWeights:
    """The weights that come with the package."""
    try:
        return PretrainedWeights.from_bytes(PRETRAINED.read_bytes())
    except (OSError, ValueError) as error:
        raise Errors.E505(path=PRETRAINED, problem=error) from error


def vectors_of_probes(encoder: DualEncoder) -> np.ndarray:
    texts: list[str] = list(PROBES)
    ends = int_array([len(text) for text in texts])
    offsets = np.stack([np.zeros_like(ends), ends], axis=1)
    mentions = encoder.read_mentions(texts, np.arange(len(texts)), offsets)
    vectors = [
        encoder.encode_texts(encoder.read_texts([(text, "") for text in texts])),
        encoder.encode_mentions(mentions),
    ]
    return unit(np.concatenate(vectors)).astype(np.float32)


# Rankers are fitted on real mentions, and with this share as if their entities had no
# exemplars: most entities of a knowledge base have none, but few mentions of a dev set are theirs.
WITHHELD = 0.25
# The entities whose exemplars are left out at a time are one of so many parts; a prime number
# spreads entities that are neighbours in the knowledge base.
PARTS = 4
PRIME = 2654435761
# A mention is not read in context where its entity is less probably in the knowledge base, by its
# name alone.
HOPELESS = 0.02
# Nor where the second candidate has a smaller share, unless the first has exactly the name: only
# the context tells whether it is another entity of that name.
FAR = 0.01
# How far below the least candidate with features the other candidates are, in log-odds.
GAP = 1e-3


@dataclass(frozen=True)
class Comparison:
    """Two candidates of a mention, compared.

    contributions: How much each feature puts the one before the other, in log-odds.
    features: The features of each.
    fits: How well the context fits the descriptions of all whose name could be the mention, a
        cosine by the position of the entity; empty where none was compared.
    """

    contributions: dict[str, float]
    features: list[dict[str, float]]
    fits: dict[int, float]


@dataclass(frozen=True)
class FeatureRanker:
    """Scores candidates by a small network over their features. See ``feature_ranker``.

    The other settings are those of ``feature_ranker``.

    weights: What ``fit`` has learned. Without any weights, it ranks as ``BestEvidence`` does.
    """

    n_reranked: int = 24
    pretrained: bool = True
    context: bool = True
    weights: RankerWeights | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_count("reranker.n_reranked", self.n_reranked, 1)

    def __call__(
        self, batch: MentionBatch, neighbours: Neighbours, context: RankingContext
    ) -> Ranking:
        weights = self.weights_in(context)
        candidates = (
            None if weights is None else self.gather(batch, neighbours, context)
        )
        if weights is None or candidates is None:
            return rank_by_best_evidence(
                neighbours, context.calibration, context.n_candidates
            )
        candidates, assessment = self._in_context(
            batch.records, candidates, weights, context
        )
        logits = share_among_equals(candidates, assessment).logits
        least = np.where(candidates.valid, logits, np.inf).min(axis=1, keepdims=True)
        count = neighbours.entities.width + neighbours.exemplars.width
        by_vectors = rank_by_best_evidence(neighbours, context.calibration, count)
        return Ranking.from_scored(
            np.concatenate([candidates.entities, by_vectors.candidates.ids], axis=1),
            np.concatenate(
                [logits, np.minimum(by_vectors.candidates.scores, least - GAP)], axis=1
            ),
            np.concatenate([candidates.exemplars, by_vectors.exemplars], axis=1),
            context.n_candidates,
            assessment.presence.astype(np.float32),
        )

    def _in_context(
        self,
        records: Sequence[MentionRecord],
        candidates: CandidateFeatures,
        weights: RankerWeights,
        context: RankingContext,
    ) -> tuple[CandidateFeatures, Assessment]:
        """Assess candidates by their names, and where these do not decide in context.

        RETURNS: The candidates with the features that were used, and how probable they are.
        """
        by_name = weights.assess(candidates)
        if not self.context or not context.snapshot.encoder.reads_passages:
            return candidates, by_name
        open_mentions = np.flatnonzero(_is_open(candidates, by_name))
        if not len(open_mentions):
            return candidates, by_name
        open_records = take_rows(records, open_mentions)
        open_candidates = candidates.take(open_mentions)
        read = open_candidates.with_contexts(
            fits_of(open_records, open_candidates, context.snapshot, context.cache)
        )
        assessment = by_name.replaced(open_mentions, weights.assess(read))
        return candidates.replaced(open_mentions, read), assessment

    def weights_in(self, context: RankingContext) -> RankerWeights | None:
        """The weights to rank with. Those that were learned, else pretrained ones that suit."""
        return (
            self.weights if self.weights is not None else self.pretrained_in(context)
        )

    def coverage_in(self, context: RankingContext) -> float | None:
        """The coverage that presence is for, see ``TellsPresence``."""
        weights = self.weights_in(context)
        return None if weights is None else weights.coverage

    def pretrained_in(self, context: RankingContext) -> RankerWeights | None:
        """Pretrained weights of the package, if encoder and similarity suit."""
        if not self.pretrained:
            return None
        if context.snapshot.settings.similarity != Cosine():
            return None
        pretrained = pretrained_weights()
        return (
            pretrained.weights if pretrained.suit(context.snapshot.encoder) else None
        )

    def gather(
        self,
        batch: MentionBatch,
        neighbours: Neighbours,
        context: RankingContext,
        withheld: np.ndarray | None = None,
    ) -> CandidateFeatures | None:
        """The candidates of a batch with their features. None where there are no entities.

        withheld: As in ``gather_features``.
        """
        snapshot = context.snapshot
        if not len(batch) or not len(snapshot.kb):
            return None
        return gather_features(
            neighbours,
            batch.records,
            snapshot.strings,
            neighbours.allowed or snapshot.allowed_entities(batch),
            self.n_reranked,
            withheld,
        )

    def compare(
        self,
        batch: MentionBatch,
        neighbours: Neighbours,
        context: RankingContext,
        mention: int,
        first: int,
        second: int,
    ) -> Comparison | None:
        """Compare two candidates of a mention feature by feature.

        batch: The mentions of its document.
        mention: Its number among them.
        first, second: Positions of the entities in the knowledge base.
        RETURNS: None where the two have no features.
        """
        weights = self.weights_in(context)
        candidates = self.gather(batch, neighbours, context)
        if weights is None or candidates is None:
            return None
        candidates, _ = self._in_context(batch.records, candidates, weights, context)
        candidates = candidates.take(np.array([mention]))
        entities = candidates.entities[0].tolist()
        if first not in entities or second not in entities:
            return None
        pair = [entities.index(first), entities.index(second)]
        contributions = dict(
            zip(FEATURES, weights.contributions(candidates, *pair).tolist())
        )
        contributions["frequency"] = float(
            np.subtract(*candidates.frequency_prior()[0, pair])
        )
        features = [
            dict(zip(FEATURES, row)) for row in candidates.features[0, pair].tolist()
        ]
        described = namesakes(candidates)[0] & (candidates.column("described")[0] > 0)
        fits = candidates.column("fit")[0][described].tolist()
        return Comparison(
            contributions,
            features,
            dict(zip(candidates.entities[0][described].tolist(), fits)),
        )

    def gather_withheld(
        self, mentions: AnnotatedMentions, context: RankingContext
    ) -> tuple[np.ndarray, list[CandidateFeatures]]:
        """Candidates as if their gold entities had no exemplars.

        Entities are divided into parts. The exemplars of one part are left out at a time, for the
        mentions of the entities in it: so other entities keep theirs.

        RETURNS: The mentions that have a gold entity, and their candidates, part by part.
        """
        batch, neighbours, gold, _ = mentions
        snapshot = context.snapshot
        count = neighbours.exemplars.width
        part_of = np.arange(snapshot.kb.entities.positions) * PRIME % PARTS
        gathered_rows = [int_array()]
        gathered = []
        for part_number in range(PARTS):
            withheld = part_of == part_number
            rows = np.flatnonzero(take_or(withheld, gold, False).any(axis=1))
            if not len(rows):
                continue
            mentions_withheld = batch.take(rows)
            allowed = AllowedEntities.all_but(
                withheld, len(rows), snapshot.allowed_entities(mentions_withheld)
            )
            exemplars = snapshot.retriever.exemplars(
                mentions_withheld.encoded, count, allowed
            )
            without = neighbours.take(rows).with_exemplars(*exemplars)
            features = self.gather(mentions_withheld, without, context, withheld)
            if features is not None:
                gathered_rows.append(rows)
                gathered.append(features)
        return np.concatenate(gathered_rows), gathered

    def fit(
        self,
        mentions: AnnotatedMentions,
        context: RankingContext,
        fold_of: np.ndarray,
        n_folds: int,
    ) -> list["FeatureRanker"]:
        """Learn from all mentions, and without each fold. Without weights where there are few."""
        labelled = self.labelled(mentions, context)
        if labelled is not None:
            fold_of = fold_of[labelled.mentions]
        return self._fit(labelled, fold_of, n_folds, context)

    def fit_folds(
        self, folds: Sequence[Labelled | None], context: RankingContext
    ) -> list["FeatureRanker"]:
        """Learn from all folds, and without each: see ``FitsBesideExemplars``."""
        with_mentions = [fold for fold in folds if fold is not None]
        labelled = Labelled.concat(with_mentions) if with_mentions else None
        sizes = [0 if fold is None else len(fold.sample_weight) for fold in folds]
        fold_of = np.repeat(np.arange(len(folds)), sizes)
        return self._fit(labelled, fold_of, len(folds), context)

    def labelled(
        self, mentions: AnnotatedMentions, context: RankingContext
    ) -> Labelled | None:
        """Training examples: mentions as they are, as if without exemplars, and in context.

        RETURNS: None where there are no entities.
        """
        batch, neighbours, gold, _ = mentions
        candidates = self.gather(batch, neighbours, context)
        if candidates is None:
            return None
        rows = np.arange(len(batch))
        sample_weight = np.ones(len(batch))
        if len(context.snapshot.exemplars) and neighbours.exemplars.width:
            withheld, gathered = self.gather_withheld(mentions, context)
            candidates = CandidateFeatures.concat([candidates, *gathered])
            rows = np.concatenate([rows, withheld])
            by_entity = WITHHELD * _alike(gold[withheld].max(axis=1))
            sample_weight = np.concatenate(
                [np.full(len(batch), 1 - WITHHELD), by_entity]
            )
        if self.context and context.snapshot.encoder.reads_passages:
            # Half of the weight of a mention is on its names alone: most are ranked by these.
            records = take_rows(batch.records, rows)
            fits = fits_of(records, candidates, context.snapshot, context.cache)
            read = candidates.with_contexts(fits)
            described = np.flatnonzero(read.column("described").any(axis=1))
            candidates = CandidateFeatures.concat([candidates, read.take(described)])
            sample_weight[described] /= 2
            rows = np.concatenate([rows, rows[described]])
            sample_weight = np.concatenate([sample_weight, sample_weight[described]])
        correct = is_gold(candidates.entities, gold[rows])
        return Labelled(candidates, correct, sample_weight, rows)

    def _fit(
        self,
        labelled: Labelled | None,
        fold_of: np.ndarray,
        n_folds: int,
        context: RankingContext,
    ) -> list["FeatureRanker"]:
        fitted = labelled and cross_fit(
            labelled, fold_of, n_folds, self.pretrained_in(context)
        )
        if not fitted:
            return [replace(self, weights=None)] * (n_folds + 1)
        log.info("Ranker fitted, held-out accuracy %.4f", fitted[0].accuracy)
        return [replace(self, weights=weights) for weights in fitted]

    def to_bytes(self) -> bytes:
        return b"" if self.weights is None else self.weights.to_bytes()

    def from_bytes(self, data: bytes) -> "FeatureRanker":
        """Return the ranker with the weights that ``to_bytes`` gave."""
        return replace(self, weights=RankerWeights.from_bytes(data) if data else None)


def _is_open(candidates: CandidateFeatures, by_name: Assessment) -> np.ndarray:
    """(m,) bool, the mentions whose context may decide on their entity."""
    shares = np.sort(by_name.log_shares, axis=1)
    best = by_name.log_shares.argmax(axis=1)
    exact = candidates.column("ngrams")[np.arange(len(best)), best] >= SAME_STRING
    is_close = exact
    if shares.shape[1] > 1:
        is_close = is_close | (shares[:, -2] >= np.log(FAR))
    is_close = is_close | (namesakes(candidates).sum(axis=1) > 1)
    return is_close & (by_name.presence >= log_odds(HOPELESS))


def _alike(entities: np.ndarray) -> np.ndarray:
    """Weights under which each entity counts alike: (m,) float, 1 on average."""
    _, entity, counts = np.unique(entities, return_inverse=True, return_counts=True)
    return len(entities) / max(len(counts), 1) / counts[entity]


@registry.misc("spacy-arbo-el.FeatureRanker.v1")
def feature_ranker(
    n_reranked: int = 24,
    pretrained: bool = True,
    context: bool = True,
) -> FeatureRanker:
    """Rank candidates by all similarities at once.

    The default. A dual encoder confuses similar strings, such as names of diseases. With the
    bundled encoder as it comes, it ranks by weights that were fitted on public corpora. With any
    other encoder, also once the bundled one has been trained, it ranks as ``BestEvidence.v1`` does,
    until ``arbo fit`` or the callback ``Calibrate.v1`` fits it on annotated documents::

        [components.arbo_linker.reranker]
        @misc = "spacy-arbo-el.FeatureRanker.v1"

    n_reranked: How many candidates of a mention are ranked by features. The others follow them.
    pretrained: Whether to use the weights that come with the package until others are fitted, and
        to fit others from these. They need ``Cosine.v1``.
    context: Whether the text around a mention is compared with the descriptions of its candidates,
        where their names leave doubt. Descriptions are encoded once, when they are needed.
    """
    return FeatureRanker(n_reranked, pretrained, context)
