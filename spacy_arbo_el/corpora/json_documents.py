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

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..records.formats import certainty, check_readable
from ..records.lines import (
    WHOLE,
    Lines,
    OnBad,
    PathLike,
    check_exists,
    is_text,
    json_kind,
    line_error,
    read_records,
    read_text,
    throw,
)
from ..records.offsets import Given, Misplaced, place
from .annotated import LABEL, AnnotatedMention, AnnotatedText, split_ids


class Problem(Exception):
    """An invalid value of a record. The caller adds file and line."""


# Makes a document of a record and of an id for where it has none; None leaves it out.
Parse = Callable[[dict[str, Any], str], AnnotatedText | None]


@dataclass(frozen=True)
class Source:
    """A file, and how it is read.

    on_error: Takes the errors of invalid records, which are left out; by default they are raised.
    name: Begins the ids of documents that have none; "" for the file's name without its suffix.
    lines: The part of the file to read; files of other kinds than .txt, .jsonl, .parquet and
        .spacy are read whole.
    offsets: How its offsets count, one of ``READINGS``; "" to find it out.
    id_key: The name of the field that has the ids of mentions; "" to know it by its name.
    """

    path: PathLike
    on_error: OnBad = throw
    name: str = ""
    lines: Lines = WHOLE
    encoding: str = "utf8"
    offsets: str = ""
    id_key: str = ""

    def made_up_id(self, number: int) -> str:
        """Make an id from a line or row number, the same in each run."""
        return (
            f"{self.name}:{number}"
            if self.name
            else f"{Path(self.path).stem}-{number}"
        )

    def report(self, number: int, problem: object) -> None:
        """Pass the error of a line to ``on_error``."""
        self.on_error(line_error(self.path, number, str(problem)))


def read_each(
    source: Source, parse: Parse, records: Iterable[tuple[int, Any]] | None = None
) -> Iterator[AnnotatedText]:
    """Yield the documents of a JSONL file. Empty lines are skipped.

    Raises ValueError with file, line and problem at an invalid line, and, in a file that is read
    whole, where an id occurs twice.

    parse: Raises ``Problem`` for an invalid record.
    records: The number and value of each record; by default the lines of the file.
    """
    lines_of: dict[str, int] = {}
    if records is None:
        records = read_records(
            source.path, source.on_error, source.lines, source.encoding
        )
    for number, record in records:
        try:
            text = parse(record, source.made_up_id(number))
            first = number
            if text is not None and source.lines == WHOLE:
                first = lines_of.setdefault(text.id, number)
            if text is not None and first != number:
                raise Problem(
                    f"the document id {text.id!r} was used before, in line {first}. Give each "
                    "document a unique id."
                )
        except Problem as problem:
            source.report(number, problem)
            continue
        if text is not None:
            yield text


def json_values(source: Source) -> Iterator[tuple[int, Any]]:
    """The documents of a JSON file with their numbers.

    Numbers begin with 1: places in a list, or lines.

    A document may be a list of its text and its annotations.
    """
    content = read_text(source.path)
    try:
        content_value = json.loads(content)
    except (ValueError, RecursionError):
        for number, line in enumerate(content.split("\n"), 1):
            if line.strip():
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError) as error:
                    source.report(number, f"no valid JSON: {error}.")
                    continue
                yield number, value
        return
    is_pair = (
        isinstance(content_value, list)
        and len(content_value) == 2
        and isinstance(content_value[0], str)
    )
    yield from enumerate(
        [content_value]
        if is_pair or not isinstance(content_value, list)
        else content_value,
        1,
    )


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
        self, path: PathLike, bad: OnBad = throw, counts: Counter | None = None
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        check_readable(check_exists(path), self)
        parse = partial(text_of_record, strict=True, offsets=self.offsets)
        return read_each(Source(path, bad), parse)


def text_of_record(
    record: dict[str, Any], id_: str, strict: bool = False, offsets: str = ""
) -> AnnotatedText:
    """The document of a record that needs only a ``text``. Raises Problem for an invalid one.

    id_: Its id where it has none.
    strict: Whether it must have ``mentions``, and each of these a ``kb_id`` or null.
    """
    text = string(record, "text", empty=True)
    values = get(record, "mentions") if strict else record.get("mentions")
    mentions = mentions_in(values, "mentions", text, offsets, strict=strict)
    return AnnotatedText(id_in(record, "id", id_), text, mentions)


def id_in(record: dict[str, Any], key: str, otherwise: str) -> str:
    """The id of a document; ``otherwise`` where it has none. A number counts as its digits."""
    value = record.get(key)
    if value is None:
        return otherwise
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return string(record, key)


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
        except Problem as problem:
            raise Problem(f"mention {position}: {problem}") from None
        mentions.append(mention)
        annotations.append(annotation)
    try:
        return placed(text, mentions, annotations, offsets)
    except Misplaced as problem:
        raise Problem(f"mention {problem.position + 1}: {problem}") from None


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
        _optional(value, name) for name in ("label", "kb_id", "cluster")
    )
    words = value.get("text")
    mention = Given(start, end, words if isinstance(words, str) else "")
    return mention, (label or LABEL, split_ids(kb_id), cluster)


def check_object(value: Any) -> None:
    """Raise Problem for a value that is no object."""
    if not isinstance(value, dict):
        raise Problem(f"must be an object, got {json_kind(value)}.")


def items(value: Any, key: str) -> list[Any]:
    """Return a value that must be a list.

    key: Its name, for messages.
    """
    if not isinstance(value, list):
        raise Problem(f"{key!r} must be a list, got {json_kind(value)}.")
    return value


def get(record: dict[str, Any], key: str) -> Any:
    """The value of a key that must be there."""
    if key not in record:
        raise Problem(f"the key {key!r} is missing.")
    return record[key]


def string(record: dict[str, Any], key: str, empty: bool = False) -> str:
    """A string. empty: Whether it may be empty."""
    value = get(record, key)
    if not isinstance(value, str):
        raise Problem(f"{key!r} must be a string, got {json_kind(value)}.")
    if not is_text(value):
        raise Problem(
            f"{key!r} holds half a character (a lone surrogate). Write it in full."
        )
    if not (value.strip() or empty):
        raise Problem(f"{key!r} must not be empty.")
    return value


def _optional(record: dict[str, Any], key: str) -> str:
    return "" if record.get(key) is None else string(record, key, empty=True).strip()


def integer(record: dict[str, Any], key: str) -> int:
    """A whole number."""
    value = get(record, key)
    # JSON's true is an int in Python, but not a valid offset.
    if not isinstance(value, int) or isinstance(value, bool):
        raise Problem(f"{key!r} must be a whole number, got {json_kind(value)}.")
    return value
