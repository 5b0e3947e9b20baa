"""Clusters of mentions that no entity fits -> new entities, in words."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np
from spacy.tokens import Span

from ..inference.calibration import probability
from ..kb.knowledge_base import ArboKB
from ..mentions import document_name, offsets_of_span
from ..retrieval.similarity import unit

# Characters of text on either side of a mention.
CONTEXT = 80
# Entities of the knowledge base that are named as near.
NEAREST = 3


class Member(NamedTuple):
    """A mention of a new entity: where it stands, and the text before and after it."""

    document: int
    start: int
    end: int
    text: str
    label: str
    before: str
    after: str


class Refused(NamedTuple):
    """An entity of the knowledge base that was near, and why it is not the one."""

    kb_id: str
    title: str
    chance: float
    why: str


@dataclass(frozen=True)
class Discovered:
    """A new entity.

    id: Made of where its first mention stands, so that it stays when more documents follow.
    name: The text of its most central mention.
    members: Its mentions, in the order of the documents. medoid: The number of the most central.
    cohesion: The mean cosine of the mentions with the medoid; 1.0 for a single one.
    nearest: Entities of the knowledge base that come closest, by the likeliest of its mentions.
    """

    id: str
    name: str
    members: Tuple[Member, ...]
    medoid: int
    cohesion: float
    nearest: Tuple[Refused, ...]

    @property
    def documents(self) -> int:
        """How many documents mention it."""
        return len({member.document for member in self.members})

    def to_dict(self) -> Dict[str, Any]:
        """JSON-serialisable."""
        data = asdict(self)
        data["members"] = [member._asdict() for member in self.members]
        data["nearest"] = [refused._asdict() for refused in self.nearest]
        return data


def describe(
    spans: Sequence[Span],
    documents: np.ndarray,
    clusters: np.ndarray,
    vectors: np.ndarray,
    ranked: Tuple[np.ndarray, np.ndarray],
    kb: ArboKB,
    threshold: float,
) -> List[Discovered]:
    """The new entities, the largest first.

    spans: m mentions. documents: (m,) the number of the document of each.
    clusters: (m,) int64, mentions with one number are one new entity; -1 for linked ones.
    vectors: (m, width) float32. ranked: Their candidates (m, c), as ``rank_candidates`` has them.
    """
    units = unit(vectors)
    new = np.flatnonzero(clusters >= 0)
    order = new[np.argsort(clusters[new], kind="stable")]
    borders = np.flatnonzero(np.diff(clusters[order], prepend=-2, append=-2))
    names: Dict[int, str] = {}
    found = []
    for start, end in zip(borders[:-1], borders[1:]):
        group = order[start:end]
        # The member with the largest mean cosine to all is that nearest to their sum.
        medoid = int((units[group] @ units[group].sum(axis=0)).argmax())
        near = units[group] @ units[group[medoid]]
        others = np.delete(near, medoid)
        members = tuple(_member(spans[i], int(documents[i]), names) for i in group.tolist())
        found.append(
            Discovered(
                _identify(spans[int(group[0])], names, int(documents[group[0]])),
                members[medoid].text,
                members,
                medoid,
                round(float(others.mean()), 4) if len(others) else 1.0,
                _nearest(group, ranked, kb, threshold),
            )
        )
    return sorted(found, key=lambda one: (-len(one.members), one.members[0][:2]))


def _identify(span: Span, names: Dict[int, str], document: int) -> str:
    if document not in names:
        names[document] = document_name(span.doc)
    key = "{}:{}:{}".format(names[document], *offsets_of_span(span))
    return "NEW-" + hashlib.blake2b(key.encode("utf8"), digest_size=5).hexdigest()


def _member(span: Span, document: int, names: Dict[int, str]) -> Member:
    text, (start, end) = span.doc.text, offsets_of_span(span)
    before = " ".join(text[max(start - CONTEXT, 0) : start].split())
    after = " ".join(text[end : end + CONTEXT].split())
    return Member(document, start, end, span.text, span.label_, before, after)


def _nearest(
    group: np.ndarray, ranked: Tuple[np.ndarray, np.ndarray], kb: ArboKB, threshold: float
) -> Tuple[Refused, ...]:
    entities, logits = (array[group, :NEAREST].ravel() for array in ranked)
    there = entities >= 0
    entities, logits = entities[there], logits[there]
    order = np.argsort(-logits, kind="stable")
    best = dict(zip(entities[order][::-1].tolist(), logits[order][::-1].tolist()))
    first = sorted(best, key=lambda position: (-best[position], position))[:NEAREST]
    known = kb.entities.at_all(first)
    refused = []
    for position in first:
        if position in known:
            chance = round(float(probability(best[position])), 4)
            why = (
                f"under the threshold of {threshold:g}"
                if chance < threshold
                else "joined by mentions that are not it"
            )
            refused.append(Refused(known[position].id, known[position].title, chance, why))
    return tuple(refused)
