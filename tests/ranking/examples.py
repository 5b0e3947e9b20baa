"""Batches, neighbours and rankings made by hand."""

import numpy as np

from spacy_arbo_el import MentionBatch, MentionRecord, Neighbours, SpanInputs, TopK
from spacy_arbo_el.ranking.features import COMPARED, FEATURES
from spacy_arbo_el.ranking.ranker_weights import PRESENCE_FEATURES, RankerWeights
from spacy_arbo_el.ranking.ranking import RankedMentions, rank_by_best_evidence


def weights_of(presence=None, offset=5.0, coverage=0.5, **weights):
    """Weights that add up features, and leave log-odds as they are.

    presence: Weights of the evidence that any candidate is right, by name.
    """
    presence = presence or {}
    width = 2 * len(COMPARED)
    linear = np.zeros(width, np.float32)
    linear[: len(COMPARED)] = [weights.get(FEATURES[column], 0.0) for column in COMPARED]
    none = np.zeros((width, 1), np.float32)
    by_evidence = [presence.get(name, 0.0) for name in PRESENCE_FEATURES]
    return RankerWeights(
        mean=np.zeros(width, np.float32),
        spread=np.ones(width, np.float32),
        linear=linear,
        hidden=none,
        bias=none[0],
        out=none[0],
        curve=np.array([1.0, *by_evidence, 0.0, offset], np.float32),
        coverage=coverage,
    )


def top_k(ids, scores):
    """Lists of ids, -1 for none, with the score of each."""
    ids = np.array(ids, dtype=np.int64)
    scores = np.where(ids >= 0, np.array(scores, dtype=np.float32), np.float32(-np.inf))
    return TopK(ids, scores)


def nothing(count):
    return TopK.empty(count)


def batch_of(count, vectors=None):
    """Mentions of one document."""
    records = [MentionRecord(("doc", i, i + 1), (), f"mention {i}") for i in range(count)]
    zeros = np.zeros(count, dtype=np.int64)
    return MentionBatch(records, SpanInputs.empty(), zeros, zeros.astype(np.uint64), 1, vectors)


def decide(inference, neighbours, calibration, min_logit, vectors=None):
    """What a procedure decides with candidates ranked by their best evidence."""
    ranking = rank_by_best_evidence(neighbours, calibration, 64)
    return inference.decide(ranked(neighbours, ranking, vectors), calibration, min_logit)


def ranked(neighbours, ranking, vectors=None):
    """Ranked mentions of one document, none of which was corrected."""
    count = len(neighbours)
    batch = batch_of(count, vectors)
    return RankedMentions(batch, neighbours, ranking, np.zeros(count, dtype=bool))


def neighbours_of(entities, exemplars=None, owners=None, mentions=None):
    count = len(entities)
    exemplars = nothing(count) if exemplars is None else exemplars
    owners = np.full(exemplars.ids.shape, -1) if owners is None else np.array(owners)
    mentions = nothing(count) if mentions is None else mentions
    return Neighbours(entities, exemplars, mentions, owners)
