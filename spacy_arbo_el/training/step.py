"""A training step from nodes to gradients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from thinc.api import Model
from torch import Tensor
from torch.nn.functional import normalize

from ..encoders.inputs import SpanInputs
from ..retrieval.similarity import Similarity
from .losses import LearnsScale, Loss


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
    text_vectors, backprop_texts = _begin_update(
        model.get_ref("entity"), text_inputs.take(texts)
    )
    mention_spans = mention_inputs.take(mentions)
    mention_vectors, backprop_mentions = _begin_update(
        model.get_ref("mention"), mention_spans
    )
    raw = torch.from_numpy(
        np.concatenate([text_vectors, mention_vectors])
    ).requires_grad_()
    vectors = normalize(raw, eps=1e-12) if similarity.normalize else raw
    losses = [_loss_of(term, model, nodes, vectors, similarity) for term in terms]
    total = torch.stack(losses).sum()
    total.backward()
    gradient: Any = raw.grad
    backprop_texts(gradient[:n_texts].numpy())
    backprop_mentions(gradient[n_texts:].numpy())
    return total.item(), EncodedBatch(texts, text_vectors, mentions, mention_vectors)


def _loss_of(
    term: Term,
    model: Model,
    nodes: np.ndarray,
    vectors: Tensor,
    similarity: Similarity,
) -> Tensor:
    """The weighted mean loss of an objective.

    nodes: (n,) int64, ascending.
    vectors: (n, width) float32, prepared.
    """
    batch = term.batch
    queries = vectors[np.searchsorted(nodes, batch.queries)]
    targets = vectors[np.searchsorted(nodes, batch.targets)]
    positive = np.zeros(batch.targets.shape, dtype=bool)
    positive[:, : batch.positives.shape[1]] = True
    similarities = _paired(similarity, queries, targets).double()
    logits = _logits(term, model, similarities)
    valid = torch.from_numpy(batch.targets >= 0)
    return term.weight * term.loss(logits, torch.from_numpy(positive), valid).mean()


def _paired(similarity: Similarity, queries: Tensor, targets: Tensor) -> Tensor:
    """As ``Similarity.paired``."""
    if similarity.metric == "ip":
        return torch.einsum("nd,nkd->nk", queries, targets)
    return -(queries[:, None] - targets).square().sum(2)


def _logits(term: Term, model: Model, similarities: Tensor) -> Tensor:
    loss = term.loss
    if isinstance(loss, LearnsScale):
        return loss.logits(model, term.number, similarities)
    return loss.scale * similarities + loss.offset


def _begin_update(
    tower: Model, inputs: SpanInputs
) -> tuple[np.ndarray, Callable[[np.ndarray], None]]:
    if not len(inputs):
        return np.zeros(
            (0, tower.get_dim("nO")), dtype=np.float32
        ), lambda d_vectors: None
    ops: Any = tower.ops
    vectors, backprop = tower.begin_update(inputs)
    return ops.to_numpy(vectors), lambda d_vectors: backprop(ops.asarray2f(d_vectors))
