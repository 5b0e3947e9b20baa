"""Losses over logits of queries and their targets, which are positives and negatives.

Logits are ``scale * similarity + offset``; a loss says with which scale and offset. It is called
with three arrays for ``b`` queries of ``n`` targets each:

logits: (b, n) float32.
positive: (b, n) bool, which targets are positives; the others are negatives.
valid: (b, n) bool, which targets exist; the others are padding.

It gives the loss of each query, (b,), and its gradient with respect to the logits, (b, n).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from spacy.util import registry
from thinc.api import Model

from ..base.settings import check_positive

LossAndGradient = tuple[np.ndarray, np.ndarray]
Backward = Callable[[np.ndarray], np.ndarray]


@runtime_checkable
class Loss(Protocol):
    """See the head of this module."""

    @property
    def scale(self) -> float: ...

    @property
    def offset(self) -> float: ...

    def __call__(
        self, logits: np.ndarray, positive: np.ndarray, valid: np.ndarray
    ) -> LossAndGradient: ...


@runtime_checkable
class LearnsScale(Protocol):
    """A loss whose scale and offset are parameters of the dual encoder.

    number: Which objective of the sum it belongs to, whose parameters are apart from the others.
    """

    def attach(self, model: Model, number: int) -> None:
        """Add the parameters to the dual encoder, unless it has them."""
        ...

    def begin_update(
        self, model: Model, number: int, similarities: np.ndarray
    ) -> tuple[np.ndarray, Backward]:
        """Return logits, and a function from their gradient to that of the similarities.

        The function leaves the gradients of the parameters in the model.
        """
        ...


@dataclass(frozen=True)
class _Softmax:
    scale: float = 20.0

    # A softmax does not depend on it.
    offset = 0.0

    def __post_init__(self) -> None:
        check_positive("loss.scale", self.scale)


@registry.losses("spacy-arbo-el.SoftmaxPositiveNegative.v1")
@dataclass(frozen=True)
class SoftmaxPositiveNegative(_Softmax):
    """The loss of the arborescence paper, §2.3, see ``softmax_positive_negative``.

    The default. It suits positives that are mentions as well as entities, and hard negatives::

        [components.arbo_linker.objective.loss]
        @losses = "spacy-arbo-el.SoftmaxPositiveNegative.v1"
        scale = 20.0

    scale: Similarities are multiplied by this number to give logits (an inverse temperature). 20
        suits cosine similarity; use about 1 or less for inner products and squared distances.
    """

    def __call__(
        self, logits: np.ndarray, positive: np.ndarray, valid: np.ndarray
    ) -> LossAndGradient:
        return softmax_positive_negative(logits, positive, valid)


@registry.losses("spacy-arbo-el.CrossEntropy.v1")
@dataclass(frozen=True)
class CrossEntropy(_Softmax):
    """Softmax cross-entropy over the positives and the negatives, see ``cross_entropy``.

    The usual loss with in-batch negatives (``InBatchNegatives``). With several positives it is the
    marginal likelihood of BioSyn::

        [components.arbo_linker.objective.loss]
        @losses = "spacy-arbo-el.CrossEntropy.v1"
        scale = 20.0

    scale: Similarities are multiplied by this number to give logits (an inverse temperature). 20
        suits cosine similarity; use about 1 or less for inner products and squared distances.
    """

    def __call__(
        self, logits: np.ndarray, positive: np.ndarray, valid: np.ndarray
    ) -> LossAndGradient:
        return cross_entropy(logits, positive, valid)


def softmax_positive_negative(
    logits: np.ndarray, positive: np.ndarray, valid: np.ndarray
) -> LossAndGradient:
    """Loss of the arborescence paper, §2.3.

    ``-sum log p`` over positives ``- sum log(1 - p)`` over negatives.

    p is the softmax over all targets of a query. It is computed in log space: the term of a
    negative whose p is nearly 1 stays exact, and the gradient never exceeds the number of targets.

    RETURNS: The losses (b,) and the gradient with respect to the logits, (b, n).
    """
    valid = valid & (positive & valid).any(axis=1, keepdims=True)
    positive, negative = positive & valid, valid & ~positive
    scores = np.where(valid, logits, -np.inf).astype(np.float64)
    top = np.max(scores, axis=1, keepdims=True, initial=-np.inf)
    scores = scores - np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    log_rest = _log_one_minus(log_p)
    losses = -np.where(positive, log_p, 0.0).sum(axis=1)
    losses -= np.where(negative, log_rest, 0.0).sum(axis=1)
    p = np.where(valid, np.exp(log_p), 0.0)
    # p_j * p_m / (1 - p_m) for all pairs j != m with m a negative; each is at most 1.
    with np.errstate(invalid="ignore"):
        pairs = log_p[:, :, None] + (log_p - log_rest)[:, None, :]
    keep = negative[:, None, :] & valid[:, :, None] & ~np.eye(logits.shape[1], dtype=bool)
    push = np.exp(np.where(keep, pairs, -np.inf)).sum(axis=2)
    count = positive.sum(axis=1, keepdims=True)
    gradient = count * p - positive + np.where(negative, p, 0.0) - push
    return losses, np.where(valid, gradient, 0.0)


def _log_one_minus(log_p: np.ndarray) -> np.ndarray:
    """Convert log p to log(1 - p): (b, n). It is the log of the sum over the other targets."""
    size = log_p.shape[1]
    targets = np.where(np.eye(size, dtype=bool), -np.inf, log_p[:, None, :])
    top = targets.max(axis=2, initial=-np.inf)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return safe + np.log(np.exp(targets - safe[:, :, None]).sum(axis=2))


def cross_entropy(logits: np.ndarray, positive: np.ndarray, valid: np.ndarray) -> LossAndGradient:
    """Softmax cross-entropy: negative log probability of the positives.

    RETURNS: The losses (b,) and the gradient with respect to the logits, (b, n).
    """
    valid = valid & (positive & valid).any(axis=1, keepdims=True)
    scores = np.where(valid, logits, -np.inf).astype(np.float64)
    positive_scores = np.where(positive & valid, scores, -np.inf)
    log_total, p = softmax(scores)
    log_positive, p_positive = softmax(positive_scores)
    is_trained = valid.any(axis=1)
    losses = np.where(
        is_trained,
        np.where(is_trained, log_total, 0.0) - np.where(is_trained, log_positive, 0.0),
        0.0,
    )
    return losses, p - p_positive


def set_loss(scores: np.ndarray, correct: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean cross entropy over candidate sets, with gradient. The softmax is over the candidates of
    each mention.

    scores: (m, k) float, -inf for no candidate.
    correct: (m, k) bool, at least one in each row; they share the probability.
    RETURNS: The loss, and its gradient with respect to the scores, in their shape and type.
    """
    target = correct / correct.sum(axis=1, keepdims=True)
    log_total, probabilities = softmax(scores.astype(np.float64))
    loss = -(target * np.where(correct, scores - log_total[:, None], 0.0)).sum(axis=1).mean()
    return float(loss), ((probabilities - target) / len(scores)).astype(scores.dtype)


def softmax(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The softmax of scores (b, n) with log normalizers (b,); 0 for rows of -inf."""
    top = scores.max(axis=1, keepdims=True, initial=-np.inf)
    exp = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = exp.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_total = (top + np.log(total))[:, 0]
    return log_total, exp / np.where(total > 0, total, 1.0)
