"""VERBALIZED (Rücker and Akbik 2025): a dual encoder over whole documents.

Documents are read in passages (``DocumentEncoder.v1``), entities are titles with cut descriptions
(``Parts.v1``), vectors the first and last word piece (``FirstLastPooling.v1``). Here: the loss over
distances (§3.3), as many negatives as a step can afford (§3.4), and iterative prediction (§4.1);
``verbalized_links.py`` has what iteration writes into texts, and its training.

Other than in the paper, mentions and entities share one encoder, and a smaller one; negatives come
from vectors that training keeps up to date.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from spacy.tokens import Span
from spacy.util import registry

from ...base.calibration import Calibration
from ...base.errors import ArboError
from ...base.settings import check_count, check_part
from ...encoders.inputs import SpanInputs
from ...mentions.record import MentionBatch
from ...ranking.decisions import Decisions, Inference, first_candidates
from ...ranking.ranking import RankedMentions
from ...training.cache import EmbeddingCache
from ...training.losses import LearnsScale, Loss, LossAndGradient
from ...training.negatives import Negatives
from ...training.step import RevisedInputs
from ...training.table import GoldTable
from .errors import PaperMessages
from .verbalized_links import WrittenLinks, read_with_links, write_links

if TYPE_CHECKING:
    from ...linking.stages import LinkingStages
    from ...training.trainer import Trainer

# A squared distance of equal vectors may be a little below 0 by rounding.
SLIGHTLY_ABOVE = 1e-3
# Added to squared distances: the root of 0 has no derivative.
SMALLEST_SQUARE = 1e-12


@registry.losses("spacy-arbo-el.OverDistances.v1")
@dataclass(frozen=True)
class OverDistances:
    """A loss over negative Euclidean distances. They are not squared (VERBALIZED, §3.3).

    Use it with the similarity ``NegativeSquaredEuclidean.v1``. Candidates are ranked the same by
    both, but the gradients differ. The paper's best system has cross-entropy over distances::

        [components.arbo_linker.objective.loss]
        @losses = "spacy-arbo-el.OverDistances.v1"

        [components.arbo_linker.objective.loss.loss]
        @losses = "spacy-arbo-el.CrossEntropy.v1"
        scale = 1.0

    loss: The loss, without ``LearnedScale.v1``.
    """

    loss: Loss

    scale = 1.0
    offset = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.loss, LearnsScale):
            raise ArboError(PaperMessages.E618)

    def __call__(
        self, logits: np.ndarray, positive: np.ndarray, valid: np.ndarray
    ) -> LossAndGradient:
        scores, slope = _negative_distances(np.where(valid, logits, 0.0).astype(np.float64))
        scaled = self.loss.scale * scores + self.loss.offset
        losses, gradient = self.loss(scaled, positive, valid)
        return losses, gradient * self.loss.scale * slope


def _negative_distances(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Negative distances with derivatives, from squared ones. All are (b, n).

    Raise ValueError where a similarity is above 0: it is no negative squared distance.
    """
    if (scores > SLIGHTLY_ABOVE).any():
        raise ArboError(PaperMessages.E616.format(largest=scores.max()))
    distances = np.sqrt(np.maximum(-scores, 0.0) + SMALLEST_SQUARE)
    return -distances, 0.5 / distances


@registry.misc("spacy-arbo-el.NegativesWithinBudget.v1")
@dataclass(frozen=True)
class NegativesWithinBudget:
    """Negatives up to a step's budget of word pieces (VERBALIZED, §3.4).

    Texts that several queries share are encoded once, so many negatives cost little where the
    queries are alike. Each query gets the same number, at least one::

        [components.arbo_linker.objective.negatives]
        @misc = "spacy-arbo-el.NegativesWithinBudget.v1"
        word_pieces = 8192

        [components.arbo_linker.objective.negatives.negatives]
        @misc = "spacy-arbo-el.HardNegatives.v1"
        k = 64
        mention_share = 0.0

    negatives: Chooses them, the hardest first; texts only, no mentions.
    word_pieces: The most word pieces of a step's negatives.
    """

    negatives: Negatives
    word_pieces: int = 8192

    def __post_init__(self) -> None:
        check_count("negatives.word_pieces", self.word_pieces, least=1)

    def __call__(self, queries: np.ndarray, table: GoldTable, cache: EmbeddingCache) -> np.ndarray:
        nodes = self.negatives(queries, table, cache)
        if not table.is_text(nodes).all():
            raise ArboError(PaperMessages.E617)
        # Column by column: each text costs where it first occurs.
        texts, first = np.unique(nodes.T.ravel(), return_index=True)
        column = first[texts >= 0] // max(len(nodes), 1)
        lengths = table.text_lengths[texts[texts >= 0]]
        cost = np.cumsum(np.bincount(column, weights=lengths, minlength=nodes.shape[1]))
        affordable = int(np.searchsorted(cost, self.word_pieces, side="right"))
        return nodes[:, : max(affordable, 1)]


@registry.misc("spacy-arbo-el.IterativePrediction.v1")
@dataclass(frozen=True)
class IterativePrediction:
    """Links the surest mentions, then the rest with their help.

    In each round the surest links are written into
    the text as "mention (verbalization)". The other mentions are encoded again in that text. A
    mention keeps the new vector only where its first candidate becomes more probable. The Doc and
    its offsets stay unchanged. It takes up to ``1 / share`` times as long. In the paper it gains
    on some corpora and loses on others::

        [components.arbo_linker.inference]
        @misc = "spacy-arbo-el.IterativePrediction.v1"
        share = 0.34

        [components.arbo_linker.inference.inference]
        @misc = "spacy-arbo-el.Independent.v1"

    It applies only when documents are linked one at a time. A corpus in one graph, calibration and
    tuning use the inference procedure inside.

    inference: Decides on the links in the end.
    share: The share of a document's mentions that each round writes in, above 0 and below 1.
    limit: The verbalization ends at the next punctuation after so many characters; 0 for no limit.
    training: Writes links into the text in training too; None to train on the text as it is.
    """

    inference: Inference
    share: float = 0.34
    limit: int = 50
    training: WrittenLinks | None = None

    def __post_init__(self) -> None:
        check_part("inference.share", self.share)
        check_count("inference.limit", self.limit)

    @property
    def n_exemplars(self) -> int:
        return self.inference.n_exemplars

    @property
    def n_mentions(self) -> int:
        return self.inference.n_mentions

    def decide(
        self, ranked: RankedMentions, calibration: Calibration, min_logit: float
    ) -> Decisions:
        return self.inference.decide(ranked, calibration, min_logit)

    @property
    def rounds(self) -> int:
        """Most rounds of encoding mentions again."""
        return int(np.ceil(1 / self.share)) - 1

    def revise_step(
        self,
        stages: "LinkingStages",
        trainer: "Trainer",
        spans: Sequence[Sequence[Span]],
        rows: np.ndarray,
    ) -> tuple[np.ndarray, RevisedInputs | None]:
        """Inputs of texts with links. See ``RevisesTraining``."""
        if self.training is None:
            return rows, None
        return read_with_links(self.limit, self.training, stages, trainer, spans, rows)

    def revise(
        self,
        stages: "LinkingStages",
        spans: Sequence[Sequence[Span]],
        batch: MentionBatch,
        min_logit: float,
    ) -> MentionBatch:
        """Revise vectors by links written into the text, see ``Revises``.

        RETURNS: The batch with the vectors of the last round.
        """
        counts = np.bincount(batch.documents, minlength=batch.n_documents)
        if not (counts > 1).any():
            return batch
        texts = stages.reader.texts_of(spans)
        inputs = batch.inputs
        entities, logits, corrected = _first(stages, batch)
        written = np.full(len(batch), -1, dtype=np.int64)
        per_round = np.ceil(self.share * counts).astype(np.int64)
        for _ in range(self.rounds):
            new = _surest(written, entities, logits, batch.documents, per_round, min_logit)
            written[new] = entities[new]
            changed = np.isin(batch.documents, batch.documents[new])
            # What a person has said of a mention does not depend on the text.
            rest = np.flatnonzero((written < 0) & changed & ~corrected)
            if not len(rest):
                break
            with_links = write_links(stages.datastore.kb, texts, written, self.limit)
            now = stages.reader.inputs_of(with_links)
            rest = _different(inputs, now, rest)
            inputs = now
            if not len(rest):
                continue
            again = batch.take(rest).with_vectors(stages.encode_inputs(inputs.take(rest)))
            new_entities, new_logits, _ = _first(stages, again)
            better = new_logits > logits[rest]
            vectors = batch.encoded.copy()
            vectors[rest[better]] = again.encoded[better]
            batch = batch.with_vectors(vectors)
            entities[rest[better]] = new_entities[better]
            logits[rest[better]] = new_logits[better]
        return batch


def _first(
    stages: "LinkingStages", batch: MentionBatch
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First candidates, their log-odds, and which are corrected."""
    ranked = stages.rank_encoded(batch, n_mentions=0)
    entities, logits, _ = first_candidates(ranked.ranking)
    return entities.copy(), logits.copy(), ranked.corrected


def _surest(
    written: np.ndarray,
    entities: np.ndarray,
    logits: np.ndarray,
    documents: np.ndarray,
    per_round: np.ndarray,
    min_logit: float,
) -> np.ndarray:
    """Each document's surest mentions not yet written in.

    written: (m,) int64, the entity of each mention that is written in, -1 for the others.
    entities, logits: (m,), the first candidate of each mention.
    documents: (m,) int64, ascending.
    per_round: (documents,) int64, how many mentions of each.
    min_logit: The log-odds that they must have.
    """
    is_open = (written < 0) & (entities >= 0) & (logits >= min_logit)
    open_mentions = np.flatnonzero(is_open)
    order = open_mentions[np.lexsort((-logits[open_mentions], documents[open_mentions]))]
    starts = np.searchsorted(documents[order], documents[order])
    return order[np.arange(len(order)) - starts < per_round[documents[order]]]


def _different(before: SpanInputs, after: SpanInputs, mentions: np.ndarray) -> np.ndarray:
    """Mentions that are read differently than before."""
    keys = zip(before.take(mentions).keys(), after.take(mentions).keys())
    return mentions[np.array([old != new for old, new in keys], dtype=bool)]
