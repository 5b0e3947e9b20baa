"""The journal of a review. Each decision is a line, on the disk before the page says so."""

import hashlib
import json
import os
import stat
import uuid
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import srsly
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from ....discovery.decision_log import DecisionLog, Entry, now
from ....pipelines import journal_path
from ....storage.files import sync_folder, write_file
from ..errors import ReviewMessages

# The fields of a line by what they must be, wherever they are there: others may have written it.
_KINDS: dict[Any, str] = {
    str: "action at by journal state id into kb_id title description comment verdict off "
    "document text label",
    int: "n of start end",
    bool: "added",
    list[str]: "ids others types mentions changed",
    list[int]: "members steps",
    list[Any]: "key",
    dict[str, Any]: "entity",
    list[dict[str, Any]]: "entities",
    dict[str, str]: "names redirects",
}
_FIELDS: Any = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_Line = TypedDict("_Line", _FIELDS, total=False)  # type: ignore[misc]
_LINE: Any = TypeAdapter(_Line)
# What the entry of a decision on a link has.
MENTION = ("key", "document", "text", "start", "end", "label", "verdict", "kb_id")
_EDIT = ("changed", "before", "redirects")
# What lines with an action must have. Any line has a time, and all but the first a number and who
# has decided.
NEEDED: dict[str, Sequence[str]] = {
    "begin": ("journal", "state"),
    "undo": ("of",),
    **dict.fromkeys(("accept", "link"), ("id", "kb_id", "entity")),
    "accept_all": ("ids", "entities"),
    "link_all": ("ids", "kb_id", "entity"),
    "merge": ("id", "others"),
    "split": ("id", "mentions", "off", "members"),
    "flag": ("id", "comment"),
    "learn": MENTION,
    **dict.fromkeys(("reject", "skip"), ("id",)),
    **dict.fromkeys(("kb_add", "kb_update"), ("entity", *_EDIT)),
    "kb_upsert": ("entities", *_EDIT),
    "kb_remove": ("ids", *_EDIT),
    "kb_merge": ("id", "into", *_EDIT),
}
# How the first line of a journal begins.
BEGINNING = b'{"action": "begin"'
# Where a pipeline says how much of which journal is in it: a key of its meta.json.
META = "review"


def state_of(model: Path) -> str:
    """Fingerprint of a saved pipeline. Each save of a linker has another one."""
    digest = hashlib.blake2b(digest_size=16)
    for manifest in sorted(model.glob("*/manifest.json")):
        digest.update(manifest.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Recorded:
    """A journal on the disk.

    id: Its id, "" for none. state: Of the pipeline on which it was begun, see ``state_of``.
    size: Bytes of its complete lines. file_size: Bytes of the file.
    """

    path: Path
    id: str
    state: str
    entries: list[Entry]
    size: int
    file_size: int

    @classmethod
    def read(cls, path: Path) -> "Recorded":
        """Read a journal; ValueError with the line that is wrong.

        A last line that a kill has cut off is left out, with a warning. The first line has to be
        complete or the beginning of one: any other file is not written to.
        """
        data = _content(path)
        complete = data.rfind(b"\n") + 1
        if not complete and not data.startswith(BEGINNING[: len(data)]):
            raise ReviewMessages.E911(path=path, line=1)
        if complete < len(data):
            warnings.warn(ReviewMessages.W910.format(path=path))
        lines: list[Entry] = []
        for number, line in enumerate(data[:complete].splitlines()):
            try:
                lines.append(json.loads(line))
                _check(lines[-1], number)
            except (ValueError, KeyError, TypeError, RecursionError):
                raise ReviewMessages.E911(path=path, line=number + 1) from None
        if len(lines) < 2:  # nothing was decided, so that it belongs to nobody
            return cls(path, "", "", [], 0, len(data))
        first = lines[0]
        return cls(
            path, first["journal"], first["state"], lines[1:], complete, len(data)
        )

    def start(self, meta: Mapping[str, Any], model: Path) -> int:
        """The number of entries that a saved pipeline has.

        Raises ValueError where the journal belongs to another one, or has lost entries.
        """
        saved = meta.get(META) or {}
        if self.entries and saved.get("journal") == self.id:
            if int(saved["entries"]) > len(self.entries):
                raise ReviewMessages.E911(path=self.path, line=len(self.entries) + 2)
            return int(saved["entries"])
        if self.entries and self.state != state_of(model):
            details = {"path": self.path, "model": model, "count": len(self.entries)}
            raise ReviewMessages.E917(at=self.entries[0]["at"], **details)
        return 0


def _content(path: Path) -> bytes:
    """The bytes of a journal, b"" for none. ValueError for a link or anything but a plain file."""
    if not os.path.lexists(path):
        return b""
    with os.fdopen(_open_plain(path, os.O_RDONLY), "rb") as file:
        return file.read()


def _open_plain(path: Path, flags: int) -> int:
    """Open a file, and return its descriptor. ValueError for a link, a folder or a device."""
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        raise ReviewMessages.E925(path=path)
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, 0o666)


def _check(line: Any, number: int) -> None:
    """Refuse a wrong line. The first one says whose the journal is."""
    _LINE.validate_python(line, strict=True)
    of_all = ("at", "by", "n") if number else ("at",)
    if not all(name in line for name in (*of_all, *NEEDED[line["action"]])):
        raise ValueError
    if (line["action"] == "begin") != (number == 0) or line.get("n", -1) != number - 1:
        raise ValueError


def is_pending(model: Path) -> bool:
    """Return whether the saved pipeline lacks some decisions of a review."""
    recorded = Recorded.read(journal_path(model))
    meta = srsly.read_json(model / "meta.json") if recorded.entries else {}
    return recorded.start(meta, model) < len(recorded.entries)


def adopt(model: Path) -> None:
    """Make the journal beside a pipeline its own."""
    recorded = Recorded.read(journal_path(model))
    if recorded.entries:
        entries = [_begin(uuid.uuid4().hex, state_of(model)), *recorded.entries]
        write_file(recorded.path, entry_lines(entries))


def _begin(journal: str, state: str) -> Entry:
    return {"action": "begin", "journal": journal, "state": state, "at": now()}


def entry_lines(entries: Sequence[Entry]) -> bytes:
    """Entries as JSON, one per line."""
    return "".join(json.dumps(entry) + "\n" for entry in entries).encode("ascii")


class Journal:
    """A log of decisions that is on the disk too.

    path: Where it is written; None to write nothing.
    """

    def __init__(self, model: Path, *, read_only: bool = False) -> None:
        recorded = Recorded.read(journal_path(model))
        self.model = model
        self.path: Path | None = None if read_only else recorded.path
        self.id = recorded.id
        # The number of entries that the saved pipeline has.
        self.saved = recorded.start(srsly.read_json(model / "meta.json"), model)
        self._complete = recorded.size
        self._size = recorded.file_size
        self._descriptor: int | None = None
        self.log = DecisionLog(recorded.entries)

    def append(self, entry: Entry) -> Entry:
        """Add an entry, with its number and the time. It is on the disk when this returns."""
        entry = self.log.numbered(entry)
        lines = [entry]
        journal = self.id or uuid.uuid4().hex
        if not self.id:
            lines.insert(0, _begin(journal, state_of(self.model)))
        if self.path is not None:
            self._write(self.path, entry_lines(lines))
        self.id = journal
        self.log.entries.append(entry)
        return entry

    def drop_last(self) -> None:
        """Drop the last entry, which could not be carried out."""
        entry = self.log.entries.pop()
        if self.path is not None:
            descriptor = self._opened(self.path)
            self._complete -= len(entry_lines([entry]))
            self._cut(descriptor)
            os.fsync(descriptor)

    def _write(self, path: Path, data: bytes) -> None:
        descriptor = self._opened(path)
        self._cut(descriptor)  # what a kill has left of a line
        unwritten = data
        try:
            while unwritten:
                unwritten = unwritten[os.write(descriptor, unwritten) :]
            os.fsync(descriptor)
        finally:
            self._size = os.fstat(descriptor).st_size
        if not self._complete:
            sync_folder(path.parent)
        self._complete += len(data)

    def _cut(self, descriptor: int) -> None:
        os.truncate(descriptor, self._complete)
        self._size = self._complete

    def _opened(self, path: Path) -> int:
        """The descriptor of the file, which stays open. OSError where another program changed it.

        Another file may be at the path by now: to write there would begin within a line.
        """
        descriptor = self._descriptor
        if descriptor is None:
            create = 0 if self._size else os.O_CREAT
            descriptor = _open_plain(path, os.O_RDWR | os.O_APPEND | create)
            weakref.finalize(self, os.close, descriptor)
            self._descriptor = descriptor
        status = os.fstat(descriptor)
        is_there = os.path.lexists(path) and os.path.samestat(status, os.lstat(path))
        if not is_there or status.st_size != self._size:
            raise OSError(ReviewMessages.E926.format(path=path))
        return descriptor
