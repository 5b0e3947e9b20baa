"""One update: distinct sequences in, gradients out."""

from typing import NamedTuple, Tuple

import numpy as np
from scipy.sparse import csr_matrix
from thinc.api import Model

from ..encoders.sequences import Sequences
from ..retrieval.similarity import Similarity
from .losses import Loss


class Batch(NamedTuple):
    """A batch as nodes (texts first, then mentions).

    queries: (b,) int64 nodes of the mentions that learn.
    positives, negatives: (b, p) and (b, k) int64 nodes, -1 for none.
    """

    queries: np.ndarray
    positives: np.ndarray
    negatives: np.ndarray


class Encoded(NamedTuple):
    """What was encoded: rows and raw vectors (n, width), of texts and of mentions."""

    texts: np.ndarray
    text_vectors: np.ndarray
    mentions: np.ndarray
    mention_vectors: np.ndarray


def train_step(
    model: Model,
    batch: Batch,
    text_sequences: Sequences,
    mention_sequences: Sequences,
    similarity: Similarity,
    loss: Loss,
) -> Tuple[float, Encoded]:
    """Encode each distinct sequence of the batch once, and bring back the loss's gradient.

    RETURNS: the mean loss of the queries and what was encoded. Gradients are
        left in the model, for ``finish_update``.
    """
    targets = np.concatenate([batch.positives, batch.negatives], axis=1)
    there = targets >= 0
    used, place = np.unique(np.concatenate([batch.queries, targets[there]]), return_inverse=True)
    split = int(np.searchsorted(used, len(text_sequences)))
    texts, mentions = used[:split], used[split:] - len(text_sequences)
    text_vectors, backprop_texts = _begin(model.get_ref("entity"), text_sequences.take(texts))
    mention_vectors, backprop_mentions = _begin(
        model.get_ref("mention"), mention_sequences.take(mentions)
    )
    raw = np.concatenate([text_vectors, mention_vectors])
    vectors = similarity.prepare(raw)

    query = place[: len(batch.queries)]
    target = np.zeros(targets.shape, dtype=np.int64)
    target[there] = place[len(batch.queries) :]
    left, right = vectors[query], vectors[target]
    logits = similarity.scale * similarity.paired(left, right)
    positive = np.zeros(targets.shape, dtype=bool)
    positive[:, : batch.positives.shape[1]] = True
    losses, d_logits = loss(logits, positive, there)

    d_similarity = (similarity.scale * d_logits / len(losses)).astype(np.float32)
    d_left, d_right = similarity.paired_backward(left, right, d_similarity)
    gradients = np.concatenate([d_left, d_right[there]])
    d_vectors = _sum_by_node(np.concatenate([query, target[there]]), gradients, len(used))
    d_raw = similarity.prepare_backward(raw, d_vectors)
    backprop_texts(d_raw[:split])
    backprop_mentions(d_raw[split:])
    return float(losses.mean()), Encoded(texts, text_vectors, mentions, mention_vectors)


def _begin(tower: Model, sequences: Sequences):
    if not len(sequences):
        return np.zeros((0, tower.get_dim("nO")), dtype=np.float32), lambda d: None
    vectors, backprop = tower.begin_update(sequences)
    return tower.ops.to_numpy(vectors), lambda d: backprop(tower.ops.asarray2f(d))


def _sum_by_node(node: np.ndarray, gradients: np.ndarray, nodes: int) -> np.ndarray:
    ones = np.ones(len(node), dtype=np.float32)
    sums = csr_matrix((ones, (node, np.arange(len(node)))), shape=(nodes, len(node)))
    return np.asarray(sums @ gradients, dtype=np.float32)
