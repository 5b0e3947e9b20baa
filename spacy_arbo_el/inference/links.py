"""Decisions, in numbers -> links, in words."""

from typing import List, Sequence, Tuple

import numpy as np
from spacy.tokens import Span

from ..annotations import Evidence, Link
from ..kb.entity import NIL
from ..kb.knowledge_base import ArboKB
from ..retrieval.exemplars import ExemplarStore
from .calibration import probability
from .decisions import Decisions, Step


def make_links(
    spans: Sequence[Span],
    document: np.ndarray,
    decisions: Decisions,
    ranked: Tuple[np.ndarray, np.ndarray],
    kb: ArboKB,
    exemplars: ExemplarStore,
) -> List[Link]:
    """The ``Link`` of each span.

    document: (m,) within what new entities are numbered: one number a document, or one for all.
    ranked: Candidates (m, c) as positions in the KB, -1 for none, and their logits.
    """
    entities, logits = ranked
    counts = (entities >= 0).sum(axis=1).tolist()
    ranked_ids = kb.ids_of(entities).tolist()
    chosen = kb.ids_of(decisions.entity).tolist()
    scores = np.round(probability(logits), 4).tolist()
    chances = probability(decisions.logit).tolist()
    clusters = _numbers_within(document, decisions.cluster)
    links = []
    for i, count in enumerate(counts):
        ids, chance = ranked_ids[i][:count], scores[i][:count]
        if decisions.entity[i] < 0:
            refused = chance[0] if chance else 0.0
            links.append(Link(NIL, refused, ids, chance, (), f"new-{clusters[i]}"))
            continue
        evidence = [_evidence(step, spans, kb, exemplars) for step in decisions.paths[i]]
        links.append(Link(chosen[i], round(chances[i], 4), ids, chance, evidence))
    return links


def _numbers_within(document: np.ndarray, cluster: np.ndarray) -> List[int]:
    """Clusters numbered from 1 within each document, in order of first mention; 0 for none."""
    seen: dict = {}
    numbers = []
    for doc, label in zip(document.tolist(), cluster.tolist()):
        known = seen.setdefault(doc, {})
        numbers.append(known.setdefault(label, len(known) + 1) if label >= 0 else 0)
    return numbers


def _evidence(step: Step, spans: Sequence[Span], kb: ArboKB, exemplars: ExemplarStore) -> Evidence:
    weight = round(float(probability(step.logit)), 4)
    if step.kind == "entity":
        entity = kb.entities.at(step.ref)
        return Evidence("entity", entity.id, entity.title, "", weight)
    if step.kind == "exemplar":
        item = exemplars.items[step.ref]
        name = "{}:{}:{}".format(*item.key)
        return Evidence("exemplar", name, item.text, item.context, weight)
    span = spans[step.ref]
    return Evidence("mention", f"{span.start_char}:{span.end_char}", span.text, "", weight)
