"""Clusters by number: which id each has, which one it was merged into, what became of it."""

from dataclasses import dataclass, field
from typing import Dict, List, Sequence, Set, Tuple

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

    def copy(self) -> "Clusters":
        """The same clusters, to be changed by themselves."""
        return Clusters(
            self.of_mention.copy(),
            self.merged_into.copy(),
            list(self.ids),
            dict(self.accepted),
            dict(self.rejected),
            list(self.kept_apart),
        )

    # Reading

    def __contains__(self, cluster_id: str) -> bool:
        return cluster_id in self._numbers

    def current(self, number: int) -> int:
        """The number of the cluster that a cluster is now part of."""
        return int(find(self.merged_into, number))

    @property
    def numbers(self) -> np.ndarray:
        """(n,) int64, the cluster that each mention is now in."""
        return merged_numbers(self.merged_into)[self.of_mention]

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

    def is_open(self, number: int) -> bool:
        """Whether a cluster is a new entity: neither accepted nor rejected."""
        return number not in self.accepted and number not in self.rejected

    def closed(self) -> np.ndarray:
        """(c,) bool, the clusters that were accepted or rejected."""
        closed = np.zeros(len(self.merged_into), dtype=bool)
        closed[[*self.accepted, *self.rejected]] = True
        return closed

    def by_size(self) -> Dict[int, np.ndarray]:
        """The mentions of each new entity by its number, the largest first."""
        cluster = self.numbers
        order = np.argsort(cluster, kind="stable")
        bounds = np.flatnonzero(np.diff(cluster[order], prepend=-1, append=-1))
        first, numbers = order[bounds[:-1]], cluster[order[bounds[:-1]]]
        by = np.lexsort((first, -np.diff(bounds)))
        by = by[~self.closed()[numbers[by]]]
        places = zip(numbers[by].tolist(), bounds[by].tolist(), bounds[by + 1].tolist())
        return {number: order[start:end] for number, start, end in places}

    # Adding

    def assign_ids(self, keys: Sequence[MentionKey]) -> None:
        """Give ids to the clusters that have none yet, made of the keys of their first mentions."""
        for key in keys:
            cluster_id = new_entity_id(key)
            if cluster_id in self._numbers:
                # Its first mention has started another cluster before and has left it since.
                cluster_id = f"{cluster_id}-{len(self.ids)}"
            self.add_id(cluster_id)

    def add_id(self, cluster_id: str) -> None:
        """Give an id that no cluster has to the first cluster that has none."""
        self._numbers[cluster_id] = len(self.ids)
        self.ids.append(cluster_id)

    def extend(self, keys: Sequence[MentionKey], groups: np.ndarray, known: Dict[int, int]) -> None:
        """Add mentions in groups. A new cluster is named by the first of its keys in their order.

        keys: The key of each of m mentions.
        groups: (m,) int64, equal for the mentions of one cluster.
        known: The numbers of groups that are clusters already.
        """
        first: Dict[int, MentionKey] = {}
        for group, key in zip(groups.tolist(), keys):
            if group not in known and not (group in first and first[group] < key):
                first[group] = key
        new = sorted(first, key=first.__getitem__)
        start = len(self.ids)
        numbers = {**known, **dict(zip(new, range(start, start + len(new))))}
        self.merged_into = np.append(self.merged_into, np.arange(start, start + len(new)))
        self.assign_ids([first[group] for group in new])
        added = np.array([numbers[group] for group in groups.tolist()], dtype=np.int64)
        self.of_mention = np.append(self.of_mention, added)

    def add(self, key: MentionKey) -> int:
        """A new cluster without mentions, named by the key of its first. RETURNS: Its number."""
        number = len(self.ids)
        self.merged_into = np.append(self.merged_into, number)
        self.assign_ids([key])
        return number

    # Editing

    def merge(self, into: int, others: Sequence[int]) -> List[Tuple[int, int]]:
        """Merge clusters; they need not be kept apart any more. RETURNS: The pairs that were."""
        self.merged_into[list(others)] = into
        before = self.kept_apart
        self.kept_apart = [(a, b) for a, b in before if self.current(a) != self.current(b)]
        return [pair for pair in before if pair not in self.kept_apart]

    def move(self, number: int, mentions: np.ndarray, to: int, founded: Set[str]) -> None:
        """Move mentions from one cluster to another.

        Ids that lead to the first lead to the other one, where the mention that they are named by
        is among those that move.

        mentions: (k,) int64.
        founded: The ids that are named by these mentions.
        """
        others = merged_numbers(self.merged_into)
        self.of_mention[others[self.of_mention] == number] = number
        for other in np.flatnonzero(others == number).tolist():
            if other != number:
                self.merged_into[other] = to if self.ids[other] in founded else number
        self.merged_into[to] = to
        self.of_mention[mentions] = to

    def restore(self, number: int) -> None:
        """Make a cluster that was accepted or rejected a new entity again."""
        self.accepted.pop(number, None)
        self.rejected.pop(number, None)
