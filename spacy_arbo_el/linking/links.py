"""Decisions, in numbers -> links, in words."""

from typing import Dict, List, Sequence

import numpy as np

from ..annotations import Evidence, Link
from ..arrays import TopK
from ..calibration.logistic import probability
from ..inference.decisions import Decisions, Step
from ..kb.entity import NIL
from ..kb.knowledge_base import ArboKB
from ..mentions.records import MentionRecord
from ..retrieval.exemplars import ExemplarStore


def make_links(
    mentions: range,
    records: Sequence[MentionRecord],
    candidates: TopK,
    decisions: Decisions,
    cluster_ids: Sequence[str],
    kb: ArboKB,
    exemplars: ExemplarStore,
) -> List[Link]:
    """The ``Link`` of each of some of the m mentions.

    mentions: Which of them.
    records: All m mentions.
    candidates: Positions in the KB and log-odds, (m, c).
    decisions: Of all m mentions.
    cluster_ids: For each of the m mentions the id of its new entity, "" for linked ones.
    """
    part = slice(mentions.start, mentions.stop)
    entities = candidates.ids[part]
    counts = (entities >= 0).sum(axis=1).tolist()
    ranked_ids = kb.ids_of(entities).tolist()
    linked_ids = kb.ids_of(decisions.entities[part]).tolist()
    ranked_scores = np.round(probability(candidates.scores[part]), 4).tolist()
    link_scores = probability(decisions.logits[part]).tolist()
    links = []
    for row, (mention, count) in enumerate(zip(mentions, counts)):
        ids, scores = ranked_ids[row][:count], ranked_scores[row][:count]
        if not linked_ids[row]:
            best = scores[0] if scores else 0.0
            links.append(Link(NIL, best, ids, scores, (), cluster_ids[mention]))
            continue
        evidence = [
            _evidence(step, records[mention], records, kb, exemplars)
            for step in decisions.paths[mention]
        ]
        links.append(Link(linked_ids[row], round(link_scores[row], 4), ids, scores, evidence))
    return links


def _evidence(
    step: Step,
    target: MentionRecord,
    records: Sequence[MentionRecord],
    kb: ArboKB,
    exemplars: ExemplarStore,
) -> Evidence:
    """One step of the path to the mention ``target``, in words."""
    weight = round(float(probability(step.logit)), 4)
    if step.kind == "entity":
        entity = kb.entities.at(step.ref)
        return Evidence("entity", entity.id, entity.title, "", weight)
    record = exemplars.records[step.ref] if step.kind == "exemplar" else records[step.ref]
    fingerprint, start, end = record.key
    if step.kind == "mention" and fingerprint == target.key[0]:
        return Evidence("mention", f"{start}:{end}", record.text, "", weight)
    name = f"{fingerprint}:{start}:{end}"
    return Evidence(step.kind, name, record.text, record.context, weight, record.document)


def numbers_within(documents: np.ndarray, clusters: np.ndarray) -> List[str]:
    """New entities numbered from 1 within each document ("new-1"), in order of first mention.

    documents: (m,) int64.
    clusters: (m,) int64, -1 for linked mentions.
    RETURNS: "" where the cluster is -1.
    """
    numbers: Dict[int, Dict[int, int]] = {}
    names = []
    for document, cluster in zip(documents.tolist(), clusters.tolist()):
        own = numbers.setdefault(document, {})
        names.append(f"new-{own.setdefault(cluster, len(own) + 1)}" if cluster >= 0 else "")
    return names
