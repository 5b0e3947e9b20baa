"""Losses over logits of queries and their targets, which are positives and negatives.

Logits are ``scale * similarity + offset``; a loss says with which scale and offset. It is called
with three tensors for ``b`` queries of ``n`` targets each:

logits: (b, n) float64.
positive: (b, n) bool, which targets are positives; the others are negatives.
valid: (b, n) bool, which targets exist; the others are padding.

It gives the loss of each query, (b,). PyTorch finds its gradient.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from spacy.util import registry
from thinc.api import Model
from torch import Tensor

from ..base.settings import check_positive

# The logit of what does not count. With infinite ones, some gradients would be no numbers.
LEAST = -1e30


@runtime_checkable
class Loss(Protocol):
    """See the head of this module."""

    @property
    def scale(self) -> float: ...

    @property
    def offset(self) -> float: ...

    def __call__(self, logits: Tensor, positive: Tensor, valid: Tensor) -> Tensor: ...


@runtime_checkable
class LearnsScale(Protocol):
    """A loss whose scale and offset are parameters of the dual encoder.

    number: Which objective of the sum it belongs to, whose parameters are apart from the others.
    """

    def attach(self, model: Model, number: int) -> None:
        """Add the parameters to the dual encoder, unless it has them."""
        ...

    def logits(self, model: Model, number: int, similarities: Tensor) -> Tensor:
        """The logits of similarities. Going back leaves the parameters' gradients in the model."""
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
    """The loss of the arborescence paper, §2.3.

    ``-sum log p`` over positives ``- sum log(1 - p)`` over negatives, p being the softmax over all
    targets of a query. It is computed in log space: the term of a negative whose p is nearly 1
    stays exact, and the gradient never exceeds the number of targets.

    The default. It suits positives that are mentions as well as entities, and hard negatives::

        [components.arbo_linker.objective.loss]
        @losses = "spacy-arbo-el.SoftmaxPositiveNegative.v1"
        scale = 20.0

    scale: Similarities are multiplied by this number to give logits (an inverse temperature). 20
        suits cosine similarity; use about 1 or less for inner products and squared distances.
    """

    def __call__(self, logits: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        valid = _with_positive(positive, valid)
        log_p = torch.where(valid, logits, LEAST).log_softmax(1)
        # The log of 1 - p is that of the sum over the other targets.
        itself = torch.eye(logits.shape[1], dtype=torch.bool)
        log_rest = torch.where(itself, LEAST, log_p[:, None, :]).logsumexp(2)
        terms = torch.where(positive, log_p, log_rest)
        return -torch.where(valid, terms, 0.0).sum(1)


@registry.losses("spacy-arbo-el.CrossEntropy.v1")
@dataclass(frozen=True)
class CrossEntropy(_Softmax):
    """Softmax cross-entropy over the positives and the negatives.

    The usual loss with in-batch negatives (``InBatchNegatives``). With several positives it is the
    marginal likelihood of BioSyn::

        [components.arbo_linker.objective.loss]
        @losses = "spacy-arbo-el.CrossEntropy.v1"
        scale = 20.0

    scale: Similarities are multiplied by this number to give logits (an inverse temperature). 20
        suits cosine similarity; use about 1 or less for inner products and squared distances.
    """

    def __call__(self, logits: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
        valid = _with_positive(positive, valid)
        scores = torch.where(valid, logits, LEAST)
        return scores.logsumexp(1) - torch.where(positive, scores, LEAST).logsumexp(1)


def _with_positive(positive: Tensor, valid: Tensor) -> Tensor:
    """The targets of queries that have a positive."""
    return valid & (positive & valid).any(1, keepdim=True)
