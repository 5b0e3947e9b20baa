"""A new entity, in words: its name, its mentions, what of the knowledge base came near."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np
from spacy.tokens import Span

from ..inference.calibration import probability
from ..kb.knowledge_base import ArboKB
from ..mentions import document_id, offsets_of_span
from ..retrieval.exemplars import Key
from ..retrieval.similarity import unit

# Characters of text on either side of a mention.
CONTEXT = 80
# Entities of the knowledge base that are named as near.
NEAREST = 3


class Member(NamedTuple):
    """A mention of a new entity: where it stands, and the text before and after it.

    document: The number of its document, in the order they came. doc_id: Its document's
        ``doc.user_data["doc_id"]``, if it has one.
    """

    document: int
    start: int
    end: int
    text: str
    label: str
    before: str
    after: str
    doc_id: str = ""

    @property
    def context(self) -> str:
        """The mention with the text round it."""
        return " ".join(part for part in (self.before, self.text, self.after) if part)


class Near(NamedTuple):
    """An entity of the knowledge base that a mention could have been, and the chance of that."""

    kb_id: str
    title: str
    chance: float


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


def identify(key: Key) -> str:
    """The id of a new entity whose first mention has this key."""
    name = "{}:{}:{}".format(*key)
    return "NEW-" + hashlib.blake2b(name.encode("utf8"), digest_size=5).hexdigest()


def same_for_same(groups: np.ndarray, keys: Sequence[Key]) -> np.ndarray:
    """Groups in which mentions of one key are together: those of a text that comes again."""
    if len(set(keys)) == len(keys):
        return groups
    first: Dict[Key, int] = {}
    return np.array([first.setdefault(key, g) for key, g in zip(keys, groups.tolist())])


def name_groups(groups: np.ndarray, keys: Sequence[Key]) -> List[str]:
    """The id of each mention's group, "" for group -1; made of the key of its first mention."""
    names = {-1: ""}
    for group, key in zip(groups.tolist(), keys):
        if group not in names:
            names[group] = identify(key)
    return [names[group] for group in groups.tolist()]


def members_of(spans: Sequence[Span], document: int) -> List[Member]:
    """The spans of one Doc in words; ``document`` is its number."""
    doc = spans[0].doc
    text, doc_id = doc.text, document_id(doc)
    members = []
    for span in spans:
        start, end = offsets_of_span(span)
        before = " ".join(text[max(start - CONTEXT, 0) : start].split())
        after = " ".join(text[end : end + CONTEXT].split())
        surface, label = text[start:end], span.label_
        members.append(Member(document, start, end, surface, label, before, after, doc_id))
    return members


def describe(
    name: str,
    members: Sequence[Member],
    vectors: np.ndarray,
    near: Sequence[Sequence[Near]],
    threshold: float,
) -> Discovered:
    """A new entity of the given mentions, in the order of their documents.

    vectors: (m, width) float32. near: For each mention the likeliest entities, best first.
    threshold: The chance of being right that a link had to have.
    """
    medoid, cohesion = 0, 1.0
    if len(members) > 1:
        units = unit(vectors)
        # The member with the largest mean cosine to all is that nearest to their sum.
        medoid = int((units @ units.sum(axis=0)).argmax())
        others = np.delete(units @ units[medoid], medoid)
        cohesion = round(float(others.mean()), 4)
    nearest = tuple(_refused(one, threshold) for one in likeliest(near))
    return Discovered(name, members[medoid].text, tuple(members), medoid, cohesion, nearest)


def near_of(entities: np.ndarray, logits: np.ndarray, kb: ArboKB) -> List[List[Near]]:
    """Candidates in words. entities, logits: (m, c) positions in the KB, -1 for none."""
    known = kb.entities.at_all(np.unique(entities[entities >= 0]).tolist())
    chances = np.round(probability(logits), 4)
    rows = zip(entities.tolist(), chances.tolist())
    return [
        [Near(known[e].id, known[e].title, chance) for e, chance in zip(*row) if e in known]
        for row in rows
    ]


def likeliest(near: Sequence[Sequence[Near]]) -> List[Near]:
    """The entities that come closest to any of some mentions, each once, the nearest first."""
    best: Dict[str, Near] = {}
    for one in sorted((one for row in near for one in row), key=lambda one: -one.chance):
        best.setdefault(one.kb_id, one)
    return list(best.values())[:NEAREST]


def _refused(near: Near, threshold: float) -> Refused:
    if near.chance < threshold:
        return Refused(*near, f"under the threshold of {threshold:g}")
    return Refused(*near, "joined by mentions that are not it")
