"""VERBALIZED's iterative prediction (§4.1): a linker whose surest links help with the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import Config, Model

from ...base.settings import check_count, check_part
from ...config_sources import DEFAULT_CONFIG
from ...discovery.grouping import Discovery
from ...encoders.inputs import SpanInputs
from ...factory import SCORE_WEIGHTS, in_pipeline
from ...linker import ArboLinker
from ...linking.coverage import CoverageSetting
from ...linking.stages import LinkedMentions, LinkingStages, least_logit
from ...linking.thresholds import least_threshold
from ...mentions.annotations import Overwrite
from ...mentions.reader import MentionSettings
from ...mentions.record import MentionBatch
from ...ranking.decisions import Inference, first_candidates
from ...ranking.ranking import Reranker
from ...retrieval.neighbours import AllowedEntities
from ...retrieval.settings import RetrieverSettings
from ...training.objective import TrainingObjective
from .verbalized_links import WrittenLinks, read_with_links, write_links


@registry.misc("spacy-arbo-el.IterativePrediction.v1")
@dataclass(frozen=True)
class IterativePrediction:
    """Links the surest mentions, then the rest with their help.

    In each round the surest links are written into
    the text as "mention (verbalization)". The other mentions are encoded again in that text. A
    mention keeps the new vector only where its first candidate becomes more probable. The Doc and
    its offsets stay unchanged. It takes up to ``1 / share`` times as long. In the paper it gains
    on some corpora and loses on others. Use it with the component ``arbo_iterative_linker``::

        [components.arbo_linker]
        factory = "arbo_iterative_linker"

        [components.arbo_linker.iteration]
        @misc = "spacy-arbo-el.IterativePrediction.v1"
        share = 0.34

    It applies only when documents are linked one at a time. A corpus in one graph, calibration and
    tuning link without it.

    share: The share of a document's mentions that each round writes in, above 0 and below 1.
    limit: The verbalization ends at the next punctuation after so many characters; 0 for no limit.
    training: Writes links into the text in training too; None to train on the text as it is.
    """

    share: float = 0.34
    limit: int = 50
    training: WrittenLinks | None = None

    def __post_init__(self) -> None:
        check_part("iteration.share", self.share)
        check_count("iteration.limit", self.limit)

    @property
    def rounds(self) -> int:
        """Most rounds of encoding mentions again."""
        return int(np.ceil(1 / self.share)) - 1

    def revise(
        self,
        stages: LinkingStages,
        spans: Sequence[Sequence[Span]],
        batch: MentionBatch,
        min_logit: float,
    ) -> MentionBatch:
        """The vectors of mentions in texts with links.

        stages: Those of the linker; its datastore must be in use.
        batch: The same, encoded.
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


@dataclass(frozen=True)
class IterativeStages(LinkingStages):
    """The stages of a linker that links by iterative prediction."""

    iteration: IterativePrediction = IterativePrediction()

    @classmethod
    def of(cls, stages: LinkingStages, iteration: IterativePrediction) -> "IterativeStages":
        """The stages of a linker, with iteration."""
        parts = {field.name: getattr(stages, field.name) for field in fields(LinkingStages)}
        return cls(**parts, iteration=iteration)

    def link(
        self,
        spans: Sequence[Sequence[Span]],
        threshold: float,
        allowed: AllowedEntities | None = None,
    ) -> LinkedMentions:
        """Link the mentions of documents, each document for itself. See ``LinkingStages.link``."""
        batch = self.encode(self.read(spans))
        with self.datastore.reading():
            least = least_logit(least_threshold(threshold))
            batch = self.iteration.revise(self, spans, batch, least)
            return self.link_encoded(batch, threshold, allowed)


class IterativeLinker(ArboLinker):
    """Links spans to entities with the help of the surest links of their document."""

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str = "arbo_iterative_linker",
        *,
        iteration: IterativePrediction,
        **settings: Any,
    ) -> None:
        super().__init__(vocab, model, name, **settings)
        self.stages = IterativeStages.of(self.stages, iteration)
        self.iteration = iteration

    def training_step(self, examples: Sequence[Example], rows: np.ndarray) -> tuple[float, int]:
        """Compute the gradients of a batch, whose texts have links where the setting says so."""
        written = self.iteration.training
        if written is None or not len(rows):
            return self.trainer.step(rows)
        spans = [self.reader.all_mentions(example.reference) for example in examples]
        limit = self.iteration.limit
        rows, revised = read_with_links(limit, written, self.stages, self.trainer, spans, rows)
        return self.trainer.step(rows, revised)

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild, (kind, vocab, model, name, settings, *rest) = super().__reduce__()
        return rebuild, (kind, vocab, model, name, {**settings, "iteration": self.iteration}, *rest)


@Language.factory(
    "arbo_iterative_linker",
    assigns=["token.ent_kb_id", "span._.arbo", "doc.spans"],
    requires=["doc.ents"],
    default_config={
        **Config().from_disk(DEFAULT_CONFIG)["arbo_linker"],
        "iteration": {"@misc": "spacy-arbo-el.IterativePrediction.v1"},
    },
    default_score_weights=SCORE_WEIGHTS,
)
def make_iterative_linker(
    nlp: Language,
    name: str,
    model: Model,
    iteration: IterativePrediction,
    mentions: MentionSettings,
    retriever: RetrieverSettings,
    reranker: Reranker,
    inference: Inference,
    discovery: Discovery | None,
    objective: TrainingObjective,
    scorer: Callable | None,
    threshold: float | dict[str, float],
    coverage: CoverageSetting,
    overwrite: Overwrite,
    use_gold_ents: bool,
    extension: str,
    calibration: dict[str, list[float]] | None,
) -> IterativeLinker:
    """Build a linker that writes its surest links into the text to link the others.

    iteration: How links are written into texts.
    """
    settings: dict[str, Any] = dict(locals())
    return in_pipeline(IterativeLinker, **settings)


def _first(stages: LinkingStages, batch: MentionBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
    min_logit: The log-odds that a link must have.
    """
    is_open = (written < 0) & (entities >= 0) & (logits >= min_logit)
    open_mentions = np.flatnonzero(is_open)
    order = open_mentions[np.lexsort((-logits[open_mentions], documents[open_mentions]))]
    starts = np.searchsorted(documents[order], documents[order])
    return order[np.arange(len(order)) - starts < per_round[documents[order]]]


def _different(before: SpanInputs, after: SpanInputs, mentions: np.ndarray) -> np.ndarray:
    keys = zip(before.take(mentions).keys(), after.take(mentions).keys())
    return mentions[np.array([old != new for old, new in keys], dtype=bool)]
