"""Candidates of training mentions by encoders that were trained on other documents: cross-fitting.

A pipeline's own encoder has learned from the mentions of the training corpus. So it ranks their
candidates better than those of other documents, and many of the errors that are left are errors of
the annotation. A cross-encoder that learns from these candidates learns what it never meets later.

Here, the documents are split into folds. For each fold the encoder is trained anew on the documents
of the others, with the pipeline's own config, and gives the candidates of the fold's mentions.
"""

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Sequence, Tuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.loop import create_train_batches, train_while_improving
from spacy.util import load_model_from_config
from thinc.api import Config

from ..arrays import TopK
from ..errors import Errors
from ..kb.knowledge_base import ArboKB
from ..linker import ArboLinker, find_linker
from ..mentions.batch import MentionBatch
from ..mentions.records import text_fingerprint
from .candidates import (
    TrainingCandidates,
    annotated_mentions,
    make_candidates,
    pipeline_fingerprint,
    read_or_make_candidates,
)
from .loop import resolve_settings
from .reranker import RerankerTraining, fit_weight
from .resume import fingerprint_of_docs


@dataclass(frozen=True)
class CrossFitting:
    """Makes the candidates of training mentions by encoders of other documents.

    nlp: The trained pipeline, whose config the encoders are trained with. The curves of its linker
        turn similarities into log-odds.
    training: The settings, with at least 2 folds. Its seed determines them.
    folder: For the candidates of each fold, ``candidates-1.bin`` and so on. A fold whose file is
        there is not trained again.
    report: Takes the lines of the log.
    """

    nlp: Language
    training: RerankerTraining
    folder: Path
    report: Callable[[str], None] = print

    def candidates(
        self, docs: Sequence[Doc], batch: MentionBatch, weight: float
    ) -> TrainingCandidates:
        """The candidates of the annotated mentions of documents.

        docs: Annotated documents that the linker was trained on.
        batch: Their m annotated mentions.
        weight: That of the log-odds by vectors of unseen mentions. The log-odds of each fold are
            scaled so that it is theirs too.
        RETURNS: m rows.
        """
        folds, seed = self.training.folds, self.training.seed
        key_of_row = [record.key[0] for record in batch.records]
        fold_of = split_documents(key_of_row, folds, seed)
        fold_of_row = np.array([fold_of[key] for key in key_of_row])
        # Documents without annotated mentions are in no fold: all encoders are trained on them.
        fold_of_doc = [fold_of.get(text_fingerprint(doc.text), -1) for doc in docs]
        tables = []
        for fold in range(folds):
            held_out = [doc for doc, own in zip(docs, fold_of_doc) if own == fold]
            others = [doc for doc, own in zip(docs, fold_of_doc) if own != fold]
            table = self._of_fold(fold + 1, held_out, others)
            tables.append(_scaled(table, fit_weight(table) / weight))
        order = np.argsort(fold_of_row, kind="stable")
        return _concat(tables).take(np.argsort(order))

    def _of_fold(
        self, number: int, held_out: Sequence[Doc], others: Sequence[Doc]
    ) -> TrainingCandidates:
        """The candidates of the mentions of a fold.

        number: That of the fold, from 1.
        held_out: The documents of the fold.
        others: The documents to train on.
        """
        training, linker = self.training, find_linker(self.nlp)
        name, count = f"fold {number} of {training.folds}", training.n_candidates
        steps, share = training.fold_steps, len(others) / (len(others) + len(held_out))

        def make() -> TrainingCandidates:
            start = time.perf_counter()
            with trained_anew(self.nlp, linker, others, steps, share) as fold:
                stages = replace(fold.stages, calibration=linker.calibration)
                table = make_candidates(stages, annotated_mentions(stages, held_out), count)
            seconds = time.perf_counter() - start
            self.report(f"{name}: encoder trained on {len(others)} documents, {seconds:.0f} s")
            return table

        return read_or_make_candidates(
            self.folder / f"candidates-{number}.bin",
            linker.kb,
            f"{pipeline_fingerprint(linker, count)}, {name}, {steps} steps",
            f"{fingerprint_of_docs(held_out)} {fingerprint_of_docs(others)}",
            make,
            self.report,
        )


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


@contextmanager
def trained_anew(
    nlp: Language, linker: ArboLinker, docs: Sequence[Doc], steps: int, share: float
) -> Iterator[ArboLinker]:
    """A linker that is trained from the beginning, as a pipeline's config says.

    It has its averaged weights, where the optimizer keeps any, as long as the context lasts.

    nlp: The pipeline. Of its components, only the linker is trained.
    linker: Its linker. The other one gets a copy of its knowledge base, with the same positions.
    docs: The annotated documents to train on.
    steps: The number of steps; 0 for as many as the config says for all documents.
    share: The share of all documents that these are.

    Raises ValueError where neither ``steps`` nor the config says when training ends.
    """
    config = _config_of_linker(nlp, linker)
    training = resolve_settings(config["training"])
    epochs, most = _end_of_training(training, steps, share)
    anew = load_model_from_config(config, auto_fill=True)
    # A linker learns from references only.
    examples = [Example(doc, doc) for doc in docs]
    trained = find_linker(anew)
    trained.initialize(
        lambda: examples,
        nlp=anew,
        kb_loader=lambda vocab: ArboKB(vocab).from_bytes(linker.kb.to_bytes()),
    )
    updates = train_while_improving(
        anew,
        training["optimizer"],
        create_train_batches(anew, lambda _: examples, training["batcher"], epochs),
        lambda: (0.0, {}),
        dropout=training["dropout"],
        eval_frequency=training["eval_frequency"],
        accumulate_gradient=training["accumulate_gradient"],
        patience=0,
        max_steps=0,
        exclude=[],
        annotating_components=[],
        before_update=training["before_update"],
    )
    for _ in islice(updates, most or None):
        pass
    with anew.use_params(training["optimizer"].averages):
        yield trained


def _config_of_linker(nlp: Language, linker: ArboLinker) -> Config:
    """The config of a pipeline with nothing but its linker."""
    config = nlp.config.interpolate()
    config["nlp"]["pipeline"], config["nlp"]["disabled"] = [linker.name], []
    config["components"] = {linker.name: config["components"][linker.name]}
    return config


def _end_of_training(training: Dict[str, Any], steps: int, share: float) -> Tuple[int, int]:
    """How many epochs and steps a training has at most; 0 for any number.

    There are more epochs than the config has, so that there are as many steps.
    """
    if steps:
        return 0, steps
    epochs, most, patience = (training[name] for name in ("max_epochs", "max_steps", "patience"))
    epochs = max(epochs, 0)
    if patience or not (epochs or most):
        message = Errors.E885.format(patience=patience, epochs=epochs, steps=most)
        raise ValueError(message)
    return ceil(epochs / share), most


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
