"""The share of mentions whose entity a list has, estimated from mentions without labels.

A ranker gives the probability that the list has a mention's entity, for the share of such mentions
among those that it was fitted on. In other texts, or for another list, that share is another one.
The likelihoods of the evidence stay, so the share is estimated by expectation maximization (Fellegi
and Sunter, 1969, for the linkage of records; Saerens, Latinne and Decaestecker, 2002, for the
output of classifiers), and the probabilities are moved to it.
"""

from typing import NamedTuple

import numpy as np

from .calibration import probability

# The prior counts as so many mentions, of which half have their entity in the list. It keeps the
# share from 0 and 1.
PRIOR_MENTIONS = 4.0
MAX_STEPS = 1000
TOLERANCE = 1e-7


class ShareEstimate(NamedTuple):
    """An estimated share.

    share: Between 0 and 1, both excluded.
    standard_error: Of the share, by documents: mentions of one document are alike.
    """

    share: float
    standard_error: float


def shift_between(fitted: float, target: float) -> float:
    """The shift of log-odds from one share of mentions in the list to another."""
    return float(np.log(target / (1 - target)) - np.log(fitted / (1 - fitted)))


def estimate_share(log_odds: np.ndarray, fitted: float, documents: np.ndarray) -> ShareEstimate:
    """Estimate the share of mentions whose entity the list has.

    log_odds: (m,) float, that the list has each mention's entity, for the share ``fitted``.
    fitted: The share that the log-odds are for.
    documents: (m,) int64, the document of each mention.
    """
    # The log of how many times as likely the evidence is for a mention whose entity is there.
    ratios = log_odds.astype(np.float64) - np.log(fitted / (1 - fitted))
    share = 0.5
    for _ in range(MAX_STEPS):
        posterior = probability(ratios + np.log(share / (1 - share)))
        new = (posterior.sum() + PRIOR_MENTIONS / 2) / (len(ratios) + PRIOR_MENTIONS)
        change = abs(new - share)
        share = float(new)
        if change < TOLERANCE:
            break
    return ShareEstimate(share, _standard_error(ratios, share, documents))


def _standard_error(ratios: np.ndarray, share: float, documents: np.ndarray) -> float:
    """The standard error of a share: the sandwich over documents, with the prior's information."""
    posterior = probability(ratios + np.log(share / (1 - share)))
    # The derivative of each mention's log-likelihood by the share.
    slopes = posterior / share - (1 - posterior) / (1 - share)
    prior = PRIOR_MENTIONS / 2 * (1 / share**2 + 1 / (1 - share) ** 2)
    information = float((slopes**2).sum()) + prior
    _, number = np.unique(documents, return_inverse=True)
    by_document = np.bincount(number, weights=slopes)
    return float(np.sqrt((by_document**2).sum() + prior) / information)
