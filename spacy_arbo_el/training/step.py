"""A training step from nodes to gradients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from thinc.api import Model

from ..encoders.inputs import SpanInputs
from ..retrieval.similarity import Similarity
from .losses import Backward, LearnsScale, Loss


@dataclass(frozen=True)
class Batch:
    """Queries with their targets, all as nodes of ``GoldTable``.

    queries: (b,) int64.
    positives: (b, p) int64, -1 for none.
    negatives: (b, k) int64, -1 for none.
    """

    queries: np.ndarray
    positives: np.ndarray
    negatives: np.ndarray

    @property
    def targets(self) -> np.ndarray:
        """(b, p + k) int64, positives and negatives."""
        return np.concatenate([self.positives, self.negatives], axis=1)

    @property
    def nodes(self) -> np.ndarray:
        """All queries and targets, in any order, also several times."""
        targets = self.targets
        return np.concatenate([self.queries, targets[targets >= 0]])


@dataclass(frozen=True)
class Term:
    """One objective of a step.

    batch: Its queries and targets; at least one query.
    loss: Its loss over the logits.
    weight: What the mean loss of the queries is multiplied by.
    number: Which of the objectives it is.
    """

    batch: Batch
    loss: Loss
    weight: float = 1.0
    number: int = 0


@dataclass(frozen=True)
class EncodedBatch:
    """Encoded nodes of a step.

    texts: Rows of texts.
    text_vectors: (len(texts), width) float32, raw.
    mentions: Rows of mentions.
    mention_vectors: (len(mentions), width) float32, raw.
    """

    texts: np.ndarray
    text_vectors: np.ndarray
    mentions: np.ndarray
    mention_vectors: np.ndarray


def train_step(
    model: Model,
    terms: Sequence[Term],
    text_inputs: SpanInputs,
    mention_inputs: SpanInputs,
    similarity: Similarity,
) -> tuple[float, EncodedBatch]:
    """Compute a step's loss, leaving gradients in the model. ``finish_update`` uses them.

    Each distinct node is one span, and each passage is encoded once, however many spans it has and
    however many objectives use it.

    terms: The objectives with their queries and targets.
    text_inputs: The spans of all texts.
    mention_inputs: The spans of all mentions.
    RETURNS: The weighted sum of the objectives' mean losses, and what was encoded.
    """
    nodes = np.unique(np.concatenate([term.batch.nodes for term in terms]))
    n_texts = int(np.searchsorted(nodes, len(text_inputs)))
    texts = nodes[:n_texts]
    mentions = nodes[n_texts:] - len(text_inputs)
    text_vectors, backprop_texts = _begin_update(model.get_ref("entity"), text_inputs.take(texts))
    mention_spans = mention_inputs.take(mentions)
    mention_vectors, backprop_mentions = _begin_update(model.get_ref("mention"), mention_spans)
    raw = np.concatenate([text_vectors, mention_vectors])
    vectors = similarity.prepare(raw)
    total = 0.0
    d_vectors = np.zeros_like(vectors)
    for term in terms:
        loss, gradient = _loss_of(term, model, nodes, vectors, similarity)
        total += loss
        d_vectors += gradient
    d_raw = similarity.prepare_backward(raw, d_vectors)
    backprop_texts(d_raw[:n_texts])
    backprop_mentions(d_raw[n_texts:])
    return total, EncodedBatch(texts, text_vectors, mentions, mention_vectors)


def _loss_of(
    term: Term, model: Model, nodes: np.ndarray, vectors: np.ndarray, similarity: Similarity
) -> tuple[float, np.ndarray]:
    """Weighted mean loss of an objective, with gradient. The gradient is with respect to all
    vectors.

    nodes: (n,) int64, ascending.
    vectors: (n, width) float32, prepared.
    RETURNS: The loss, and (n, width) float32.
    """
    batch = term.batch
    targets = term.batch.targets
    valid = targets >= 0
    query_row = np.searchsorted(nodes, batch.queries)
    target_row = np.zeros(targets.shape, dtype=np.int64)
    target_row[valid] = np.searchsorted(nodes, targets[valid])
    queries = vectors[query_row]
    target_vectors = vectors[target_row]
    positive = np.zeros(targets.shape, dtype=bool)
    positive[:, : batch.positives.shape[1]] = True
    similarities = similarity.paired(queries, target_vectors)
    logits, backprop = _logits(term, model, similarities)
    losses, d_logits = term.loss(logits, positive, valid)
    d_similarities = backprop(d_logits * (term.weight / len(losses))).astype(np.float32)
    d_queries, d_targets = similarity.paired_backward(queries, target_vectors, d_similarities)
    gradient = _sum_by_row(
        np.concatenate([query_row, target_row[valid]]),
        np.concatenate([d_queries, d_targets[valid]]),
        len(nodes),
    )
    return term.weight * float(losses.mean()), gradient


def _logits(term: Term, model: Model, similarities: np.ndarray) -> tuple[np.ndarray, Backward]:
    loss = term.loss
    if isinstance(loss, LearnsScale):
        return loss.begin_update(model, term.number, similarities)
    return loss.scale * similarities + loss.offset, lambda d_logits: loss.scale * d_logits


def _begin_update(
    tower: Model, inputs: SpanInputs
) -> tuple[np.ndarray, Callable[[np.ndarray], None]]:
    if not len(inputs):
        return np.zeros((0, tower.get_dim("nO")), dtype=np.float32), lambda d_vectors: None
    ops: Any = tower.ops
    vectors, backprop = tower.begin_update(inputs)
    return ops.to_numpy(vectors), lambda d_vectors: backprop(ops.asarray2f(d_vectors))


def _sum_by_row(rows: np.ndarray, gradients: np.ndarray, n_rows: int) -> np.ndarray:
    """Sum gradients (g, width) by row: (n_rows, width) float32."""
    ones = np.ones(len(rows), dtype=np.float32)
    sums = csr_matrix((ones, (rows, np.arange(len(rows)))), shape=(n_rows, len(rows)))
    return np.asarray(sums @ gradients, dtype=np.float32)
