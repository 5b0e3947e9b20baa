"""Changes between two outputs of ``arbo link``, mention by mention, with reasons."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spacy.vocab import Vocab

from ...base.extras import import_pyarrow
from ...corpora.docbin import read_docs
from ...corpora.table import read_rows
from ...kb.entity import NIL
from ...kb.knowledge_base import ArboKB
from ...mentions.getters import EntSpans
from ...records.cells import csv_text, uncell
from ...records.lines import check_exists
from ...records.objects import read_records
from ...records.source import Source
from ...show.frames import LINK, LINKS, rows_of
from .errors import ReviewMessages

# A mention: its document and offsets. Its label where several are over the same text, else "".
Key = tuple[str, int, int, str]
CHANGED = "changed"
APPEARED = "appeared"
WENT = "went"
COLUMNS = (
    "kind",
    "document",
    "start",
    "end",
    "text",
    "before",
    "after",
    "was",
    "is",
    "reason",
)


@dataclass(frozen=True)
class Linked:
    """A mention as it was linked.

    kb_id: The id of its entity, or "NIL".
    evidence: The ids of the steps of its path, from the entity on; none where the output lacks it.
    """

    text: str
    kb_id: str
    title: str = ""
    score: float = 0.0
    evidence: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The entity, for people."""
        return f"{self.kb_id} {self.title}".strip()

    @property
    def has_exemplar(self) -> bool:
        """Return whether the path leads over an exemplar; in one graph, over another document."""
        return len(self.evidence) > 1 and self.evidence[1].count(":") == 2


@dataclass(frozen=True)
class Difference:
    """A mention that two outputs link differently.

    kind: "changed", "appeared" (linked now, NIL or no mention before) or "went".
    before, after: None where the output does not have the mention.
    reason: Why, as far as the outputs and the knowledge bases tell.
    """

    kind: str
    key: Key
    before: Linked | None
    after: Linked | None
    reason: str

    @property
    def cells(self) -> dict[str, Any]:
        """The values of ``COLUMNS``."""
        document, start, end, _ = self.key
        linked = self.after or self.before
        assert linked is not None
        names = [
            link.name if link is not None else "" for link in (self.before, self.after)
        ]
        scores = [
            round(link.score, 4) if link is not None else ""
            for link in (self.before, self.after)
        ]
        values = (
            self.kind,
            document,
            start,
            end,
            linked.text,
            *names,
            *scores,
            self.reason,
        )
        return dict(zip(COLUMNS, values))


def read_links(path: Path) -> dict[Key, Linked]:
    """The mentions of an output of ``arbo link``: a file, or a folder of shards.

    Raises ValueError for anything else.
    """
    check_exists(path, "Give an output of arbo link.")
    rows = (
        row for file in _files(path) for row in _READERS[file.suffix.lower()](file)
    )
    try:
        return by_mention(rows)
    except (KeyError, TypeError):
        raise ReviewMessages.E848(path=path) from None


def by_mention(rows: Iterable[Mapping[str, Any]]) -> dict[Key, Linked]:
    """Rows of links by their mention. Labels count where several are over the same text."""
    places: dict[tuple[str, int, int], dict[str, Linked]] = {}
    for row in rows:
        linked = Linked(
            str(row["text"]),
            str(row["kb_id"] or NIL),
            str(row.get("title") or ""),
            float(row.get("score") or 0.0),
            tuple(row.get("evidence") or ()),
        )
        place = (str(row["document"]), int(row["start"]), int(row["end"]))
        places.setdefault(place, {})[str(row.get("label") or "")] = linked
    return {
        (*place, label if len(labels) > 1 else ""): linked
        for place, labels in places.items()
        for label, linked in labels.items()
    }


def _files(path: Path) -> list[Path]:
    folder = path / LINKS if (path / LINKS).is_dir() else path
    files = sorted(folder.iterdir()) if folder.is_dir() else [path]
    files = [file for file in files if file.suffix.lower() in _READERS]
    if not files:
        raise ReviewMessages.E848(path=path)
    return files


def _jsonl(path: Path) -> Iterator[Mapping[str, Any]]:
    """Rows of mentions, or documents with mentions."""
    for _, row in read_records(Source(path)):
        for mention in row.get("mentions", [row]):
            yield {"document": row.get("id"), **mention}


def _csv(path: Path) -> Iterator[Mapping[str, Any]]:
    for _, row in read_rows(Source(path), LINK[:6]):
        yield {name: uncell(value) for name, value in row.items()}


_READERS: dict[str, Callable[[Path], Iterable[Mapping[str, Any]]]] = {
    ".parquet": lambda path: import_pyarrow().parquet.read_table(path).to_pylist(),
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".spacy": lambda path: rows_of(read_docs(path, Vocab()), EntSpans(), "arbo"),
}


def differences(
    before: Mapping[Key, Linked],
    after: Mapping[Key, Linked],
    old: ArboKB | None = None,
    new: ArboKB | None = None,
) -> list[Difference]:
    """The mentions whose link is another one, in the order of documents and offsets.

    old, new: The knowledge bases of the two outputs, for the reasons; None where they are unknown.
    """
    changes = []
    for key in sorted({*before, *after}):
        was = before.get(key)
        now = after.get(key)
        first, second = (
            link.kb_id if link is not None else NIL for link in (was, now)
        )
        if first == second:
            continue
        kind = APPEARED if first == NIL else WENT if second == NIL else CHANGED
        changes.append(Difference(kind, key, was, now, reason_of(was, now, old, new)))
    return changes


def reason_of(
    was: Linked | None, now: Linked | None, old: ArboKB | None, new: ArboKB | None
) -> str:
    """Why a mention has another link: entities first, then exemplars, then probabilities."""
    if was is None or now is None:
        return "mention found" if was is None else "mention not found"
    gone = was.kb_id
    if gone != NIL and new is not None:
        if gone not in new:
            return f"{gone} removed"
        # The id of one that was merged leads to another.
        if (into := new.get(gone).id) != gone:
            return f"{gone} merged into {into}"
    if now.kb_id != NIL and old is not None and now.kb_id not in old:
        return f"{now.kb_id} added"
    if was.has_exemplar != now.has_exemplar:
        return "exemplar" if now.has_exemplar else "exemplar gone"
    # Nothing else explains it.
    return "probability moved"


def counts_of(changes: Sequence[Difference]) -> "Counter[tuple[str, str]]":
    """Count the differences of each kind and reason. Ids are left out of reasons."""
    return Counter((change.kind, general(change.reason)) for change in changes)


def general(reason: str) -> str:
    """A reason without ids."""
    for word in ("merged", "removed", "added"):
        if f" {word}" in reason:
            return f"entity {word}"
    return reason


def as_csv(changes: Iterable[Difference]) -> str:
    """The differences as a table, with a header."""
    return csv_text(COLUMNS, (change.cells.values() for change in changes))
