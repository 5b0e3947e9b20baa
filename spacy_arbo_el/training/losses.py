"""Losses: pure functions over arrays of logits, with their gradients.

A loss takes logits (b, n), which of them are positives (b, n) bool and which are there at all
(b, n) bool, and gives the loss of each query (b,) and its gradient (b, n). A query without a
positive, or without anything to tell it from, has loss 0.
"""

from typing import Callable, Tuple

import numpy as np
from spacy.util import registry

Loss = Callable[[np.ndarray, np.ndarray, np.ndarray], Tuple[np.ndarray, np.ndarray]]


def softmax_positive_negative(
    logits: np.ndarray, positive: np.ndarray, there: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """Arborescence paper, §2.3: ``-sum log p`` over positives ``- sum log(1 - p)`` over negatives.

    p is the softmax over all of a query's edges. Computed in log space: the term of a
    negative whose p is nearly 1 stays exact, and the gradient never exceeds the number of edges.
    """
    there = there & (positive & there).any(axis=1, keepdims=True)
    positive, negative = positive & there, there & ~positive
    scores = np.where(there, logits, -np.inf).astype(np.float64)
    top = np.max(scores, axis=1, keepdims=True, initial=-np.inf)
    scores = scores - np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    log_rest = _log_of_the_others(log_p)
    losses = -np.where(positive, log_p, 0.0).sum(axis=1)
    losses -= np.where(negative, log_rest, 0.0).sum(axis=1)
    p = np.where(there, np.exp(log_p), 0.0)
    # p_j * p_m / (1 - p_m) for all pairs j != m with m a negative; each is at most 1.
    with np.errstate(invalid="ignore"):
        pairs = log_p[:, :, None] + (log_p - log_rest)[:, None, :]
    keep = negative[:, None, :] & there[:, :, None] & ~np.eye(logits.shape[1], dtype=bool)
    pushed = np.exp(np.where(keep, pairs, -np.inf)).sum(axis=2)
    count = positive.sum(axis=1, keepdims=True)
    gradient = count * p - positive + np.where(negative, p, 0.0) - pushed
    return losses, np.where(there, gradient, 0.0)


def _log_of_the_others(log_p: np.ndarray) -> np.ndarray:
    """(b, n) log p -> log(1 - p), as the log of the sum over all others."""
    size = log_p.shape[1]
    others = np.where(np.eye(size, dtype=bool), -np.inf, log_p[:, None, :])
    top = others.max(axis=2, initial=-np.inf)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return safe + np.log(np.exp(others - safe[:, :, None]).sum(axis=2))


def cross_entropy(
    logits: np.ndarray, positive: np.ndarray, there: np.ndarray
) -> Tuple[np.ndarray, np.ndarray]:
    """Softmax cross-entropy: minus the log of the positives' share of the probability."""
    there = there & (positive & there).any(axis=1, keepdims=True)
    all_scores = np.where(there, logits, -np.inf).astype(np.float64)
    own_scores = np.where(positive & there, all_scores, -np.inf)
    total, share = _softmax(all_scores)
    hits, inside = _softmax(own_scores)
    some = there.any(axis=1)
    losses = np.where(some, np.where(some, total, 0.0) - np.where(some, hits, 0.0), 0.0)
    return losses, share - inside


def _softmax(scores: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """(b, n) scores -> (b,) log of the sum of exponentials, (b, n) softmax; 0 for rows of -inf."""
    top = scores.max(axis=1, keepdims=True, initial=-np.inf)
    exp = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    total = exp.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_total = (top + np.log(total))[:, 0]
    return log_total, exp / np.where(total > 0, total, 1.0)


@registry.misc("spacy-arbo-el.SoftmaxPositiveNegative.v1")
def make_softmax_positive_negative() -> Loss:
    """The loss of the arborescence paper, §2.3."""
    return softmax_positive_negative


@registry.misc("spacy-arbo-el.CrossEntropy.v1")
def make_cross_entropy() -> Loss:
    """Softmax cross-entropy over the positive and the negatives."""
    return cross_entropy
