"""Training of a cross-encoder for a trained linker. Its encoder stays as it is.

It is no part of ``spacy train``: that loop trains the model of a component, which is the encoder
here, and takes no settings for a component that comes from a trained pipeline.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import (
    Adam,
    Config,
    Optimizer,
    fix_random_seed,
    set_dropout_rate,
    warmup_linear,
)

from ....base.arrays import Rows
from ....base.errors import Errors
from ....base.settings import check_count, check_part, check_positive, check_share
from ....encoders.inputs import SpanInputs
from ....linker import ArboLinker, find_linker, name_of_linker
from ....linking.stages import LinkingStages
from ....mentions.labels import annotated_batches
from ....mentions.record import MentionBatch
from ....ranking.ranking import RankingContext
from ....training.trainer import TrainingDiverged
from ..errors import PaperMessages
from .candidates import TrainingCandidates, make_candidates
from .cross_encoder import CrossEncoder
from .pair_scorer import PairScorer

_CONFIG = Path(__file__).with_name("reranker.cfg")
# Scalings of the learning rate, as in training.cfg.
WEIGHT_DECAY = 0.01
LARGEST_GRADIENT = 1.0
# The smallest and the largest weight of the retriever's log-odds.
WEIGHTS = (0.01, 100.0)
NAME = "cross-encoder"
# Steps between lines of progress.
LINE = 20


@registry.misc("spacy-arbo-el.RerankerTraining.v1")
@dataclass(frozen=True)
class RerankerTraining:
    """Settings of a cross-encoder's training.

    Use it in the config of ``arbo rerank``::

        [training]
        @misc = "spacy-arbo-el.RerankerTraining.v1"
        max_epochs = 2

    n_candidates: Among how many candidates of a mention the gold entity is to be found. If it is
        not among them, it takes the place of the last one.
    residual: Whether the model learns what to add to the retriever's log-odds of a candidate,
        so that it begins near their order. False for separate scores, as in the paper.
    sure: Mentions whose gold entity has at least this probability for the retriever are not
        trained on,
        since there is little to add. 1.0 trains on all. Without ``residual``, it has no effect.
    max_epochs: How often each mention is trained on.
    batch_size: The number of mentions in a step, each with all its candidates.
    learn_rate: The highest learning rate. It rises from 0 and falls to 0 again, in straight lines.
    warmup: The share of the steps in which it rises.
    dropout: The share of activations that are left out in training.
    seed: Determines the first weights, the order of mentions, and dropout.
    """

    n_candidates: int = 8
    residual: bool = True
    sure: float = 0.95
    max_epochs: int = 2
    batch_size: int = 16
    learn_rate: float = 5e-5
    warmup: float = 0.1
    dropout: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("training.n_candidates", self.n_candidates, 2)
        check_share("training.sure", self.sure)
        check_count("training.max_epochs", self.max_epochs, 1)
        check_count("training.batch_size", self.batch_size, 1)
        check_positive("training.learn_rate", self.learn_rate)
        check_share("training.dropout", self.dropout)
        check_part("training.warmup", self.warmup)
        check_count("training.seed", self.seed)

    def optimizer(self, steps: int) -> Optimizer:
        """The optimizer of a run of so many steps."""
        rate: Any = warmup_linear(
            self.learn_rate, max(int(self.warmup * steps), 1), steps + 1
        )
        return Adam(
            rate, L2=WEIGHT_DECAY, L2_is_weight_decay=True, grad_clip=LARGEST_GRADIENT
        )

    def order(self, count: int, epoch: int) -> list[np.ndarray]:
        """The mentions of each step of an epoch. count: How many there are."""
        order = np.random.default_rng([self.seed, epoch]).permutation(count)
        return np.split(order, range(self.batch_size, count, self.batch_size))


@dataclass(frozen=True)
class LabelledMentions(Rows):
    """Mentions with their candidates, for training or evaluation."""

    batch: MentionBatch
    table: TrainingCandidates

    def __len__(self) -> int:
        return len(self.batch)


@dataclass(frozen=True)
class RerankerTrainer:
    """Trains the scorer of a cross-encoder, in place.

    reranker: The cross-encoder, with an untrained scorer.
    weight: That of the retriever's log-odds, which are added to the scores; 0 for none.
    """

    reranker: CrossEncoder
    context: RankingContext
    weight: float
    training: RerankerTraining
    report: Callable[[str], None] = print

    @property
    def scorer(self) -> PairScorer:
        """The scorer to train."""
        assert self.reranker.scorer is not None
        return self.reranker.scorer

    def train(self, train: LabelledMentions, dev: LabelledMentions) -> None:
        """Learn from some mentions, and evaluate on others after each epoch."""
        training = self.training
        epochs = [
            training.order(len(train), epoch) for epoch in range(training.max_epochs)
        ]
        ends = np.cumsum([len(epoch) for epoch in epochs])
        optimizer = training.optimizer(int(ends[-1]))
        fix_random_seed(training.seed)
        losses = []
        start = time.perf_counter()
        steps = [rows for epoch in epochs for rows in epoch]
        for number, rows in enumerate(steps, 1):
            losses.append(self.step(train.take(rows)))
            self.scorer.model.finish_update(optimizer)
            optimizer.step_schedules()
            is_end = number in ends
            if is_end or len(losses) == LINE:
                seconds = time.perf_counter() - start
                line = f"step {number}/{len(steps)}, loss {np.mean(losses):.4f}, {seconds:.0f} s"
                losses = []
                if is_end:
                    line += f", dev accuracy {self.accuracy(dev):.4f}"
                self.report(line)

    def step(self, mentions: LabelledMentions) -> float:
        """Compute the gradients of some mentions.

        RETURNS: The mean cross entropy of a softmax over the candidates of a mention, in which
            several gold entities share the probability.
        """
        set_dropout_rate(self.scorer.model, self.training.dropout)
        scores, backprop = self.scorer.begin_update(self._pairs(mentions))
        loss, gradient = set_loss(
            self._ranking(mentions, scores), mentions.table.correct
        )
        if not np.isfinite(loss):
            raise TrainingDiverged(Errors.E607.format(name=NAME, loss=loss))
        backprop(gradient[mentions.table.candidates >= 0])
        return loss

    def accuracy(self, mentions: LabelledMentions) -> float:
        """Share of mentions whose best candidate is gold."""
        scores = self.scorer(self._pairs(mentions))
        best = self._ranking(mentions, scores).argmax(axis=1)[:, None]
        return float(np.take_along_axis(mentions.table.correct, best, axis=1).mean())

    def _pairs(self, mentions: LabelledMentions) -> SpanInputs:
        return self.reranker.pairs(
            mentions.batch, mentions.table.candidates, self.context
        )

    def _ranking(self, mentions: LabelledMentions, scores: np.ndarray) -> np.ndarray:
        """(m, k) float32, what ranks the candidates; -inf for none. scores: (p,), of the pairs."""
        valid = mentions.table.candidates >= 0
        ranking = np.full(valid.shape, -np.inf, dtype=np.float32)
        ranking[valid] = scores
        if self.weight:
            ranking[valid] += self.weight * mentions.table.scores[valid]
        return ranking


def set_loss(scores: np.ndarray, correct: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean cross entropy over candidate sets, with gradient. The softmax is over the candidates of
    each mention.

    scores: (m, k) float, -inf for no candidate.
    correct: (m, k) bool, at least one in each row; they share the probability.
    RETURNS: The loss, and its gradient with respect to the scores, in their shape and type.
    """
    x = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    is_correct = torch.from_numpy(correct)
    log_p = torch.where(is_correct, x.log_softmax(1), 0.0)
    loss = -(log_p.sum(1) / is_correct.sum(1)).mean()
    (gradient,) = torch.autograd.grad(loss, x)
    return loss.item(), gradient.numpy().astype(scores.dtype)


def fit_weight(table: TrainingCandidates) -> float:
    """Fit the weight of the retriever's log-odds in a softmax over candidates.

    It is drawn to 1.0, which is what it is where there is nothing to learn from.

    table: Candidates of mentions that the encoder was not trained on.
    """
    from scipy.optimize import minimize_scalar

    valid = table.candidates >= 0
    rows = np.flatnonzero(table.correct.any(axis=1) & (valid.sum(axis=1) > 1))
    if not len(rows):
        return 1.0
    scores = np.where(valid, table.scores, -np.inf)[rows].astype(np.float64)
    correct = table.correct[rows]

    def loss(log_weight: float) -> float:
        return set_loss(np.exp(log_weight) * scores, correct)[0] + log_weight**2 / len(
            rows
        )

    minimum = minimize_scalar(loss, bounds=tuple(np.log(WEIGHTS)), method="bounded")
    return float(np.exp(minimum.x))


def train_reranker(
    nlp: Language,
    config: Config,
    train: Sequence[Doc],
    dev: Sequence[Doc],
    report: Callable[[str], None] = print,
) -> CrossEncoder:
    """Train a cross-encoder for a trained pipeline. How its scores count is not fitted yet.

    nlp: The encoder of its linker stays as it is.
    config: With the sections ``reranker`` and ``training``, and no variables.
    train: Annotated documents to learn from.
    dev: Annotated documents to evaluate on after each epoch.
    """
    linker = find_linker(nlp)
    linker.encoder.require_ready(linker.name)
    resolved = registry.resolve(
        {name: config[name] for name in ("reranker", "training")}
    )
    reranker = resolved["reranker"]
    training = resolved["training"]
    if not isinstance(reranker, CrossEncoder):
        raise PaperMessages.E879(found=type(reranker).__name__)
    source = linker.encoder.model.get_ref("mention")
    fingerprint = linker.encoder.fingerprint
    scorer = PairScorer.create(source, reranker.size, fingerprint, training.seed)
    stages = linker.stages
    with linker.datastore.snapshot():
        held_out = labelled_mentions(stages, dev, training.n_candidates)
        learned = labelled_mentions(stages, train, training.n_candidates)
        weight = fit_weight(held_out.table) if training.residual else 0.0
        chosen = mentions_to_train_on(learned, weight, training)
        report(f"Training on {len(chosen)} of {len(learned)} mentions")
        curves = linker.calibration.times(weight) if training.residual else None
        reranker = replace(reranker, scorer=scorer, vector_curves=curves)
        trainer = RerankerTrainer(reranker, stages.context, weight, training, report)
        trainer.train(chosen, held_out)
    return reranker


def labelled_mentions(
    stages: LinkingStages, docs: Sequence[Doc], n_candidates: int
) -> LabelledMentions:
    """The annotated mentions of documents with their candidates."""
    batches = [stages.read(spans) for spans in annotated_batches(stages.reader, docs)]
    return LabelledMentions(
        MentionBatch.concat(batches), make_candidates(stages, batches, n_candidates)
    )


def read_config(path: Path | None, overrides: dict[str, Any]) -> Config:
    """The config of a training; by default that of the package."""
    return Config().from_disk(path or _CONFIG, overrides=overrides)


def set_reranker(
    nlp: Language, linker: ArboLinker, reranker: CrossEncoder, config: Config
) -> None:
    """Install a trained cross-encoder in a pipeline's linker.

    config: The section that describes it; it becomes part of the pipeline's config.
    """
    linker.reranker = reranker
    nlp.get_pipe_config(name_of_linker(nlp, linker))["reranker"] = config


def mentions_to_train_on(
    learned: LabelledMentions, weight: float, training: RerankerTraining
) -> LabelledMentions:
    """Select annotated mentions whose gold entity is a candidate.

    Of a document's mentions with the same string and entities, the first is taken. A model that
    learns what to add to the log-odds is not trained where vectors are sure of the gold entity,
    since there is little to add. A model with separate scores learns from all.

    Raises ValueError if there are none.
    """
    rows, table = learned.table.with_gold()
    if not len(rows):
        raise PaperMessages.E878(count=len(learned))
    first = _first_of_each(learned.batch.take(rows))
    rows = rows[first]
    table = table.take(first)
    if training.residual and training.sure < 1.0:
        unsure = np.flatnonzero(table.gold_probability(weight) < training.sure)
        if not len(unsure):
            raise PaperMessages.E883(count=len(rows), sure=training.sure)
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
        first.setdefault(
            (record.key[0], record.normalized.lower(), record.kb_ids), place
        )
    return np.array(list(first.values()), dtype=np.int64)
