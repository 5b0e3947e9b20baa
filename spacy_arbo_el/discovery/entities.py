"""A new entity, its mentions and its nearest entities. The nearest are of the knowledge base."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import TopK, unit
from ..base.calibration import probability
from ..base.display import counted, shortened, shown_probability
from ..base.pages import page
from ..kb.knowledge_base import ArboKB
from ..mentions.annotations import named
from ..mentions.record import MentionKey, MentionRecord

# How many entities of the knowledge base are named beside a new one.
N_NEAREST = 3
# The columns of mentions.
MENTION = ("document", "start", "end", "text", "label", "before", "after")


class NearestEntity(NamedTuple):
    """An entity with its probability for a mention."""

    kb_id: str
    title: str
    probability: float


class RefusedEntity(NamedTuple):
    """A candidate that was refused, with the reason."""

    kb_id: str
    title: str
    probability: float
    reason: str


@dataclass(frozen=True, repr=False)
class NewEntity:
    """A new entity.

    id: A hash of the text and place of its first mention.
    name: The text of its most central mention.
    members: Its mentions, in the order of their documents.
    medoid: The number of the most central mention.
    cohesion: The mean cosine of the mentions with the medoid; 1.0 for a single mention.
    nearest: The most probable entities of the knowledge base, by any of the mentions.
    """

    id: str
    name: str
    members: tuple[MentionRecord, ...]
    medoid: int
    cohesion: float
    nearest: tuple[RefusedEntity, ...]

    @property
    def documents(self) -> int:
        """Number of documents that mention it."""
        return len({record.key[0] for record in self.members})

    def __repr__(self) -> str:
        where = counted(self.documents, "document")
        fields = [
            repr(self.id),
            repr(shortened(self.name)),
            f"{counted(len(self.members), 'mention')} in {where}",
            f"cohesion {self.cohesion:.2f}",
        ]
        for entity in self.nearest[:1]:
            name = named(entity.kb_id, entity.title)
            fields.append(f"nearest {name} {shown_probability(entity.probability)}")
        return f"NewEntity({', '.join(fields)})"

    def to_dict(self) -> dict[str, Any]:
        """JSON-serialisable."""
        return {
            "id": self.id,
            "name": self.name,
            "members": [_member_dict(record) for record in self.members],
            "medoid": self.medoid,
            "cohesion": self.cohesion,
            "nearest": [entity._asdict() for entity in self.nearest],
        }


# A new entity, or its id.
EntityOrId = str | NewEntity


def id_of_entity(entity: EntityOrId) -> str:
    """Id of a new entity, or the id itself."""
    if isinstance(entity, NewEntity):
        return entity.id
    return entity


def _member_dict(record: MentionRecord) -> dict[str, Any]:
    fingerprint, start, end = record.key
    return {
        "document": record.document,
        "fingerprint": fingerprint,
        "start": start,
        "end": end,
        "text": record.text,
        "label": record.label,
        "before": _in_line(record.before),
        "after": _in_line(record.after),
    }


def _in_line(text: str) -> str:
    """A text on one line. The blanks at its ends say whether it touches the mention."""
    return re.sub(r"\s+", " ", text)


def new_entity_id(key: MentionKey) -> str:
    """Make a new entity's id from its first mention."""
    place = "{}:{}:{}".format(*key)
    return "NEW-" + hashlib.blake2b(place.encode("utf8"), digest_size=5).hexdigest()


def describe(
    entity_id: str,
    members: Sequence[MentionRecord],
    vectors: np.ndarray,
    nearest: Sequence[Sequence[NearestEntity]],
    threshold: float,
) -> NewEntity:
    """The new entity that consists of the given mentions.

    members: Its m mentions, in the order of their documents.
    vectors: (m, width) float32, prepared.
    nearest: For each mention the most probable entities, best first.
    threshold: The probability that a link had to have.
    """
    medoid = 0
    cohesion = 1.0
    if len(members) > 1:
        # In the order of keys and in double precision, so that other orders give the same.
        order = sorted(range(len(members)), key=lambda member: members[member].key)
        units = unit(vectors[order].astype(np.float64))
        # The member with the largest mean cosine to all is the one nearest to their sum.
        central = int((units @ units.sum(axis=0)).argmax())
        medoid = order[central]
        cosines = np.delete(units @ units[central], central)
        cohesion = round(float(cosines.mean()), 4)
    reasons = (
        f"below the threshold of {threshold:g}",
        "refused by the inference procedure",
    )
    refused = tuple(
        RefusedEntity(*entity, reasons[entity.probability >= threshold])
        for entity in most_probable(nearest)
    )
    return NewEntity(
        entity_id, members[medoid].text, tuple(members), medoid, cohesion, refused
    )


def nearest_entities(candidates: TopK, kb: ArboKB) -> list[list[NearestEntity]]:
    """The first ``N_NEAREST`` candidates of each mention.

    candidates: Positions in the knowledge base; scores are log-odds.
    """
    candidates = candidates.first(N_NEAREST)
    entities = kb.entities.at_all(np.unique(candidates.ids[candidates.valid]).tolist())
    # In double precision, so that people see 0.0865 and not 0.08649999648332596.
    probabilities = np.round(probability(candidates.scores).astype(np.float64), 4)
    rows = zip(candidates.ids.tolist(), probabilities.tolist())
    return [
        [
            NearestEntity(entities[position].id, entities[position].title, value)
            for position, value in zip(*row)
            if position in entities
        ]
        for row in rows
    ]


def most_probable(nearest: Sequence[Sequence[NearestEntity]]) -> list[NearestEntity]:
    """The ``N_NEAREST`` most probable entities of several mentions, each once, best first.

    Of equally probable ones, the smaller id comes first.
    """
    best: dict[str, NearestEntity] = {}
    entities = (entity for row in nearest for entity in row)
    for entity in sorted(
        entities, key=lambda entity: (-entity.probability, entity.kb_id)
    ):
        best.setdefault(entity.kb_id, entity)
    return list(best.values())[:N_NEAREST]


def to_html(
    entities: Iterable[NewEntity], title: str = "Not in the knowledge base"
) -> str:
    """Make an HTML page of new entities with their mentions and nearest entities.

    Those with a single mention can be unfolded at the end.
    """
    entities = list(entities)
    larger = [entity for entity in entities if len(entity.members) > 1]
    single = [entity for entity in entities if len(entity.members) == 1]
    mentions = sum(len(entity.members) for entity in entities)
    return page(
        "new_entities", title=title, larger=larger, single=single, mentions=mentions
    )
