"""Verdicts on new entities. Merges, splits, rejections and acceptances, logged and undone."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.arrays import int_array
from ..base.errors import Errors
from ..mentions.record import MentionKey
from .decision_log import DecisionLog, Entry, clusters_of
from .entities import new_entity_id
from .grouping import Decided
from .store import Clusters, Unlinked


@dataclass(frozen=True)
class Verdicts:
    """Changes stored new entities, noting how to undo each change."""

    rows: Unlinked
    clusters: Clusters
    log: DecisionLog

    def merge(self, into: int, absorbed: list[int]) -> None:
        clusters = self.clusters
        numbers = clusters.numbers
        mentions = [
            self._keys(np.flatnonzero(numbers == number)) for number in absorbed
        ]
        clusters.merged_into[absorbed] = into
        ids = [clusters.ids[number] for number in absorbed]
        self.log.add("merge", id=clusters.ids[into], others=ids, mentions=mentions)

    def split(self, number: int, rows: np.ndarray, chosen: np.ndarray) -> int:
        """Split some mentions off from a cluster.

        An id stays with the mention that it is named by. So of a cluster that was merged from two,
        and is split into these again, each gets its id back.

        rows: The mentions of the cluster.
        chosen: Those to split off.
        RETURNS: The number of the cluster of the chosen mentions.
        """
        clusters = self.clusters
        stays = number
        moves = chosen
        former = self._former(number, chosen)
        if not former and clusters.ids[number] in self._founded(chosen):
            # The chosen ones are what the cluster was before others were merged into it.
            remaining = np.setdiff1d(rows, chosen)
            former = self._former(number, remaining)
            moves = remaining if former else chosen
        off = former[0] if former else clusters.add([min(self.rows.keys_of(moves))])
        clusters.move(number, moves, off, self._founded(moves))
        ids = clusters.ids
        self.log.add("split", id=ids[stays], off=ids[off], mentions=self._keys(moves))
        return off if moves is chosen else number

    def reject(self, number: int) -> None:
        """Mark a cluster as no entity."""
        self.clusters.rejected[number] = None
        self.log.add("reject", id=self.clusters.ids[number])

    def accept(self, number: int, kb_id: str, **more: Any) -> None:
        """Mark a cluster as an entity of the knowledge base."""
        clusters = self.clusters
        keys = self._keys(np.flatnonzero(clusters.numbers == number))
        clusters.accepted[number] = kb_id
        self.log.add(
            "accept", id=clusters.ids[number], kb_id=kb_id, mentions=keys, **more
        )

    def leave_out(self, keys: set[MentionKey], kb_id: str) -> None:
        """Mark mentions as those of a knowledge base entity."""
        clusters = self.clusters
        rows = {row for row in map(self.rows.row, keys) if row >= 0}
        ids = []
        split_from = {}
        mentions_left_out = []
        for number, members in clusters.by_size(with_rejected=True).items():
            taken = int_array([row for row in members.tolist() if row in rows])
            if not len(taken):
                continue
            if len(taken) < len(members) or number in clusters.rejected:
                off = clusters.add([min(self.rows.keys_of(taken))])
                clusters.move(number, taken, off, set())
                split_from[clusters.ids[off]] = clusters.ids[number]
                number = off
            clusters.accepted[number] = kb_id
            ids.append(clusters.ids[number])
            mentions_left_out += self._keys(taken)
        if ids:
            self.log.add(
                "leave_out",
                ids=ids,
                kb_id=kb_id,
                mentions=mentions_left_out,
                **{"from": split_from},
            )

    # Taking back

    def undo(self, entry: Entry) -> None:
        """Undo a decision from its log entry."""
        action = entry["action"]
        if action == "merge":
            self._undo_merge(entry)
        elif action == "split":
            self._undo_split(entry)
        else:
            self._restore(entry)
        self.log.add("undo", of=entry["n"])

    def _undo_merge(self, entry: Entry) -> None:
        clusters = self.clusters
        for name, mentions in reversed(list(zip(entry["others"], entry["mentions"]))):
            gone = clusters.number_of(name)
            number = clusters.current(gone)
            if number != gone:
                rows = self._rows_in(mentions, number)
                clusters.move(number, rows, gone, self._founded(rows))

    def _undo_split(self, entry: Entry) -> None:
        clusters = self.clusters
        number = clusters.current(clusters.number_of(entry["id"]))
        off = clusters.current(clusters.number_of(entry["off"]))
        if off != number:
            clusters.merged_into[off] = number

    def _restore(self, entry: Entry) -> None:
        clusters = self.clusters
        split_from = entry.get("from", {})
        for name in reversed(entry.get("ids") or [entry["id"]]):
            number = clusters.number_of(name)
            clusters.accepted.pop(number, None)
            clusters.rejected.pop(number, None)
            if name in split_from:
                source = clusters.current(clusters.number_of(split_from[name]))
                clusters.merged_into[number] = source

    # The next discovery

    def decided(self) -> Decided:
        """Decisions that the next discovery must keep."""
        clusters = self.clusters
        names = [
            name
            for entry in self.log.standing()
            if "kb_id" not in entry
            for name in clusters_of(entry)
        ]
        chosen = np.zeros(len(clusters.merged_into), dtype=bool)
        chosen[[clusters.current(clusters.number_of(name)) for name in names]] = True
        chosen[list(clusters.accepted)] = False
        numbers = clusters.numbers
        rows = np.flatnonzero(chosen[numbers])
        places = [
            (record.key, n) for record, n in zip(self.rows.records, numbers.tolist())
        ]
        accepted = frozenset(
            key for key, number in places if number in clusters.accepted
        )
        undecided = {
            key: n for key, n in places if not chosen[n] and key not in accepted
        }
        mentions = self.rows.take(rows)
        return Decided(
            mentions.records, mentions.vectors, numbers[rows], accepted, undecided
        )

    def carry_to(self, later: "Verdicts") -> None:
        """Bring what only these have to a later discovery's entities.

        Raises ValueError where the later discovery did not know of all decisions.
        """
        mine = _binding(self.log)
        later_decisions = _binding(later.log)
        if later_decisions[: len(mine)] != mine:
            raise Errors.E718()
        clusters = later.clusters
        before = self.clusters.numbers
        there = self._numbers_in(clusters)
        self._carry_acceptances(later)
        missing = [
            i
            for i, record in enumerate(self.rows.records)
            if later.rows.row(record.key) < 0
        ]
        if missing:
            rows = int_array(missing)
            moved = [
                clusters.current(int(there[number]))
                for number in before[rows].tolist()
            ]
            later.rows.extend(self.rows.take(rows))
            clusters.of_mention = np.append(clusters.of_mention, int_array(moved))

    def _numbers_in(self, there: Clusters) -> np.ndarray:
        """The number of each cluster among others. Those that are missing there are added."""
        here = self.clusters
        count = len(there.ids)
        for name in here.ids:
            if name not in there:
                there.add_id(name)
        there.merged_into = np.append(
            there.merged_into, np.arange(count, len(there.ids))
        )
        numbers = int_array([there.number_of(name) for name in here.ids])
        for number, number_there in enumerate(numbers.tolist()):
            # What the others knew is as they say. Ids that came later lead where they led here.
            if number_there >= count:
                there.merged_into[number_there] = there.current(
                    int(numbers[here.current(number)])
                )
        return numbers

    def _carry_acceptances(self, later: "Verdicts") -> None:
        """Leave out mentions accepted here after the later discovery."""
        numbers = self.clusters.numbers
        accepted = self.clusters.accepted
        there = later.clusters
        keys: dict[str, set[MentionKey]] = {}
        for record, number in zip(self.rows.records, numbers.tolist()):
            if number in accepted:
                keys.setdefault(accepted[number], set()).add(record.key)
        for kb_id, of_entity in keys.items():
            later.leave_out(of_entity, kb_id)
        for number, kb_id in accepted.items():
            number_there = there.current(there.number_of(self.clusters.ids[number]))
            there.accepted.setdefault(number_there, kb_id)

    # Ids and keys

    def _former(self, number: int, rows: np.ndarray) -> list[int]:
        """Clusters merged into this one, named by its mentions."""
        clusters = self.clusters
        numbers = (
            clusters.number_of(name)
            for name in self._founded(rows)
            if name in clusters
        )
        return sorted(
            n for n in numbers if n != number and clusters.current(n) == number
        )

    def _founded(self, rows: np.ndarray) -> set[str]:
        return {new_entity_id(key) for key in self.rows.keys_of(rows)}

    def _rows_in(self, keys: list[list[Any]], number: int) -> np.ndarray:
        rows = [
            self.rows.row((str(document), start, end)) for document, start, end in keys
        ]
        numbers = self.clusters.numbers
        inside = [row for row in rows if row >= 0 and numbers[row] == number]
        return int_array(inside)

    def _keys(self, rows: np.ndarray) -> list[list[Any]]:
        return [list(key) for key in self.rows.keys_of(rows)]


def _binding(log: DecisionLog) -> list[Entry]:
    """The entries that a later discovery must know of.

    Acceptances do not count: they are noted wherever the mentions are.
    """
    return [e for e in log.entries if "kb_id" not in e]
