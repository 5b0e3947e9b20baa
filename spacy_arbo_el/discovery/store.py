"""Storage of unlinked mentions and their clusters, by number."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..base.arrays import Rows, int_array
from ..base.errors import Errors
from ..encoders.inputs import SpanInputs
from ..graph.linkage import find, find_all
from ..mentions.record import MentionKey, MentionRecord
from .entities import NearestEntity, new_entity_id


@dataclass
class Unlinked(Rows):
    """Unlinked mentions, ``m`` of them, in order of documents.

    documents: (m,) int64, ascending, the number of the document each is in.
    nearest: For each the most probable entities of the knowledge base, best first.
    inputs: The m spans that they are encoded from.
    vectors: (m, width) float32, prepared.
    """

    records: Sequence[MentionRecord]
    documents: np.ndarray
    nearest: Sequence[list[NearestEntity]]
    inputs: SpanInputs
    vectors: np.ndarray

    def __post_init__(self) -> None:
        self._row_of = {key: row for row, key in enumerate(self.keys)}

    @classmethod
    def empty(cls) -> "Unlinked":
        vectors = np.zeros((0, 0), dtype=np.float32)
        return cls([], int_array(), [], SpanInputs.empty(), vectors)

    @property
    def keys(self) -> list[MentionKey]:
        """Keys that identify the mentions."""
        return [record.key for record in self.records]

    def keys_of(self, rows: np.ndarray) -> list[MentionKey]:
        return [self.records[row].key for row in rows.tolist()]

    def row(self, key: MentionKey) -> int:
        """Row of a mention, -1 if it is not stored."""
        return self._row_of.get(key, -1)

    def extend(self, mentions: "Unlinked") -> None:
        """Add mentions, none of which is stored yet."""
        if not len(mentions):
            return
        # Those of most discoveries are all new, and are not copied.
        joined = mentions
        if len(self):
            # Those of another run are numbered on.
            last, first = self.documents[-1], mentions.documents[0]
            shift = last + 1 - first if first < last else 0
            numbered = replace(mentions, documents=mentions.documents + shift)
            joined = Unlinked.concat([self, numbered])
        for name, value in vars(joined).items():
            setattr(self, name, value)

    def encode(self, encode: Callable[[SpanInputs], np.ndarray]) -> None:
        """Encode all mentions anew."""
        if len(self):
            self.vectors = encode(self.inputs)


@dataclass
class Clusters:
    """The clusters of ``n`` mentions. A cluster has a number and an id, both for good.

    of_mention: (n,) int64, the number of each mention's cluster.
    merged_into: (c,) int64, for each cluster the number of the one it was merged into, or its own.
    ids: The id of each cluster.
    accepted: The entity of the knowledge base that a cluster has become, by the cluster's number.
    rejected: The numbers of clusters that are no entity.
    """

    of_mention: np.ndarray = field(default_factory=int_array)
    merged_into: np.ndarray = field(default_factory=int_array)
    ids: list[str] = field(default_factory=list)
    accepted: dict[int, str] = field(default_factory=dict)
    rejected: dict[int, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = {name: number for number, name in enumerate(self.ids)}

    # Reading

    def __contains__(self, cluster_id: str) -> bool:
        return cluster_id in self._numbers

    def current(self, number: int) -> int:
        """Number of the cluster that a cluster was merged into."""
        return int(find(self.merged_into, number))

    @property
    def numbers(self) -> np.ndarray:
        """(n,) int64, the cluster that each mention is now in."""
        return find_all(self.merged_into)[self.of_mention]

    def number_of(self, cluster_id: str) -> int:
        """The number that a cluster's id belongs to. KeyError where there never was one."""
        if cluster_id not in self._numbers:
            raise KeyError(Errors.E703.format(id=cluster_id))
        return self._numbers[cluster_id]

    def is_open(self, number: int) -> bool:
        """Return whether a cluster is a new entity that is neither accepted nor rejected."""
        return number not in self.accepted and number not in self.rejected

    def closed(self) -> np.ndarray:
        """(c,) bool, the clusters that were accepted or rejected."""
        closed = np.zeros(len(self.merged_into), dtype=bool)
        closed[[*self.accepted, *self.rejected]] = True
        return closed

    def by_size(self, *, with_rejected: bool = False) -> dict[int, np.ndarray]:
        """Mentions of each new entity by number. The largest comes first."""
        closed = self.closed()
        if with_rejected:
            closed[list(self.rejected)] = False
        cluster = self.numbers
        order = np.argsort(cluster, kind="stable")
        bounds = np.flatnonzero(np.diff(cluster[order], prepend=-1, append=-1))
        first = order[bounds[:-1]]
        numbers = cluster[order[bounds[:-1]]]
        by = np.lexsort((first, -np.diff(bounds)))
        by = by[~closed[numbers[by]]]
        places = zip(
            numbers[by].tolist(), bounds[by].tolist(), bounds[by + 1].tolist()
        )
        return {number: order[start:end] for number, start, end in places}

    # Adding

    def add(self, keys: Iterable[MentionKey]) -> int:
        """Add empty clusters, named by their first mentions' keys. RETURNS: The first's number."""
        start = len(self.ids)
        for key in keys:
            cluster_id = new_entity_id(key)
            if cluster_id in self._numbers:
                # Its first mention has started another cluster before and has left it since.
                cluster_id = f"{cluster_id}-{len(self.ids)}"
            self.add_id(cluster_id)
        self.merged_into = np.append(self.merged_into, np.arange(start, len(self.ids)))
        return start

    def add_id(self, cluster_id: str) -> None:
        """Assign an unused id to the first cluster without one."""
        self._numbers[cluster_id] = len(self.ids)
        self.ids.append(cluster_id)

    def extend(
        self, keys: Sequence[MentionKey], groups: np.ndarray, continued: dict[int, int]
    ) -> None:
        """Add mentions in groups. A new cluster is named by the first of its keys in their order.

        keys: The key of each of m mentions.
        groups: (m,) int64, equal for the mentions of one cluster.
        continued: The numbers of groups that are clusters already.
        """
        first: dict[int, MentionKey] = {}
        for group, key in zip(groups.tolist(), keys):
            if group not in continued and not (group in first and first[group] < key):
                first[group] = key
        new = sorted(first, key=first.__getitem__)
        start = self.add(map(first.__getitem__, new))
        numbers = {**continued, **dict(zip(new, range(start, start + len(new))))}
        added = int_array([numbers[group] for group in groups.tolist()])
        self.of_mention = np.append(self.of_mention, added)

    # Editing

    def move(
        self, number: int, mentions: np.ndarray, to: int, founded: set[str]
    ) -> None:
        """Move mentions from one cluster to another.

        Ids that lead to the first lead to the other one, where the mention that they are named by
        is among those that move.

        mentions: (k,) int64.
        founded: The ids that are named by these mentions.
        """
        cluster_of = find_all(self.merged_into)
        self.of_mention[cluster_of[self.of_mention] == number] = number
        for member in np.flatnonzero(cluster_of == number).tolist():
            if member != number:
                self.merged_into[member] = (
                    to if self.ids[member] in founded else number
                )
        self.merged_into[to] = to
        self.of_mention[mentions] = to
