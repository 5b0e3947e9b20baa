"""Turn decisions into Link objects."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..base.arrays import TopK
from ..base.calibration import probability
from ..kb.entity import NIL, Entity
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
    entities: The entities that are steps of paths, by position.
    exemplars: The exemplars that are steps of paths, by their row in the store.
    titles: The titles of the first candidates, by position in the knowledge base.
    """

    ids: dict[int, str]
    entities: dict[int, Entity]
    exemplars: dict[int, MentionRecord]
    titles: dict[int, str]

    @classmethod
    def read(
        cls, candidates: TopK, decisions: Decisions, kb: ArboKB, exemplars: ExemplarStore
    ) -> "Wording":
        """Look up all that links refer to.

        candidates: Positions in the KB, (m, c).
        decisions: Of the same m mentions.
        """
        positions = np.unique(np.append(candidates.ids.ravel(), decisions.entities))
        ids = dict(zip(positions.tolist(), kb.entities.ids_of(positions).tolist()))
        steps = {(step.kind, step.ref) for path in decisions.paths for step in path}
        entities = sorted(ref for kind, ref in steps if kind == "entity")
        rows = [ref for kind, ref in steps if kind == "exemplar"]
        records = {row: exemplars.records[row] for row in rows}
        first = np.unique(candidates.first(N_TITLED).ids).tolist()
        return cls(ids, kb.entities.at_all(entities), records, kb.entities.titles_at(first))

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
        entity = wording.entities[step.ref]
        return Evidence("entity", entity.id, entity.title, "", weight)
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
