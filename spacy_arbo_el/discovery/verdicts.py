"""Verdicts on new entities. Merges, splits, rejections and acceptances, logged and undone."""

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np

from ..base.errors import ArboError, Errors
from ..mentions.record import MentionKey
from .entities import new_entity_id
from .grouping import Decided
from .store import Clusters, Rows, Unlinked

Entry = dict[str, Any]
# What people do. "join" is a merge that new mentions caused; it can't be undone.
DECISIONS = ("merge", "split", "reject", "accept")


@dataclass
class History:
    """The log of new entities.

    One decision has a number, its ``step``, which all its entries have. That a decision was undone
    is a separate entry, so that the log only ever grows.

    entries: JSON-serialisable, each with its "action", "id" and time ("at").
    """

    entries: list[Entry]

    def next_step(self) -> int:
        """A number for a new decision."""
        return 1 + max((entry.get("step", 0) for entry in self.entries), default=0)

    def note(self, action: str, entity_id: str, **more: Any) -> None:
        """Add an entry."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self.entries.append({"action": action, "id": entity_id, **more, "at": now})

    def decisions(self) -> list[Entry]:
        """The entries of decisions that were not undone, in order."""
        undone = {entry.get("step") for entry in self.entries if entry["action"] == "undo"}
        return [
            entry
            for entry in self.entries
            if entry["action"] in DECISIONS and entry.get("step") not in undone
        ]

    def standing(self, step: int | None = None) -> list[Entry]:
        """The entries of a standing decision; by default the last.

        Raises ValueError if there is none, or if a later decision is on the same new entities.
        """
        decisions = self.decisions()
        step = decisions[-1]["step"] if decisions and step is None else step
        entries = [entry for entry in decisions if entry["step"] == step]
        if not entries:
            raise ArboError(Errors.E716)
        ids = set().union(*map(_ids_in, entries))
        added = {entry["kb_id"] for entry in entries if entry.get("added")}
        for later in decisions:
            is_on_them = ids & _ids_in(later) or later.get("kb_id") in added
            if later["step"] > entries[0]["step"] and is_on_them:
                about = {"action": later["action"], "id": later["id"], "later": later["step"]}
                raise ArboError(Errors.E714.format(step=step, **about))
        return entries

    def last_acceptance(self, keys: set[MentionKey], kb_id: str) -> list[Entry]:
        """Log entries of the last acceptance of these mentions, empty for none."""
        entries = [
            entry
            for entry in self.decisions()
            if entry["action"] == "accept"
            and entry["kb_id"] == kb_id
            and any(tuple(key) in keys for key in entry["mentions"])
        ]
        return [entry for entry in entries if entry["step"] == entries[-1]["step"]]

    def is_continued_by(self, other: "History") -> bool:
        """Return whether another history continues this one.

        Acceptances do not count: they are noted wherever the mentions are.
        """
        mine, others = self._binding(), other._binding()
        return others[: len(mine)] == mine

    def _binding(self) -> list[Entry]:
        return [e for e in self.entries if e["action"] not in ("join", "accept")]

    def joins_not_in(self, other: "History") -> list[Entry]:
        """Merges by mentions that another history lacks. Both have the same beginning."""
        same = 0
        for mine, others in zip(self.entries, other.entries):
            if mine != others:
                break
            same += 1
        return [entry for entry in self.entries[same:] if entry["action"] == "join"]


def _ids_in(entry: Entry) -> set[str]:
    """The new entities that a decision is on."""
    return {entry[name] for name in ("id", "into", "off", "of") if name in entry}


@dataclass(frozen=True)
class Verdicts:
    """Changes stored new entities, noting how to undo each change.

    rows: The mentions.
    clusters: The clusters of the mentions.
    history: The log.
    """

    rows: Rows
    clusters: Clusters
    history: History

    def attach(self, mentions: Unlinked, neighbours: np.ndarray) -> list[str]:
        """Add mentions one after the other, see ``NewEntities.attach``."""
        clusters, keys = self.clusters, mentions.keys
        attached = clusters.attach(keys, mentions.documents, neighbours)
        for gone, stays, mention in attached.merges:
            place, ids = "{}:{}:{}".format(*keys[mention]), clusters.ids
            self.history.note("join", ids[gone], into=ids[stays], mention=place)
        self.rows.extend(mentions)
        return [
            clusters.ids[number] if clusters.is_open(number) else ""
            for number in attached.assigned.tolist()
        ]

    def merge(self, into: int, others: list[int]) -> None:
        """Merge clusters into one."""
        clusters, step = self.clusters, self.history.next_step()
        numbers = clusters.numbers
        mentions = [self._keys(np.flatnonzero(numbers == number)) for number in others]
        apart = [[clusters.ids[n] for n in pair] for pair in clusters.merge(into, others)]
        for number, keys in zip(others, mentions):
            more = {"into": clusters.ids[into], "mentions": keys, "apart": apart, "step": step}
            self.history.note("merge", clusters.ids[number], **more)
            apart = []

    def split(self, number: int, rows: np.ndarray, chosen: np.ndarray) -> int:
        """Split some mentions off from a cluster.

        An id stays with the mention that it is named by. So of a cluster that was merged from two,
        and is split into these again, each gets its id back.

        rows: The mentions of the cluster.
        chosen: Those to split off.
        RETURNS: The number of the cluster of the chosen mentions.
        """
        clusters = self.clusters
        stays, moves = number, chosen
        former = self._former(number, chosen)
        if not former and clusters.ids[number] in self._founded(chosen):
            # The chosen ones are what the cluster was before others were merged into it.
            rest = np.setdiff1d(rows, chosen)
            former = self._former(number, rest)
            moves = rest if former else chosen
        off = former[0] if former else clusters.add(min(self.rows.keys_of(moves)))
        clusters.move(number, moves, off, self._founded(moves))
        clusters.kept_apart.append((stays, off))
        ids, step = clusters.ids, self.history.next_step()
        self.history.note("split", ids[stays], off=ids[off], mentions=self._keys(moves), step=step)
        return off if moves is chosen else number

    def reject(self, number: int) -> None:
        """Mark a cluster as no entity."""
        self.clusters.rejected[number] = None
        self.history.note("reject", self.clusters.ids[number], step=self.history.next_step())

    def accept(self, number: int, kb_id: str, **more: Any) -> None:
        """Mark a cluster as an entity of the knowledge base.

        more: What the log says besides.
        """
        keys = self._keys(np.flatnonzero(self.clusters.numbers == number))
        self._note_acceptance(number, kb_id, keys, self.history.next_step(), more)

    def _note_acceptance(
        self, number: int, kb_id: str, keys: list[list[Any]], step: int, more: dict[str, Any]
    ) -> None:
        self.clusters.accepted[number] = kb_id
        settings = {"kb_id": kb_id, "mentions": keys, "step": step, **more}
        self.history.note("accept", self.clusters.ids[number], **settings)

    def leave_out(self, keys: set[MentionKey], kb_id: str) -> None:
        """Mark mentions as those of a knowledge base entity."""
        clusters, step = self.clusters, self.history.next_step()
        rows = {row for row in map(self.rows.row, keys) if row >= 0}
        for number, members in list(clusters.by_size().items()):
            taken = np.array([row for row in members.tolist() if row in rows], dtype=np.int64)
            if not len(taken):
                continue
            more = {}
            if len(taken) < len(members):
                off = clusters.add(min(self.rows.keys_of(taken)))
                clusters.move(number, taken, off, set())
                number, more = off, {"of": clusters.ids[number]}
            self._note_acceptance(number, kb_id, self._keys(taken), step, more)

    # Taking back

    def undo(self, entries: list[Entry]) -> None:
        """Undo a decision from its log entry."""
        take_back = {
            "merge": self._undo_merge,
            "split": self._undo_split,
            "reject": self._restore,
            "accept": self._undo_accept,
        }
        for entry in reversed(entries):
            take_back[entry["action"]](entry)
        first = entries[0]
        self.history.note("undo", first["id"], of=first["action"], step=first["step"])

    def _undo_merge(self, entry: Entry) -> None:
        clusters = self.clusters
        gone = clusters.number_of(entry["id"])
        number = clusters.current(gone)
        if number != gone:
            rows = self._rows_in(entry["mentions"], number)
            clusters.move(number, rows, gone, self._founded(rows))
        clusters.kept_apart += [
            (clusters.number_of(a), clusters.number_of(b)) for a, b in entry["apart"]
        ]

    def _undo_split(self, entry: Entry) -> None:
        clusters = self.clusters
        number, off = clusters.number_of(entry["id"]), clusters.number_of(entry["off"])
        clusters.kept_apart = [pair for pair in clusters.kept_apart if {*pair} != {number, off}]
        number, now = clusters.current(number), clusters.current(off)
        if now == off and off != number:
            clusters.merge(number, [off])
        elif now != number:
            # New mentions have merged the part with others, which stay.
            rows = self._rows_in(entry["mentions"], now)
            clusters.move(now, rows, number, self._founded(rows))

    def _undo_accept(self, entry: Entry) -> None:
        number = self._restore(entry)
        if "of" in entry:
            clusters = self.clusters
            clusters.merge(clusters.current(clusters.number_of(entry["of"])), [number])

    def _restore(self, entry: Entry) -> int:
        number = self.clusters.number_of(entry["id"])
        self.clusters.restore(number)
        return number

    # The next discovery

    def decided(self) -> Decided:
        """Decisions that the next discovery must keep."""
        clusters = self.clusters
        names = [
            name
            for entry in self.history.decisions()
            if entry["action"] != "accept"
            for name in (entry["id"], entry.get("into"), entry.get("off"))
            if name is not None
        ]
        chosen = np.zeros(len(clusters.merged_into), dtype=bool)
        chosen[[clusters.current(clusters.number_of(name)) for name in names]] = True
        chosen[list(clusters.accepted)] = False
        numbers = clusters.numbers
        rows = np.flatnonzero(chosen[numbers])
        places = [(record.key, n) for record, n in zip(self.rows.records, numbers.tolist())]
        accepted = frozenset(key for key, number in places if number in clusters.accepted)
        others = {key: n for key, n in places if not chosen[n] and key not in accepted}
        mentions = self.rows.take(rows)
        return Decided(mentions.records, mentions.vectors, numbers[rows], accepted, others)

    def carry_to(self, later: "Verdicts") -> None:
        """Bring what only these have to a later discovery's entities.

        Raises ValueError where the later discovery did not know of all decisions.
        """
        if not self.history.is_continued_by(later.history):
            raise ArboError(Errors.E718)
        joins = self.history.joins_not_in(later.history)
        clusters, before = later.clusters, self.clusters.numbers
        there = self._numbers_in(clusters)
        self._carry_acceptances(later)
        left = [i for i, record in enumerate(self.rows.records) if later.rows.row(record.key) < 0]
        if left:
            rows = np.array(left, dtype=np.int64)
            moved = [clusters.current(int(there[number])) for number in before[rows].tolist()]
            later.rows.extend(self.rows.take(rows))
            clusters.of_mention = np.append(clusters.of_mention, np.array(moved, dtype=np.int64))
        later.history.entries.extend(joins)

    def _numbers_in(self, there: Clusters) -> np.ndarray:
        """The number of each cluster among others. Those that are missing there are added."""
        here, count = self.clusters, len(there.ids)
        for name in here.ids:
            if name not in there:
                there.add_id(name)
        there.merged_into = np.append(there.merged_into, np.arange(count, len(there.ids)))
        numbers = np.array([there.number_of(name) for name in here.ids], dtype=np.int64)
        for number, own in enumerate(numbers.tolist()):
            # What the others knew is as they say. Ids that came later lead where they led here.
            if own >= count:
                there.merged_into[own] = there.current(int(numbers[here.current(number)]))
        return numbers

    def _carry_acceptances(self, later: "Verdicts") -> None:
        """Leave out mentions accepted here after the later discovery."""
        numbers, accepted, there = self.clusters.numbers, self.clusters.accepted, later.clusters
        keys: dict[str, set[MentionKey]] = {}
        for record, number in zip(self.rows.records, numbers.tolist()):
            if number in accepted:
                keys.setdefault(accepted[number], set()).add(record.key)
        for kb_id, of_entity in keys.items():
            later.leave_out(of_entity, kb_id)
        for number, kb_id in accepted.items():
            own = there.current(there.number_of(self.clusters.ids[number]))
            there.accepted.setdefault(own, kb_id)

    # Ids and keys

    def _former(self, number: int, rows: np.ndarray) -> list[int]:
        """Clusters merged into this one, named by its mentions."""
        clusters = self.clusters
        numbers = (clusters.number_of(name) for name in self._founded(rows) if name in clusters)
        return sorted(n for n in numbers if n != number and clusters.current(n) == number)

    def _founded(self, rows: np.ndarray) -> set[str]:
        """The ids that are made of the keys of mentions."""
        return {new_entity_id(key) for key in self.rows.keys_of(rows)}

    def _rows_in(self, keys: list[list[Any]], number: int) -> np.ndarray:
        """The rows of mentions that are in a cluster."""
        rows = [self.rows.row((str(document), start, end)) for document, start, end in keys]
        numbers = self.clusters.numbers
        inside = [row for row in rows if row >= 0 and numbers[row] == number]
        return np.array(inside, dtype=np.int64)

    def _keys(self, rows: np.ndarray) -> list[list[Any]]:
        """The keys of mentions, JSON-serialisable."""
        return [list(key) for key in self.rows.keys_of(rows)]
