"""Candidates of a mention that only the similarity of vectors tells apart.

"Smith" may be John Smith or Jane Smith: the words are in both names, and no description, exemplar
or frequency is in favour of either. An encoder prefers the one that it met more often, which says
little about the text.
"""

import numpy as np

from .features import CandidateFeatures
from .ranker_weights import Assessment

# Words that the names lack may be so large a part of the mention, such as a full stop.
NO_EXTRA = 0.05
# Numbers of features that differ by less are equal.
SAME = 0.01
# How far candidates that share a probability are apart, in log-odds, so that their order stays.
STEP = 1e-3


def share_among_equals(candidates: CandidateFeatures, assessment: Assessment) -> Assessment:
    """The same, but that candidates which words do not tell from the best one share its
    probability. Their order stays.
    """
    log_shares = assessment.log_shares
    equal = equal_to_best(candidates, log_shares)
    rows = np.flatnonzero(equal.sum(axis=1) > 1)
    if not len(rows):
        return assessment
    equal, own = equal[rows], log_shares[rows]
    count = equal.sum(axis=1, keepdims=True)
    total = np.logaddexp.reduce(np.where(equal, own, -np.inf), axis=1, keepdims=True)
    rank = np.argsort(np.argsort(-own, axis=1, kind="stable"), axis=1)
    shared = total - np.log(count) - STEP * rank
    return assessment.replaced(
        rows, Assessment(np.where(equal, shared, own), assessment.presence[rows])
    )


def equal_to_best(candidates: CandidateFeatures, log_shares: np.ndarray) -> np.ndarray:
    """Whether a candidate is the best one, or only vectors tell it from that.

    Both names have all words of the mention, and equally many others.

    log_shares: (m, c) float.
    RETURNS: (m, c) bool. No candidate is, where words or the context chose the best one.
    """
    rows = np.arange(len(candidates))
    best = log_shares.argmax(axis=1)
    words = candidates.column("words")
    partial = (
        candidates.valid
        & (words > 0)
        & (candidates.column("extra") <= NO_EXTRA)
        & (candidates.column("exact") == 0)
        & (candidates.column("ngrams") < 1 - SAME)
        & (candidates.column("opposed") == 0)
        & (candidates.column("has_exemplar") == 0)
        & (candidates.column("described") <= 0)
    )
    same_words = np.abs(words - words[rows, best][:, None]) < SAME
    prior = candidates.prior
    same_prior = np.abs(prior - prior[rows, best][:, None]) < SAME
    return partial & partial[rows, best][:, None] & same_words & same_prior
