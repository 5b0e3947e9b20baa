"""A log of decisions: what stands, and what can be undone."""

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ..base.errors import Errors

Entry = dict[str, Any]
# Decisions on new entities. "leave_out" is an acceptance that was made elsewhere.
ON_CLUSTERS = (
    *("accept", "link", "accept_all", "link_all", "leave_out"),
    *("merge", "split", "reject"),
)
# Those that change nothing but what the pages of a review show.
NOTES = ("skip", "flag")


@dataclass
class DecisionLog:
    """Decisions and their undoing, in order. It only grows.

    entries: JSON-serialisable. Each has its number ("n", its place), its time ("at") and its
        "action". An undo has the number of what it undoes ("of").
    """

    entries: list[Entry] = field(default_factory=list)

    def numbered(self, entry: Entry) -> Entry:
        """An entry with the next number and the present time."""
        return {"n": len(self.entries), "at": now(), **entry}

    def add(self, action: str, **more: Any) -> Entry:
        """Add an entry. RETURNS: It, with its number and the time."""
        self.entries.append(self.numbered({"action": action, **more}))
        return self.entries[-1]

    def standing(self) -> list[Entry]:
        """The decisions that were not undone, in order."""
        undone = {entry["of"] for entry in self.entries if entry["action"] == "undo"}
        decisions = (entry for entry in self.entries if entry["action"] != "undo")
        return [entry for entry in decisions if entry["n"] not in undone]

    def decision(self, number: int | None = None) -> Entry:
        """A decision that can be undone; by default the last.

        Raises ValueError where it does not stand, or where a later one depends on it.
        """
        standing = self.standing()
        if number is None:
            number = standing[-1]["n"] if standing else -1
        entry = next((entry for entry in standing if entry["n"] == number), None)
        if entry is None:
            raise Errors.E716()
        things = holds(entry)
        for later in standing:
            if later["n"] > number and claims(later) & things:
                ids = later.get("names", {}).values() or later.get("changed")
                names = ", ".join(
                    f"“{entity_name}”" for entity_name in ids or clusters_of(later)
                )
                raise Errors.E714(
                    number=number,
                    action=later["action"],
                    later=later["n"],
                    names=names,
                )
        return entry

    def free(self) -> set[int]:
        """The numbers of the decisions that can be undone now."""
        free_numbers = set[int]()
        claimed = set[Any]()
        for entry in reversed(self.standing()):
            if not holds(entry) & claimed:
                free_numbers.add(entry["n"])
            claimed |= claims(entry)
        return free_numbers


def now() -> str:
    """The present time, in UTC to seconds."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def clusters_of(entry: Entry) -> list[str]:
    """Ids of the new entities that a decision is on."""
    if entry["action"] not in (*ON_CLUSTERS, *NOTES):
        return []
    named_ids = [entry[name] for name in ("id", "off") if name in entry]
    several = (
        *entry.get("others", ()),
        *entry.get("ids", ()),
        *entry.get("from", {}).values(),
    )
    return [*named_ids, *several]


def holds(entry: Entry) -> set[Any]:
    """Things that bar an undo while later decisions claim them."""
    if entry["action"] in NOTES:
        return set()
    mention = (
        [("mention", *entry["key"], entry["label"])]
        if entry["action"] == "learn"
        else []
    )
    return {
        *clusters_of(entry),
        *mention,
        *(("entity", entity_id) for entity_id in _made(entry)),
    }


def claims(entry: Entry) -> set[Any]:
    """Things that this decision needs earlier ones for."""
    links = [("entity", entry["kb_id"])] if "kb_id" in entry else []
    return {*holds(entry), *links}


def _made(entry: Entry) -> set[str]:
    added = [entity["id"] for entity in entry.get("entities", ())]
    added += [entry["kb_id"]] if entry.get("added") else []
    return {*added, *entry.get("changed", ()), *entry.get("redirects", ())}
