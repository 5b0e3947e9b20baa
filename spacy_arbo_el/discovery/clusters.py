"""The clusters of new entities: where mentions were put, and what was decided since.

The cluster that a mention is in follows from a fold over the log: each decision that stands moves
mentions. To undo a decision is to fold the others.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..base.errors import ArboError, Errors
from ..graph.linkage import find, find_all
from ..mentions.record import MentionKey
from .decision_log import DecisionLog, Entry, clusters_of
from .entities import new_entity_id
from .grouping import Decided
from .store import Rows

_NONE = np.zeros(0, dtype=np.int64)


class Clusters:
    """The clusters of ``n`` mentions. A cluster has a number and an id, both for good.

    rows: The mentions.
    log: What was decided on them.
    ids: The id of each cluster.
    home: (n,) int64, the number of the cluster that each mention was put in.
    origin: (c,) int64, the number of the cluster that each was split off from, or its own.
    numbers: (n,) int64, the number of the cluster that each mention is in now.
    accepted: The entity of the knowledge base that a cluster has become, by the cluster's number.
    rejected: The numbers of clusters that are no entity.
    former: The homes that mentions had in an earlier discovery, where they are put again.
    """

    def __init__(
        self,
        rows: Rows,
        log: DecisionLog,
        ids: Iterable[str] = (),
        home: np.ndarray = _NONE,
        origin: np.ndarray = _NONE,
    ) -> None:
        self.rows = rows
        self.log = log
        self.ids = list(ids)
        self.home = home
        self.origin = origin
        self.former: dict[MentionKey, int] = {}
        self._numbers = {name: number for number, name in enumerate(self.ids)}
        self.fold()

    # The fold

    def fold(self) -> None:
        """Move mentions from their homes by the decisions that stand."""
        # The cluster that the id of each cluster leads to.
        self._leads = self.origin.copy()
        self.numbers = find_all(self._leads)[self.home]
        self.accepted: dict[int, str] = {}
        self.rejected: set[int] = set()
        for entry in self.log.standing():
            self._apply(entry)

    def decide(self, action: str, **more: Any) -> None:
        """Add a decision to the log, and fold it."""
        self._apply(self.log.add(action, **more))

    def undo(self, entry: Entry) -> None:
        """Fold the log without a decision."""
        self.log.add("undo", of=entry["n"])
        self.fold()

    def _apply(self, entry: Entry) -> None:
        action = entry["action"]
        if action == "merge":
            into = self.named(entry["id"])
            for other in map(self.named, entry["others"]):
                self._leads[other] = into
                self.numbers[self.numbers == other] = into
        elif action == "split":
            number = self.named(entry["id"])
            off = self.number_of(entry["off"])
            # Those that came to the part later too.
            late = np.flatnonzero((self.home == off) & (self.numbers == number))
            late = np.setdiff1d(late, self._rows_in(entry["stayed"], number))
            moved = np.union1d(self._rows_in(entry["mentions"], number), late)
            self._move(number, moved, off, self._founded(moved))
        elif action == "reject":
            self.rejected.add(self.named(entry["id"]))
        else:
            for off, source in entry.get("from", {}).items():
                number = self.named(source)
                moved = self._rows_in(entry["mentions"], number)
                self._move(number, moved, self.number_of(off), set())
            for name in entry.get("ids") or [entry["id"]]:
                self.accepted[self.named(name)] = entry["kb_id"]

    def _move(self, number: int, rows: np.ndarray, to: int, founded: set[str]) -> None:
        """Move mentions from one cluster to another, and the ids that are ``founded`` by them."""
        leads = find_all(self._leads)
        for other in np.flatnonzero(leads == number).tolist():
            if other != number:
                self._leads[other] = to if self.ids[other] in founded else number
        self._leads[to] = to
        self.numbers[rows] = to

    # Reading

    def __contains__(self, cluster_id: str) -> bool:
        return cluster_id in self._numbers

    def number_of(self, cluster_id: str) -> int:
        """The number that a cluster's id belongs to. KeyError where there never was one."""
        if cluster_id not in self._numbers:
            raise KeyError(Errors.E703.format(id=cluster_id))
        return self._numbers[cluster_id]

    def named(self, cluster_id: str) -> int:
        """Number of the cluster that an id leads to now."""
        return int(find(self._leads, self.number_of(cluster_id)))

    def id_now(self, cluster_id: str) -> str:
        """What an id leads to.

        RETURNS: The present id, that of the entity that the cluster was accepted as, or "" where it
            was rejected.
        """
        number = self.named(cluster_id)
        if number in self.accepted:
            return self.accepted[number]
        return "" if number in self.rejected else self.ids[number]

    def is_open(self, number: int) -> bool:
        """Return whether a cluster is a new entity that is neither accepted nor rejected."""
        return number not in self.accepted and number not in self.rejected

    def closed(self) -> np.ndarray:
        """(c,) bool, the clusters that were accepted or rejected."""
        closed = np.zeros(len(self.ids), dtype=bool)
        closed[[*self.accepted, *self.rejected]] = True
        return closed

    def by_size(self) -> dict[int, np.ndarray]:
        """Mentions of each new entity by number. The largest comes first."""
        order = np.argsort(self.numbers, kind="stable")
        bounds = np.flatnonzero(np.diff(self.numbers[order], prepend=-1, append=-1))
        first = order[bounds[:-1]]
        numbers = self.numbers[first]
        by = np.lexsort((first, -np.diff(bounds)))
        by = by[~self.closed()[numbers[by]]]
        places = zip(numbers[by].tolist(), bounds[by].tolist(), bounds[by + 1].tolist())
        return {number: order[start:end] for number, start, end in places}

    # Adding

    def extend(self, keys: Sequence[MentionKey], groups: np.ndarray, known: dict[int, int]) -> None:
        """Add mentions in groups. A new cluster is named by the first of its keys in their order.

        keys: The key of each of m mentions.
        groups: (m,) int64, equal for the mentions of one cluster.
        known: The numbers of groups that are clusters already.
        """
        first: dict[int, MentionKey] = {}
        for group, key in zip(groups.tolist(), keys):
            if group not in known and not (group in first and first[group] < key):
                first[group] = key
        new = sorted(first, key=first.__getitem__)
        numbers = {**known, **{group: self._found(first[group]) for group in new}}
        added = [numbers[group] for group in groups.tolist()]
        # A mention that is where it was goes back where it was when a decision is undone.
        now = find_all(self._leads)
        former = (self.former.get(key, number) for key, number in zip(keys, added))
        homes = [one if now[one] == number else number for one, number in zip(former, added)]
        self.numbers = np.append(self.numbers, np.array(added, dtype=np.int64))
        self.home = np.append(self.home, np.array(homes, dtype=np.int64))

    def _found(self, key: MentionKey, source: int | None = None) -> int:
        """Add an empty cluster, named by its first mention's key. RETURNS: Its number.

        source: The cluster that it is split off from.
        """
        cluster_id = new_entity_id(key)
        if cluster_id in self:
            # Its first mention has started another cluster before and has left it since.
            cluster_id = f"{cluster_id}-{len(self.ids)}"
        return self._add(cluster_id, len(self.ids) if source is None else source)

    def _add(self, cluster_id: str, origin: int) -> int:
        number = self._numbers[cluster_id] = len(self.ids)
        self.ids.append(cluster_id)
        self.origin = np.append(self.origin, origin)
        self._leads = np.append(self._leads, origin)
        return number

    # Deciding

    def split(self, number: int, chosen: np.ndarray) -> int:
        """Split some mentions off from a cluster.

        An id stays with the mention that it is named by. So of a cluster that was merged from two,
        and is split into these again, each gets its id back.

        RETURNS: The number of the cluster of the chosen mentions.
        """
        moves = chosen
        former = self._former(number, chosen)
        if not former and self.ids[number] in self._founded(chosen):
            # The chosen ones are what the cluster was before others were merged into it.
            rest = np.setdiff1d(np.flatnonzero(self.numbers == number), chosen)
            former = self._former(number, rest)
            moves = rest if former else chosen
        off = former[0] if former else self._found(min(self.rows.keys_of(moves)), number)
        own = np.flatnonzero((self.home == off) & (self.numbers == number))
        stayed = self._keys(np.setdiff1d(own, moves))
        about = {"mentions": self._keys(moves), "stayed": stayed}
        self.decide("split", id=self.ids[number], off=self.ids[off], **about)
        return off if moves is chosen else number

    def accept(self, number: int, kb_id: str, **more: Any) -> None:
        """Mark a cluster as an entity of the knowledge base.

        more: What the log says besides.
        """
        keys = self._keys(np.flatnonzero(self.numbers == number))
        self.decide("accept", id=self.ids[number], kb_id=kb_id, mentions=keys, **more)

    def leave_out(self, keys: set[MentionKey], kb_id: str, names: Iterable[str] = ()) -> None:
        """Mark mentions, and what some ids lead to, as an entity of the knowledge base."""
        rows = {row for row in map(self.rows.row, keys) if row >= 0}
        ids = [name for name in names if self.is_open(self.named(name))]
        parts = {}
        left = []
        for number, members in self.by_size().items():
            taken = np.array([row for row in members.tolist() if row in rows], dtype=np.int64)
            if not len(taken):
                continue
            name = self.ids[number]
            if len(taken) < len(members):
                off = self._found(min(self.rows.keys_of(taken)), number)
                parts[self.ids[off]] = name
                name = self.ids[off]
            ids.append(name)
            left += self._keys(taken)
        if ids:
            about = {"mentions": left, "from": parts}
            self.decide("leave_out", ids=list(dict.fromkeys(ids)), kb_id=kb_id, **about)

    # The next discovery

    def decided(self) -> Decided:
        """Decisions that the next discovery must keep."""
        entries = [entry for entry in self.log.standing() if "kb_id" not in entry]
        chosen = np.zeros(len(self.ids), dtype=bool)
        chosen[[self.named(name) for entry in entries for name in clusters_of(entry)]] = True
        chosen[list(self.accepted)] = False
        rows = np.flatnonzero(chosen[self.numbers])
        places = [(one.key, n) for one, n in zip(self.rows.records, self.numbers.tolist())]
        accepted = frozenset(key for key, number in places if number in self.accepted)
        others = {key: n for key, n in places if not chosen[n] and key not in accepted}
        mentions = self.rows.take(rows)
        return Decided(mentions.records, mentions.vectors, self.numbers[rows], accepted, others)

    def carry_to(self, later: "Clusters") -> None:
        """Bring what only these have to a later discovery's clusters.

        Raises ValueError where the later discovery did not know of all decisions.
        """
        mine = _binding(self.log)
        if _binding(later.log)[: len(mine)] != mine:
            raise ArboError(Errors.E718)
        missing = [number for number, name in enumerate(self.ids) if name not in later]
        for number in missing:
            later._add(self.ids[number], len(later.ids))
        there = np.array([later.number_of(name) for name in self.ids], dtype=np.int64)
        later.origin[there[missing]] = there[self.origin[missing]]
        left = [i for i, record in enumerate(self.rows.records) if later.rows.row(record.key) < 0]
        later.rows.extend(self.rows.take(np.array(left, dtype=np.int64)))
        later.home = np.append(later.home, there[self.home[left]])
        later.fold()
        of_entity: dict[str, list[int]] = {}
        for number, kb_id in self.accepted.items():
            of_entity.setdefault(kb_id, []).append(number)
        for kb_id, numbers in of_entity.items():
            rows = np.flatnonzero(np.isin(self.numbers, numbers))
            names = [self.ids[number] for number in numbers]
            later.leave_out(set(self.rows.keys_of(rows)), kb_id, names)

    # Ids and keys

    def _former(self, number: int, rows: np.ndarray) -> list[int]:
        """Clusters merged into this one, named by its mentions."""
        names = [name for name in self._founded(rows) if name in self]
        numbers = [self.number_of(name) for name in names if self.named(name) == number]
        return sorted(one for one in numbers if one != number)

    def _founded(self, rows: np.ndarray) -> set[str]:
        return {new_entity_id(key) for key in self.rows.keys_of(rows)}

    def _rows_in(self, keys: list[list[Any]], number: int) -> np.ndarray:
        rows = [self.rows.row((str(document), start, end)) for document, start, end in keys]
        inside = [row for row in rows if row >= 0 and self.numbers[row] == number]
        return np.array(inside, dtype=np.int64)

    def _keys(self, rows: np.ndarray) -> list[list[Any]]:
        return [list(key) for key in self.rows.keys_of(rows)]


def _binding(log: DecisionLog) -> list[Entry]:
    """The entries that a later discovery must know of.

    Acceptances do not count: they are noted wherever the mentions are.
    """
    return [entry for entry in log.entries if "kb_id" not in entry]
