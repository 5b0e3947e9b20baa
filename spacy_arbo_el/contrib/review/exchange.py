"""Exchange of decisions with tables, spaCy, Prodigy and Label Studio."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spacy.tokens import Doc, DocBin

from ...base.display import counted
from ...base.errors import ArboError
from ...corpora.read import read
from ...discovery.decision_log import Entry
from ...kb.entity import NIL
from ...mentions.getters import SpanGetter
from ...mentions.record import text_fingerprint
from .decisions.decision_table import as_csv
from .errors import ReviewMessages
from .links import LinkReview, LinkRow, gold_docs
from .review import Review

# The formats of files that annotators make, by the end of their names.
FORMATS = {".jsonl": "prodigy", ".json": "label-studio"}


def as_spacy(docs: Sequence[Doc], getter: SpanGetter) -> bytes:
    """Documents as a ``.spacy`` file."""
    return DocBin(docs=docs, store_user_data=True).to_bytes()


def take_over(
    review: Review,
    links: LinkReview,
    path: Path,
    by: str,
    say: Callable[[str], None] = lambda sentence: None,
) -> Counter:
    """Decide on links as annotators did. Each is a decision that can be undone.

    A mention without an id is in no entity of the knowledge base. Raises ValueError for a file in
    another format, and for one in which no mention has an id.

    say: Gets a sentence on how many mentions the decisions hold for, before they are made.
    RETURNS: How many decisions were "made", are "known" already, are on mentions that are "not in
        the texts", or name an entity that is "not in the knowledge base".
    """
    rows = {row.key: row for row in links.rows}
    rows_by_label = {row.place: row for row in links.rows}
    learnt = [entry for entry in review.standing if entry["action"] == "learn"]
    decided = {(*entry["key"], entry["label"]): entry["kb_id"] for entry in learnt}
    counts = Counter[str]()
    chosen: list[tuple[LinkRow, str]] = []
    texts = list(read(path, FORMATS.get(path.suffix.lower(), "jsonl")))
    pairs = [(text_fingerprint(text.text), one) for text in texts for one in text.mentions]
    if not any(mention.kb_ids for _, mention in pairs):
        raise ArboError(ReviewMessages.E931.format(path=path))
    for fingerprint, mention in pairs:
        place = (fingerprint, mention.start, mention.end)
        row = rows_by_label.get((*place, mention.label)) or rows.get(place)
        if row is None:
            counts["not in the texts"] += 1
        elif decided.get(row.place) == mention.kb_id:
            counts["known"] += 1
        elif mention.kb_id != NIL and mention.kb_id not in review.linker.kb:
            counts["not in the knowledge base"] += 1
        else:
            chosen.append((row, mention.kb_id))
    covered = set().union(*(links.covered(row, kb_id) for row, kb_id in chosen))
    if chosen:
        hold = f"{counted(len(chosen), 'decision')} on {counted(len(covered), 'mention')}"
        say(f"{hold}: those in the file, and those of the texts that say the same")
    for row, kb_id in chosen:
        review.decide("learn", by, **links.entry_of(row, kb_id))
        counts["made"] += 1
    return counts


@dataclass(frozen=True)
class Export:
    """A file of what was decided.

    about: What it is for. write: From the decisions that stand. annotate: From the documents with
        the mentions that were decided on, and what reads their mentions.
    """

    about: str
    write: Callable[[Iterable[Entry]], str] | None = None
    annotate: Callable[[Sequence[Doc], SpanGetter], str | bytes] | None = None

    @property
    def needs_texts(self) -> bool:
        return self.annotate is not None


def _as_lines(entries: Iterable[Entry]) -> str:
    return "".join(f"{json.dumps(entry)}\n" for entry in entries)


def _changes(entries: Iterable[Entry]) -> str:
    return _as_lines(e for e in entries if e["action"].startswith(("accept", "kb_")))


EXPORTS = {
    "decisions.jsonl": Export("all decisions", _as_lines),
    "decisions.csv": Export("for arbo new apply", as_csv),
    "kb_changes.jsonl": Export("what has changed in the knowledge base", _changes),
    "gold.spacy": Export("documents for arbo fit", annotate=as_spacy),
}


def exported(name: str, review: Review, links: LinkReview | None) -> str | bytes:
    """The content of a file of ``EXPORTS``."""
    export = EXPORTS[name]
    if export.annotate is None or links is None:
        return export.write(review.standing) if export.write else ""
    docs = gold_docs(review.linker, links.docs, review.standing)
    return export.annotate(docs, review.linker.mentions.getter)
