"""Clusters by number: which id each has, which one it was merged into, what became of it."""

from dataclasses import dataclass, field
from typing import Dict, List, Sequence, Tuple

import numpy as np

from ..errors import Errors
from ..graph.online import merged_numbers
from ..graph.union_find import find
from ..mentions.records import MentionKey
from .entities import new_entity_id


def _no_numbers() -> np.ndarray:
    return np.zeros(0, dtype=np.int64)


@dataclass
class Clusters:
    """The clusters of ``n`` mentions. A cluster has a number and an id, both for good.

    of_mention: (n,) int64, the number of each mention's cluster.
    merged_into: (c,) int64, for each cluster the number of the one it was merged into, or its own.
    ids: The id of each cluster.
    accepted: The entity of the knowledge base that a cluster has become, by the cluster's number.
    rejected: The numbers of clusters that are no entity.
    kept_apart: Pairs of numbers that must not become one cluster.
    """

    of_mention: np.ndarray = field(default_factory=_no_numbers)
    merged_into: np.ndarray = field(default_factory=_no_numbers)
    ids: List[str] = field(default_factory=list)
    accepted: Dict[int, str] = field(default_factory=dict)
    rejected: Dict[int, None] = field(default_factory=dict)
    kept_apart: List[Tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = {name: number for number, name in enumerate(self.ids)}

    def current(self, number: int) -> int:
        """The number of the cluster that a cluster is now part of."""
        return int(find(self.merged_into, number))

    def number_of(self, cluster_id: str) -> int:
        """The number that a cluster's id belongs to; KeyError where there never was one."""
        if cluster_id not in self._numbers:
            raise KeyError(Errors.E703.format(id=cluster_id))
        return self._numbers[cluster_id]

    def id_now(self, number: int) -> str:
        """What a cluster has become.

        RETURNS: Its present id, the id of the entity that it was accepted as, or "" where it was
            rejected.
        """
        number = self.current(number)
        if number in self.accepted:
            return self.accepted[number]
        return "" if number in self.rejected else self.ids[number]

    def assign_ids(self, keys: Sequence[MentionKey]) -> None:
        """Give ids to the clusters that have none yet, made of the keys of their first mentions."""
        for key in keys:
            cluster_id = new_entity_id(key)
            if cluster_id in self._numbers:
                # Its first mention has started another cluster before and has left it since.
                cluster_id = f"{cluster_id}-{len(self.ids)}"
            self._numbers[cluster_id] = len(self.ids)
            self.ids.append(cluster_id)

    def add(self, groups: np.ndarray) -> np.ndarray:
        """Put new mentions into new clusters, which ``assign_ids`` is to name.

        groups: (m,) int64, equal for the mentions of one cluster.
        RETURNS: The first mention of each new cluster, in order.
        """
        _, first, label = np.unique(groups, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        place = np.argsort(order)
        base = len(self.ids)
        numbers = np.arange(base, base + len(order))
        self.merged_into = np.concatenate([self.merged_into, numbers])
        self.of_mention = np.concatenate([self.of_mention, base + place[label]])
        return first[order]

    def merge(self, into: int, others: Sequence[int]) -> None:
        """Merge clusters; they need not be kept apart any more."""
        for number in others:
            self.merged_into[number] = into
        merged = {into, *others}
        pairs = ((self.current(a), self.current(b)) for a, b in self.kept_apart)
        self.kept_apart = [(a, b) for a, b in pairs if not merged >= {a, b} and a != b]

    def split(self, number: int, mentions: np.ndarray, key: MentionKey) -> int:
        """Make a cluster of some of a cluster's mentions, and keep the two apart.

        mentions: (k,) int64.
        key: The key of the first of them.
        RETURNS: The number of the new cluster.
        """
        new = len(self.ids)
        self.merged_into = np.append(self.merged_into, new)
        self.assign_ids([key])
        self.of_mention[mentions] = new
        self.kept_apart.append((number, new))
        return new

    def keep(self, mentions: np.ndarray) -> None:
        """Remove all mentions but those at which ``mentions`` (n,) bool is True."""
        self.of_mention = self.of_mention[mentions]

    def by_size(self) -> Dict[int, np.ndarray]:
        """The mentions of each cluster by its number, the largest first, without the rejected."""
        cluster = merged_numbers(self.merged_into)[self.of_mention]
        order = np.argsort(cluster, kind="stable")
        bounds = np.flatnonzero(np.diff(cluster[order], prepend=-1, append=-1))
        groups = [order[start:end] for start, end in zip(bounds[:-1], bounds[1:])]
        groups.sort(key=lambda mentions: (-len(mentions), int(mentions[0])))
        numbered = ((int(cluster[mentions[0]]), mentions) for mentions in groups)
        return {number: group for number, group in numbered if number not in self.rejected}
