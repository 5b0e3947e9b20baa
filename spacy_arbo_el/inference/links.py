"""Decisions, in numbers -> links, in words."""

from typing import Callable, List, Sequence, Tuple

import numpy as np
from spacy.tokens import Span

from ..annotations import Evidence, Link
from ..kb.entity import NIL
from ..kb.knowledge_base import ArboKB
from ..retrieval.exemplars import ExemplarStore, Labelled
from .calibration import probability
from .decisions import Decisions, Step

# From a mention on a path, and the mention at its end, to the id, text, context and document of
# the one.
Tell = Callable[[int, int], Tuple[str, str, str, str]]


def make_links(
    mentions: range,
    decisions: Decisions,
    ranked: Tuple[np.ndarray, np.ndarray],
    clusters: Sequence[str],
    kb: ArboKB,
    exemplars: ExemplarStore,
    tell: Tell,
) -> List[Link]:
    """The ``Link`` of each of some of the m mentions.

    ranked: Candidates (m, c) as positions in the KB, -1 for none, and their logits.
    clusters: For each of the m mentions the id of its new entity, "" for linked ones.
    """
    part = slice(mentions.start, mentions.stop)
    entities, logits = ranked[0][part], ranked[1][part]
    counts = (entities >= 0).sum(axis=1).tolist()
    ranked_ids = kb.ids_of(entities).tolist()
    chosen = kb.ids_of(decisions.entity[part]).tolist()
    scores = np.round(probability(logits), 4).tolist()
    chances = probability(decisions.logit[part]).tolist()
    links = []
    for row, (mention, count) in enumerate(zip(mentions, counts)):
        ids, chance = ranked_ids[row][:count], scores[row][:count]
        if not chosen[row]:
            refused = chance[0] if chance else 0.0
            links.append(Link(NIL, refused, ids, chance, (), clusters[mention]))
            continue
        path = decisions.paths[mention]
        evidence = [_evidence(step, mention, kb, exemplars, tell) for step in path]
        links.append(Link(chosen[row], round(chances[row], 4), ids, chance, evidence))
    return links


def numbers_within(document: np.ndarray, cluster: np.ndarray) -> List[str]:
    """New entities numbered from 1 within each document ("new-1"), in order of first mention.

    document, cluster: (m,) int64. RETURNS: "" where the cluster is -1.
    """
    seen: dict = {}
    names = []
    for doc, label in zip(document.tolist(), cluster.tolist()):
        known = seen.setdefault(doc, {})
        names.append(f"new-{known.setdefault(label, len(known) + 1)}" if label >= 0 else "")
    return names


def tell_spans(spans: Sequence[Span]) -> Tell:
    """Mentions that are all of one document each, and whose paths stay in it."""

    def tell(mention: int, of: int) -> Tuple[str, str, str, str]:
        span = spans[mention]
        return f"{span.start_char}:{span.end_char}", span.text, "", ""

    return tell


def tell_items(items: Sequence[Labelled]) -> Tell:
    """Mentions whose paths run through other documents."""

    def tell(mention: int, of: int) -> Tuple[str, str, str, str]:
        item = items[mention]
        document, start, end = item.key
        if document == items[of].key[0]:
            return f"{start}:{end}", item.text, "", ""
        return f"{document}:{start}:{end}", item.text, item.context, item.document or document

    return tell


def _evidence(step: Step, of: int, kb: ArboKB, exemplars: ExemplarStore, tell: Tell) -> Evidence:
    weight = round(float(probability(step.logit)), 4)
    if step.kind == "entity":
        entity = kb.entities.at(step.ref)
        return Evidence("entity", entity.id, entity.title, "", weight)
    if step.kind == "exemplar":
        item = exemplars.items[step.ref]
        name = "{}:{}:{}".format(*item.key)
        known_as = item.document or item.key[0]
        return Evidence("exemplar", name, item.text, item.context, weight, known_as)
    name, text, context, document = tell(step.ref, of)
    return Evidence("mention", name, text, context, weight, document)
