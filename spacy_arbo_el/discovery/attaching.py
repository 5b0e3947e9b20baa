"""Adds mentions to new entities one after the other, as documents come."""

from typing import TYPE_CHECKING, List

import numpy as np

from ..graph.online import attach
from .unlinked import Unlinked

if TYPE_CHECKING:
    from .new_entities import NewEntities


def attach_mentions(
    new_entities: "NewEntities", mentions: Unlinked, neighbours: np.ndarray
) -> List[str]:
    """See ``NewEntities.attach``."""
    clusters = new_entities.clusters
    if clusters.accepted:
        # Their mentions are exemplars now: what is like them is for the linker to find.
        left = np.isin(clusters.numbers, list(clusters.accepted))
        left = np.append(left, np.zeros(len(mentions) + 1, dtype=bool))
        neighbours = np.where(left[neighbours], -1, neighbours)
    attached = attach(
        clusters.of_mention,
        clusters.merged_into,
        neighbours,
        mentions.documents,
        np.array(clusters.kept_apart, dtype=np.int64).reshape(-1, 2),
        clusters.closed(),
    )
    clusters.of_mention = attached.of_mention
    clusters.merged_into = attached.merged_into
    clusters.assign_ids([mentions.records[i].key for i in attached.first_mentions.tolist()])
    for gone, stays, mention in attached.merges:
        place = "{}:{}:{}".format(*mentions.records[mention].key)
        ids = clusters.ids
        new_entities.history.note("join", ids[gone], into=ids[stays], mention=place)
    new_entities.rows.extend(mentions)
    return [
        clusters.ids[number] if clusters.is_open(number) else ""
        for number in attached.assigned.tolist()
    ]
