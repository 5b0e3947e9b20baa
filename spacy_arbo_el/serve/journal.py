"""The journal of a review. Each decision is a line, on the disk before the page says so."""

import json
import os
import uuid
import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

import srsly

from ..errors import Errors, Warnings

Entry = Dict[str, Any]
# Where a pipeline says how much of which journal is in it: a key of its meta.json.
META = "review"


def journal_path(model: Path) -> Path:
    """The journal of a pipeline, beside its folder."""
    model = Path(os.path.realpath(model))
    return model.with_name(f"{model.name}.review.jsonl")


def read_journal(path: Path) -> Tuple[str, List[Entry], int]:
    """Read a journal: id, entries, bytes of complete lines.

    A last line that a kill has cut off is left out, with a warning.
    """
    data = path.read_bytes() if path.is_file() else b""
    complete = data.rfind(b"\n") + 1
    if complete < len(data):
        warnings.warn(Warnings.W910.format(path=path))
    entries: List[Entry] = []
    for number, line in enumerate(data[:complete].splitlines(), 1):
        try:
            entries.append(json.loads(line))
            entries[-1]["action"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(Errors.E911.format(path=path, line=number)) from None
    return (entries[0].get("journal", "") if entries else ""), entries[1:], complete


def entries_in(meta: Mapping[str, Any], journal: str) -> int:
    """Number of journal entries that a pipeline's meta records."""
    saved = meta.get(META) or {}
    return int(saved["entries"]) if saved.get("journal") == journal else 0


def is_pending(model: Path) -> bool:
    """Return whether the saved pipeline lacks some decisions. Those of a review."""
    journal, entries, _ = read_journal(journal_path(model))
    return bool(entries) and entries_in(srsly.read_json(model / "meta.json"), journal) < len(
        entries
    )


class Journal:
    """Decisions in order. The number of an entry is its place. path: None to write nothing."""

    def __init__(self, path: Path) -> None:
        self.path: Optional[Path] = path
        self.id, self.entries, self._complete = read_journal(path)

    def append(self, entry: Entry) -> Entry:
        """Add an entry, with its number and the time. It is on the disk when this returns."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        entry = {"n": len(self.entries), "at": now, **entry}
        lines, journal = [entry], self.id or uuid.uuid4().hex
        if not self.id:
            lines.insert(0, {"action": "begin", "journal": journal, "at": now})
        if self.path is not None:
            self._write(self.path, "".join(json.dumps(line) + "\n" for line in lines))
        self.id = journal
        self.entries.append(entry)
        return entry

    def _write(self, path: Path, text: str) -> None:
        with open(path, "ab") as file:
            file.truncate(self._complete)  # what a kill has left of a line
            file.write(text.encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        self._complete += len(text)

    def standing(self) -> List[Entry]:
        """The decisions that were not undone, in order."""
        undone = {entry["of"] for entry in self.entries if entry["action"] == "undo"}
        others = (e for e in self.entries if e["action"] not in ("undo", "import"))
        return [entry for entry in others if entry["n"] not in undone]
