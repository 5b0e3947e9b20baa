"""Iterative prediction: sure links are written into the text that the others are linked with."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, Sequence, Tuple

import numpy as np
from spacy.tokens import Span
from spacy.util import registry

from ..calibration.calibration import Calibration
from ..encoders.inputs import SpanInputs
from ..inference.decisions import Decisions, Inference
from ..inference.independent import first_candidates
from ..mentions.batch import MentionBatch
from ..reranking.protocol import Ranking
from ..retrieval.neighbours import Neighbours
from ..settings import check_count, check_part
from .insertions import write_links
from .iterative_training import WrittenLinks

if TYPE_CHECKING:
    from .stages import LinkingStages


# paper: VERBALIZED
@registry.misc("spacy-arbo-el.IterativePrediction.v1")
@dataclass(frozen=True)
class IterativePrediction:
    """Link the surest mentions of a document first, then use them to link the rest.

    This is VERBALIZED's iterative prediction (§4). In each round the surest links are written into
    the text as "mention (verbalization)". The other mentions are encoded again in that text. A
    mention keeps the new vector only where its first candidate becomes more probable. The Doc and
    its offsets stay as they are. It takes up to ``1 / share`` times as long. In the paper it gains
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
    training: Optional[WrittenLinks] = None

    def __post_init__(self) -> None:
        check_part("inference.share", self.share)
        check_count("inference.limit", self.limit)

    @property
    def n_exemplars(self) -> int:
        return self.inference.n_exemplars

    @property
    def n_mentions(self) -> int:
        return self.inference.n_mentions

    def __call__(
        self,
        batch: MentionBatch,
        neighbours: Neighbours,
        ranking: Ranking,
        calibration: Calibration,
        min_logit: float,
    ) -> Decisions:
        return self.inference(batch, neighbours, ranking, calibration, min_logit)

    @property
    def rounds(self) -> int:
        """How many times mentions are encoded again at most."""
        return int(np.ceil(1 / self.share)) - 1

    def revised(
        self,
        stages: "LinkingStages",
        spans: Sequence[Sequence[Span]],
        batch: MentionBatch,
        min_logit: float,
    ) -> MentionBatch:
        """The batch with the vectors of the last round.

        stages: Those of the linker; its datastore must be in use.
        spans: The mentions of each document.
        batch: The same, encoded.
        min_logit: The log-odds that a link must have to be written in.
        """
        counts = np.bincount(batch.documents, minlength=batch.n_documents)
        if not (counts > 1).any():
            return batch
        texts, inputs = stages.reader.texts_of(spans), batch.inputs
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
            rest, inputs = _different(inputs, now, rest), now
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
) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first candidate of each mention, its log-odds, and whether a correction holds for it."""
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
    """The surest mentions of each document that are not written in yet.

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
    """Those of some mentions that are not read as before."""
    keys = zip(before.take(mentions).keys(), after.take(mentions).keys())
    return mentions[np.array([old != new for old, new in keys], dtype=bool)]
