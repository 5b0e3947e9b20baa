"""One training step: from the nodes of a batch to gradients in the encoders."""

from dataclasses import dataclass
from typing import Any, Callable, Tuple

import numpy as np
from scipy.sparse import csr_matrix
from thinc.api import Model

from ..encoders.inputs import SpanInputs
from ..retrieval.similarity import Similarity
from .losses import Loss


@dataclass(frozen=True)
class Batch:
    """A batch of mentions with their targets, all as nodes of ``GoldTable``.

    queries: (b,) int64, the mentions.
    positives: (b, p) int64, -1 for none.
    negatives: (b, k) int64, -1 for none.
    """

    queries: np.ndarray
    positives: np.ndarray
    negatives: np.ndarray


@dataclass(frozen=True)
class EncodedBatch:
    """What a step has encoded.

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
    batch: Batch,
    text_inputs: SpanInputs,
    mention_inputs: SpanInputs,
    similarity: Similarity,
    loss: Loss,
) -> Tuple[float, EncodedBatch]:
    """Compute the loss of a batch, and leave its gradients in the model for ``finish_update``.

    Each distinct node is one span, and each passage is encoded once, however many spans it has.

    model: The dual encoder.
    batch: The mentions and their targets.
    text_inputs: The spans of all texts.
    mention_inputs: The spans of all mentions.
    similarity: Compares mentions with their targets.
    loss: The loss over the similarities.
    RETURNS: The mean loss of the queries, and what was encoded.
    """
    targets = np.concatenate([batch.positives, batch.negatives], axis=1)
    valid = targets >= 0
    nodes, row = np.unique(np.concatenate([batch.queries, targets[valid]]), return_inverse=True)
    n_texts = int(np.searchsorted(nodes, len(text_inputs)))
    texts, mentions = nodes[:n_texts], nodes[n_texts:] - len(text_inputs)
    text_vectors, backprop_texts = _begin_update(model.get_ref("entity"), text_inputs.take(texts))
    mention_vectors, backprop_mentions = _begin_update(
        model.get_ref("mention"), mention_inputs.take(mentions)
    )
    raw = np.concatenate([text_vectors, mention_vectors])
    vectors = similarity.prepare(raw)

    query_row = row[: len(batch.queries)]
    target_row = np.zeros(targets.shape, dtype=np.int64)
    target_row[valid] = row[len(batch.queries) :]
    queries, target_vectors = vectors[query_row], vectors[target_row]
    positive = np.zeros(targets.shape, dtype=bool)
    positive[:, : batch.positives.shape[1]] = True
    losses, d_similarities = loss(similarity.paired(queries, target_vectors), positive, valid)

    d_mean = (d_similarities / len(losses)).astype(np.float32)
    d_queries, d_targets = similarity.paired_backward(queries, target_vectors, d_mean)
    d_vectors = _sum_by_row(
        np.concatenate([query_row, target_row[valid]]),
        np.concatenate([d_queries, d_targets[valid]]),
        len(nodes),
    )
    d_raw = similarity.prepare_backward(raw, d_vectors)
    backprop_texts(d_raw[:n_texts])
    backprop_mentions(d_raw[n_texts:])
    return float(losses.mean()), EncodedBatch(texts, text_vectors, mentions, mention_vectors)


def _begin_update(
    tower: Model, inputs: SpanInputs
) -> Tuple[np.ndarray, Callable[[np.ndarray], None]]:
    """The vectors of spans, and the function that takes their gradients back."""
    if not len(inputs):
        return np.zeros((0, tower.get_dim("nO")), dtype=np.float32), lambda d_vectors: None
    ops: Any = tower.ops
    vectors, backprop = tower.begin_update(inputs)
    return ops.to_numpy(vectors), lambda d_vectors: backprop(ops.asarray2f(d_vectors))


def _sum_by_row(rows: np.ndarray, gradients: np.ndarray, n_rows: int) -> np.ndarray:
    """Gradients (g, width) summed by the row that each belongs to: (n_rows, width) float32."""
    ones = np.ones(len(rows), dtype=np.float32)
    sums = csr_matrix((ones, (rows, np.arange(len(rows)))), shape=(n_rows, len(rows)))
    return np.asarray(sums @ gradients, dtype=np.float32)
