"""Candidates of training mentions by encoders that were trained on other documents: cross-fitting.

A pipeline's own encoder has learned from the mentions of the training corpus. So it ranks their
candidates better than those of other documents, and many of the errors that are left are errors of
the annotation. A cross-encoder that learns from these candidates learns what it never meets later.

Here, the documents are split into folds. For each fold the encoder is trained anew on the documents
of the others, with the pipeline's own config, and gives the candidates of the fold's mentions.
"""

import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Callable, Dict, List, Sequence

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..arrays import TopK
from ..errors import Errors
from ..linker import ArboLinker, find_linker
from ..mentions.batch import MentionBatch
from ..mentions.labels import annotated_batches
from ..mentions.reader import MentionReader
from ..mentions.records import keys_of, text_fingerprint
from .candidate_files import CandidatesFile, pipeline_fingerprint
from .candidates import TrainingCandidates, annotated_mentions, make_candidates
from .memory import release_memory
from .reranker import RerankerTraining, fit_weight
from .resume import fingerprint_of_docs
from .retraining import Retraining


@dataclass(frozen=True)
class Fold:
    """A fold of the documents of a corpus.

    number: From 1.
    rows: (n,) int64, which of the corpus's annotated mentions are in it.
    held_out: Its documents.
    others: The documents to train on.
    file: Where its candidates are kept.
    """

    number: int
    rows: np.ndarray
    held_out: Sequence[Doc]
    others: Sequence[Doc]
    file: CandidatesFile


@dataclass(frozen=True)
class CrossFitting:
    """Makes the candidates of training mentions by encoders of other documents.

    linker: The trained linker. Its curves turn similarities into log-odds.
    batch: The m annotated mentions of its training corpus, not encoded.
    folds: The folds of the corpus.
    retraining: How the encoders are trained.
    n_candidates: How many candidates a mention has at most.
    report: Takes the lines of the log.
    """

    linker: ArboLinker
    batch: MentionBatch
    folds: Sequence[Fold]
    retraining: Retraining
    n_candidates: int
    report: Callable[[str], None]

    @classmethod
    def of(
        cls,
        nlp: Language,
        training: RerankerTraining,
        docs: Sequence[Doc],
        folder: Path,
        report: Callable[[str], None] = print,
    ) -> "CrossFitting":
        """The cross-fitting of a pipeline's training corpus. Nothing is trained yet.

        nlp: The trained pipeline, whose config the encoders are trained with.
        training: The settings, with at least 2 folds. Its seed determines them.
        docs: Annotated documents that the linker was trained on.
        folder: For the candidates of each fold, ``candidates-1.bin`` and so on. A fold whose file
            is there is not trained again.
        report: Takes the lines of the log.

        Raises ValueError where there are fewer documents than folds, where a file has candidates of
        other settings, where the documents of a fold give no batch, and as ``Retraining.of`` does.
        """
        linker, count = find_linker(nlp), training.n_candidates
        batch = MentionBatch.concat(annotated_mentions(linker.stages, docs))
        documents = [record.key[0] for record in batch.records]
        fold_of = split_documents(documents, training.folds, training.seed)
        fold_of_row = np.array([fold_of[key] for key in documents])
        # Documents without annotated mentions are in no fold: all encoders are trained on them.
        fold_of_doc = [fold_of.get(text_fingerprint(doc.text), -1) for doc in docs]
        retraining = Retraining.of(nlp, docs, training.fold_steps, training.seed)
        untrained = retraining.untrained()
        _check_mentions(batch, untrained.stages.reader, docs)
        pipeline = pipeline_fingerprint(linker, count)
        encoder = {
            "training.folds": training.folds,
            "training.seed of the cross-encoder": training.seed,
            "the first weights": untrained.encoder.fingerprint,
            **retraining.settings,
        }
        folds: List[Fold] = []
        for fold in range(training.folds):
            held_out = [doc for doc, own in zip(docs, fold_of_doc) if own == fold]
            others = [doc for doc, own in zip(docs, fold_of_doc) if own != fold]
            file = CandidatesFile(
                folder / f"candidates-{fold + 1}.bin",
                linker.kb,
                pipeline,
                f"{fingerprint_of_docs(held_out)} {fingerprint_of_docs(others)}",
                encoder,
            )
            retraining.check_batches(others)
            # A file of other settings is refused before the first fold is trained.
            file.find()
            rows = np.flatnonzero(fold_of_row == fold)
            folds.append(Fold(fold + 1, rows, held_out, others, file))
        return cls(linker, batch, folds, retraining, count, report)

    def candidates(self, weight: float) -> TrainingCandidates:
        """The candidates of the annotated mentions.

        weight: That of the log-odds by vectors of unseen mentions. The log-odds of each fold are
            scaled so that it is theirs too.
        RETURNS: m rows.
        """
        tables = [self._of_fold(fold) for fold in self.folds]
        scaled = [_scaled(table, fit_weight(table) / weight) for table in tables]
        rows = np.concatenate([fold.rows for fold in self.folds])
        return _concat(scaled).take(np.argsort(rows))

    def _of_fold(self, fold: Fold) -> TrainingCandidates:
        """The candidates of the mentions of a fold."""
        table = fold.file.find_or_make(partial(self._make, fold), self.report)
        # The encoder of the fold is not in use any more.
        release_memory()
        return table

    def _make(self, fold: Fold) -> TrainingCandidates:
        """Train an encoder, and make the candidates of a fold."""
        name, start = f"fold {fold.number} of {len(self.folds)}", time.perf_counter()
        steps, count = self.retraining.steps, len(fold.others)
        self.report(f"{name}: training an encoder on {count} documents for {steps} steps")
        with self.retraining.trained(fold.others) as trained:
            stages = replace(trained.stages, calibration=self.linker.calibration)
            mentions = annotated_mentions(stages, fold.held_out)
            table = make_candidates(stages, mentions, self.n_candidates)
        self.report(f"{name}: done after {time.perf_counter() - start:.0f} s")
        return table


def split_documents(keys: Sequence[str], folds: int, seed: int) -> Dict[str, int]:
    """The fold of each document, from 0, by chance; folds have nearly as many documents each.

    keys: The keys of documents; one that repeats is one document.
    folds: The number of folds.
    seed: Determines the folds.

    Raises ValueError where there are fewer documents than folds.
    """
    distinct = list(dict.fromkeys(keys))
    if len(distinct) < folds:
        raise ValueError(Errors.E884.format(folds=folds, count=len(distinct)))
    numbers = np.random.default_rng(seed).permutation(len(distinct)) % folds
    return dict(zip(distinct, numbers.tolist()))


def _check_mentions(batch: MentionBatch, reader: MentionReader, docs: Sequence[Doc]) -> None:
    """Raise ValueError where a linker of the config finds other mentions than the pipeline's own.

    batch: What the pipeline's linker finds.
    reader: That of the other one.
    docs: The annotated documents.
    """
    keys = [record.key for record in batch.records]
    groups = (spans for part in annotated_batches(reader, docs) for spans in part)
    other_keys = [key for spans in groups for key in keys_of(spans)]
    if keys != other_keys:
        raise ValueError(Errors.E888.format(own=len(keys), other=len(other_keys)))


def _scaled(table: TrainingCandidates, factor: float) -> TrainingCandidates:
    """The same candidates with their log-odds times a factor."""
    times = np.float32(factor)
    return replace(table, scores=table.scores * times, gold_scores=table.gold_scores * times)


def _concat(tables: Sequence[TrainingCandidates]) -> TrainingCandidates:
    """The rows of tables one after the other, with the recall of all."""
    candidates = TopK.concat([TopK(table.candidates, table.scores) for table in tables])
    gold = TopK.concat([TopK(table.gold, table.gold_scores) for table in tables])
    known = [(table.gold >= 0).any(axis=1).sum() for table in tables]
    recall = np.average([table.recall for table in tables], axis=0, weights=np.maximum(known, 1))
    return TrainingCandidates(candidates.ids, candidates.scores, gold.ids, gold.scores, recall)
