"""A run of ``arbo rerank``. A cross-encoder for a trained pipeline, in a folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Config

from ....base.errors import ArboError
from ....linker import ArboLinker, find_linker, name_of_linker
from ....mentions.record import MentionBatch
from ....runs.checkpoint import CHECKPOINT, checkpoint_to_resume, identity_of, write_end
from ..errors import PaperMessages
from .candidates import TrainingCandidates, annotated_mentions, make_candidates
from .cross_encoder import CrossEncoder
from .pair_scorer import PairScorer
from .reranker import (
    LabelledMentions,
    RerankerTrainer,
    RerankerTraining,
    fit_weight,
)

_CONFIG = Path(__file__).with_name("reranker.cfg")


@dataclass(frozen=True)
class RerankerRun:
    """A cross-encoder's training run in a folder.

    nlp: The trained pipeline. The encoder of its linker stays as it is.
    config: With the sections ``reranker`` and ``training``, and no variables.
    folder: For the checkpoint.
    report: Takes the lines of the log.
    """

    nlp: Language
    config: Config
    folder: Path
    report: Callable[[str], None] = print

    @property
    def linker(self) -> ArboLinker:
        """The linker of the pipeline."""
        return find_linker(self.nlp)

    def train(
        self,
        train: Sequence[Doc],
        dev: Sequence[Doc],
        *,
        candidates: TrainingCandidates | None = None,
        resume: bool = False,
    ) -> CrossEncoder:
        """The trained cross-encoder. How its scores count is not fitted yet.

        train: Annotated documents to learn from.
        dev: Annotated documents to evaluate on after each epoch.
        candidates: Those of the mentions of ``train``; None for the linker's own.
        resume: Whether to continue from the checkpoint of the folder. Without one a new run starts.
        """
        linker = self.linker
        self.folder.mkdir(parents=True, exist_ok=True)
        linker.encoder.require_ready(linker.name)
        sections = {name: self.config[name] for name in ("reranker", "training")}
        parts = registry.resolve(sections)
        reranker = parts["reranker"]
        training = parts["training"]
        if not isinstance(reranker, CrossEncoder):
            raise ArboError(PaperMessages.E879.format(found=type(reranker).__name__))
        scorer = self._scorer(reranker.size, training)
        with linker.datastore.reading():
            held_out = self._labelled(dev, training.n_candidates)
            weight = fit_weight(held_out.table)
            learned = self._labelled(train, training.n_candidates, candidates)
            self.report(_recall_line(learned.table))
            weight = weight if training.residual else 0.0
            chosen = mentions_to_train_on(learned, weight, training)
            self.report(f"Training on {len(chosen)} of {len(learned)} mentions")
            curves = linker.calibration.times(weight) if training.residual else None
            reranker = replace(reranker, scorer=scorer, vector_curves=curves)
            path = self.folder / CHECKPOINT
            identity = self._identity(train, dev)
            checkpoint = checkpoint_to_resume(path, identity) if resume else None
            if checkpoint is not None and not checkpoint.arrays:
                checkpoint = None
            state = linker.stages.context, weight, training, path, identity, self.report
            RerankerTrainer(reranker, *state).train(chosen, held_out, checkpoint=checkpoint)
        return reranker

    def has_ended(self, train: Sequence[Doc], dev: Sequence[Doc]) -> bool:
        """Return whether a folder holds the same, finished run. Settings and data must be the
        same.
        """
        path = self.folder / CHECKPOINT
        identity = self._identity(train, dev)
        checkpoint = checkpoint_to_resume(path, identity)
        return checkpoint is not None and not checkpoint.arrays

    def finish(self, train: Sequence[Doc], dev: Sequence[Doc]) -> None:
        """Mark the run as finished, once its result is saved."""
        write_end(self.folder / CHECKPOINT, self._identity(train, dev), 0)

    def _scorer(self, size: int, training: RerankerTraining) -> PairScorer:
        """The untrained scorer.

        size: The most word pieces of a pair.
        """
        encoder = self.linker.encoder
        return PairScorer.create(
            encoder.model.get_ref("mention"),
            size,
            encoder.fingerprint,
            name=training.name,
            seed=training.seed,
        )

    def _labelled(
        self, docs: Sequence[Doc], count: int, table: TrainingCandidates | None = None
    ) -> LabelledMentions:
        """The annotated mentions of documents with their candidates."""
        stages = self.linker.stages
        parts = annotated_mentions(stages, docs)
        table = table or make_candidates(stages, parts, count)
        return LabelledMentions(MentionBatch.concat(parts), table)

    def _identity(self, train: Sequence[Doc], dev: Sequence[Doc]) -> str:
        pipeline = self.linker.trainer.fingerprint()
        return identity_of(self.config.to_str(), [*train, *dev], str(len(train)), pipeline)


def read_config(path: Path | None, overrides: dict[str, Any]) -> Config:
    """The config of a training.

    path: A file; None for that of the package.
    """
    return Config().from_disk(path or _CONFIG, overrides=overrides)


def set_reranker(nlp: Language, linker: ArboLinker, reranker: CrossEncoder, config: Config) -> None:
    """Give a pipeline's linker a trained cross-encoder.

    config: The section that describes it; it becomes part of the pipeline's config.
    """
    linker.reranker = reranker
    nlp.get_pipe_config(name_of_linker(nlp, linker))["reranker"] = config


def _recall_line(table: TrainingCandidates) -> str:
    """The recall of training candidates, in words."""
    (first, among), (first_with, among_with) = table.recall.tolist()
    count = table.candidates.shape[1]
    return (
        f"Training candidates: recall@1 {first:.4f}, recall@{count} {among:.4f} without the "
        f"exemplars of the mention's document; with them {first_with:.4f} and {among_with:.4f}"
    )


def mentions_to_train_on(
    learned: LabelledMentions, weight: float, training: RerankerTraining
) -> LabelledMentions:
    """Select annotated mentions whose gold entity is a candidate.

    Of a document's mentions with the same string and entities, the first is taken. A model that
    learns what to add to the log-odds is not trained where vectors are sure of the gold entity,
    since there is little to add. A model with separate scores learns from all.

    learned: Annotated mentions with the candidates that were retrieved.
    weight: That of the retriever's log-odds.
    training: The settings.

    Raises ValueError if there are none.
    """
    rows, table = learned.table.with_gold()
    if not len(rows):
        raise ArboError(PaperMessages.E878.format(count=len(learned)))
    first = _first_of_each(learned.batch.take(rows))
    rows = rows[first]
    table = table.take(first)
    if training.residual and training.sure < 1.0:
        unsure = np.flatnonzero(table.gold_probability(weight) < training.sure)
        if not len(unsure):
            raise ArboError(PaperMessages.E883.format(count=len(rows), sure=training.sure))
        rows = rows[unsure]
        table = table.take(unsure)
    return LabelledMentions(learned.batch.take(rows), table)


def _first_of_each(batch: MentionBatch) -> np.ndarray:
    """First mention of each string and entities per document. (n,) int64.

    Two of them say little more than one. Trained on both, a model learns the string's entity in
    this document by heart.
    """
    first: dict[Any, int] = {}
    for place, record in enumerate(batch.records):
        first.setdefault((record.key[0], record.normalized.lower(), record.kb_ids), place)
    return np.array(list(first.values()), dtype=np.int64)
