"""Turn decisions into Link objects."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.arrays import TopK
from ..base.calibration import probability
from ..kb.entity import NIL
from ..kb.knowledge_base import ArboKB
from ..mentions.annotations import Evidence, Link
from ..mentions.record import MentionRecord
from ..ranking.decisions import Decisions, Step
from ..retrieval.exemplars import ExemplarStore

# How many candidates of a mention have their title in its link.
N_TITLED = 5


@dataclass(frozen=True)
class Wording:
    """Data that links refer to, frozen when linking.

    ids: From positions in the knowledge base to ids.
    titles: The titles of the first candidates and of steps of paths, by position there.
    exemplars: The exemplars that are steps of paths, by their row in the store.
    """

    ids: dict[int, str]
    titles: dict[int, str]
    exemplars: dict[int, MentionRecord]

    @classmethod
    def read(
        cls, candidates: TopK, decisions: Decisions, kb: ArboKB, exemplars: ExemplarStore
    ) -> "Wording":
        """Look up all that links refer to.

        candidates: Positions in the KB, (m, c).
        decisions: Of the same m mentions.
        """
        steps = {(step.kind, step.ref) for path in decisions.paths for step in path}
        entities = [ref for kind, ref in steps if kind == "entity"]
        named = np.array([*entities, *candidates.first(N_TITLED).ids.flat], dtype=np.int64)
        known = np.concatenate([named, candidates.ids.ravel(), decisions.entities])
        positions = np.unique(known)
        ids = dict(zip(positions.tolist(), kb.entities.ids_of(positions).tolist()))
        rows = [ref for kind, ref in steps if kind == "exemplar"]
        records = {row: exemplars.records[row] for row in rows}
        return cls(ids, kb.entities.titles_at(np.unique(named).tolist()), records)

    def ids_of(self, positions: np.ndarray) -> list[list[str]]:
        """The ids of positions (m, c); "" for -1."""
        return [[self.ids.get(p, "") for p in row] for row in positions.tolist()]


def make_links(
    mentions: range,
    records: Sequence[MentionRecord],
    candidates: TopK,
    decisions: Decisions,
    cluster_ids: Sequence[str],
    wording: Wording,
) -> list[Link]:
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
    ranked_ids = wording.ids_of(entities)
    linked_ids = [wording.ids.get(p, "") for p in decisions.entities[part].tolist()]
    # In double precision, so that people see 0.0865 and not 0.08649999648332596.
    probabilities = probability(candidates.scores[part]).astype(np.float64)
    ranked_scores = np.round(probabilities, 4).tolist()
    link_scores = probability(decisions.logits[part]).tolist()
    links = []
    for row, (mention, count) in enumerate(zip(mentions, counts)):
        ids, scores = ranked_ids[row][:count], ranked_scores[row][:count]
        first = entities[row, : min(count, N_TITLED)].tolist()
        titles = [wording.titles.get(position, "") for position in first]
        if not linked_ids[row]:
            best = scores[0] if scores else 0.0
            links.append(Link(NIL, best, ids, scores, (), cluster_ids[mention], titles))
            continue
        evidence = [
            _evidence(step, records[mention], records, wording) for step in decisions.paths[mention]
        ]
        score = round(link_scores[row], 4)
        links.append(Link(linked_ids[row], score, ids, scores, evidence, "", titles))
    return links


def _evidence(
    step: Step, target: MentionRecord, records: Sequence[MentionRecord], wording: Wording
) -> Evidence:
    """Describe one step of the path to ``target``."""
    weight = round(float(probability(step.logit)), 4)
    if step.kind == "entity":
        return Evidence("entity", wording.ids[step.ref], wording.titles[step.ref], "", weight)
    record = wording.exemplars[step.ref] if step.kind == "exemplar" else records[step.ref]
    fingerprint, start, end = record.key
    if step.kind == "mention" and fingerprint == target.key[0]:
        return Evidence("mention", f"{start}:{end}", record.text, "", weight)
    name = f"{fingerprint}:{start}:{end}"
    return Evidence(step.kind, name, record.text, record.context, weight, record.document)


def numbers_within(documents: np.ndarray, clusters: np.ndarray) -> list[str]:
    """Number new entities per document: "new-1", "new-2", …. They are in order of first mention.

    documents: (m,) int64.
    clusters: (m,) int64, -1 for linked mentions.
    RETURNS: "" where the cluster is -1.
    """
    numbers: dict[int, dict[int, int]] = {}
    names = []
    for document, cluster in zip(documents.tolist(), clusters.tolist()):
        own = numbers.setdefault(document, {})
        names.append(f"new-{own.setdefault(cluster, len(own) + 1)}" if cluster >= 0 else "")
    return names
