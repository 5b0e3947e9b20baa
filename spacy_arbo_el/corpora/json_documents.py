"""Documents as JSON objects, and the checks of their values.

The format of this project is JSONL, one document per line::

    {"id": "d1", "text": "Ada met Lovelace.", "mentions": [
        {"start": 0, "end": 3, "text": "Ada", "label": "PERSON", "kb_id": "ada_l"},
        {"start": 8, "end": 16, "label": "PERSON", "kb_id": null, "cluster": "new-1"}]}

A document is on one line. An id is made up where it is missing. Offsets count characters; the end
is exclusive. ``kb_id`` is the id of an entity. The ids of a composite mention are joined by ``|``.
A NIL mention has null or "NIL". ``cluster`` is optional and names a new entity. So is ``label``.
So is ``text``, with which the offsets are compared. Other keys are ignored.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..records.formats import certainty, check_readable
from ..records.lines import WHOLE, OnBad, PathLike, check_exists
from ..records.objects import (
    check_object,
    get,
    id_in,
    integer,
    items,
    optional,
    read_records,
    string,
)
from ..records.offsets import Given, Misplaced, place
from ..records.source import Source, check_unique
from .annotated import LABEL, AnnotatedMention, AnnotatedText, split_ids

# Makes a document of a record and of an id for where it has none; None leaves it out.
Parse = Callable[[dict[str, Any], str], AnnotatedText | None]


def read_each(
    source: Source, parse: Parse, records: Iterable[tuple[int, Any]] | None = None
) -> Iterator[AnnotatedText]:
    """Yield the documents of a JSONL file. Empty lines are skipped.

    Raises ValueError with file, line and problem at an invalid line, and, in a file that is read
    whole, where an id occurs twice.

    parse: Raises ValueError for an invalid record.
    records: The number and value of each record; by default the lines of the file.
    """
    lines_of: dict[str, int] = {}

    def read(number: int, record: Any) -> AnnotatedText | None:
        text = parse(record, source.made_up_id(number))
        if text is not None and source.lines == WHOLE:
            check_unique("document", text.id, number, lines_of)
        return text

    return source.read(read_records(source) if records is None else records, read)


# How files of this project's format begin.
OWN_KEY = re.compile(rb'\{[^\n]*"mentions"\s*:')
# How sure a bracket at the beginning is, where no other format knows the file by more.
BY_BRACKET = 0.2


@dataclass(frozen=True)
class JsonlReader:
    """Reads JSONL with a document per line, the format of this project.

    offsets: How the file counts offsets, such as utf16; "" to find it out.
    """

    offsets: str = ""

    @staticmethod
    def sniff(name: str, start: bytes) -> float:
        """Know files by the key of mentions; then by name, or as JSON of no other format."""
        if OWN_KEY.match(start):
            return 1.0
        by_name = certainty(name, start, (".jsonl", ".json", ".ndjson"))
        return by_name or (BY_BRACKET if start[:1] in (b"{", b"[") else 0.0)

    def read(
        self, path: PathLike, bad: OnBad, counts: Counter
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        check_readable(check_exists(path), self)
        parse = partial(text_of_record, strict=True, offsets=self.offsets)
        return read_each(Source(path, bad), parse)


def text_of_record(
    record: dict[str, Any], id_: str, strict: bool = False, offsets: str = ""
) -> AnnotatedText:
    """The document of a record that needs only a ``text``. Raises ValueError for an invalid one.

    id_: Its id where it has none.
    strict: Whether it must have ``mentions``, and each of these a ``kb_id`` or null.
    """
    text = string(record, "text", empty=True)
    values = get(record, "mentions") if strict else record.get("mentions")
    mentions = mentions_in(values, "mentions", text, offsets, strict=strict)
    return AnnotatedText(id_in(record, "id", id_), text, mentions)


def mentions_in(
    values: Any,
    key: str,
    text: str,
    offsets: str = "",
    names: tuple[str, str] = ("start", "end"),
    strict: bool = False,
) -> tuple[AnnotatedMention, ...]:
    """Read mentions from a list of objects like ``{"start": 0, "end": 3, "label": "PERSON"}``.

    Instead of an object there may be a list: start, end, label. ``kb_id`` and ``cluster`` are read
    where they are given, and the offsets are compared with ``text``.

    values: The list; None for no mentions.
    key: Its name, for messages.
    text: The text of the document.
    offsets: How offsets count, see ``Source``.
    names: The keys of the offsets.
    strict: Whether there must be a list of objects that have ``kb_id``.
    """
    if values is None and not strict:
        return ()
    mentions = []
    annotations = []
    for position, value in enumerate(items(values, key), 1):
        try:
            mention, annotation = _mention(value, names, strict)
        except ValueError as problem:
            raise ValueError(f"mention {position}: {problem}") from None
        mentions.append(mention)
        annotations.append(annotation)
    try:
        return placed(text, mentions, annotations, offsets)
    except Misplaced as problem:
        raise ValueError(f"mention {problem.position + 1}: {problem}") from None


# The label, the ids and the cluster of a mention.
About = tuple[str, tuple[str, ...], str]


def placed(
    text: str,
    mentions: Sequence[Given],
    annotations: Sequence[About],
    offsets: str = "",
) -> tuple[AnnotatedMention, ...]:
    """The mentions of a document at their places. Raises Misplaced where one is elsewhere."""
    places, reading = place(text, mentions, offsets)
    return tuple(
        AnnotatedMention(
            start, end, label, ids, cluster, reading if mention.words else ""
        )
        for (start, end), (label, ids, cluster), mention in zip(
            places, annotations, mentions
        )
    )


def placed_or_reported(
    source: Source, text: str, rows: Sequence[tuple[int, Given, About]]
) -> list[AnnotatedMention | None]:
    """The mention of each row. None where its words are elsewhere, which is reported.

    rows: The line of each, its place, and its label and ids.
    """
    remaining = list(range(len(rows)))
    while True:
        mentions = [rows[i][1] for i in remaining]
        annotations = [rows[i][2] for i in remaining]
        try:
            places = dict(
                zip(remaining, placed(text, mentions, annotations, source.offsets))
            )
            return [places.get(i) for i in range(len(rows))]
        except Misplaced as problem:
            source.report(rows[remaining.pop(problem.position)][0], problem)


def _mention(value: Any, names: tuple[str, str], strict: bool) -> tuple[Given, About]:
    if isinstance(value, list) and len(value) in (2, 3, 4) and not strict:
        value = dict(zip((*names, "label", "kb_id"), value))
    check_object(value)
    start = integer(value, names[0])
    end = integer(value, names[1])
    if strict:
        get(value, "kb_id")
    label, kb_id, cluster = (
        optional(value, name) for name in ("label", "kb_id", "cluster")
    )
    words = value.get("text")
    mention = Given(start, end, words if isinstance(words, str) else "")
    return mention, (label or LABEL, split_ids(kb_id), cluster)
