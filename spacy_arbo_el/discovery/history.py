"""What was decided on new entities, in order: merges, splits, rejections and acceptances."""

from datetime import datetime, timezone
from typing import Any, Dict, List

from ..errors import Errors

Entry = Dict[str, Any]
# What people do. "join" is a merge that new mentions caused; it can't be undone.
DECISIONS = ("merge", "split", "reject", "accept")
# The columns of a table of decisions, see `arbo new apply`.
FILLED = ("decision", "kb_id", "title", "description", "into", "members")


class History:
    """The log of new entities.

    One decision has a number, its ``step``, which all its entries have. That a decision was undone
    is an entry of its own, so that the log only ever grows.

    entries: JSON-serialisable, each with its "action", "id" and time ("at").
    """

    def __init__(self, entries: List[Entry]) -> None:
        self.entries = entries

    def next_step(self) -> int:
        """A number for a new decision."""
        return 1 + max((entry.get("step", 0) for entry in self.entries), default=0)

    def note(self, action: str, entity_id: str, **more: Any) -> None:
        """Add an entry."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        self.entries.append({"action": action, "id": entity_id, **more, "at": now})

    def decisions(self) -> List[Entry]:
        """The entries of decisions that were not undone, in order."""
        undone = {entry.get("step") for entry in self.entries if entry["action"] == "undo"}
        return [
            entry
            for entry in self.entries
            if entry["action"] in DECISIONS and entry.get("step") not in undone
        ]

    def last(self) -> List[Entry]:
        """The entries of the last decision that was not undone; ValueError where there is none."""
        decisions = self.decisions()
        if not decisions:
            raise ValueError(Errors.E716)
        step = decisions[-1]["step"]
        return [entry for entry in decisions if entry["step"] == step]

    def is_continued_by(self, other: "History") -> bool:
        """Whether another history has the same decisions, and perhaps more after them.

        Acceptances do not count: they are noted wherever the mentions are.
        """
        mine, others = self._binding(), other._binding()
        return others[: len(mine)] == mine

    def _binding(self) -> List[Entry]:
        return [e for e in self.entries if e["action"] not in ("join", "accept")]

    def joins_not_in(self, other: "History") -> List[Entry]:
        """The merges by new mentions that another history of the same beginning does not have."""
        same = 0
        for mine, others in zip(self.entries, other.entries):
            if mine != others:
                break
            same += 1
        return [entry for entry in self.entries[same:] if entry["action"] == "join"]
