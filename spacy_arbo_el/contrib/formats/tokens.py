"""Text that is put together from the tokens of a file, with exact offsets of mentions."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...corpora.annotated import LABEL, AnnotatedMention, AnnotatedText
from ...corpora.json_documents import read_each
from ...records.lines import read_lines
from ...records.offsets import CHARACTERS
from ...records.source import Source

Numbered = list[tuple[int, str]]
# The id of a document, "" for none, and its numbered lines.
NumberedLines = tuple[str, Numbered]


@dataclass
class Growing:
    """A text that grows by tokens, with its mentions.

    pieces: How many mentions in several pieces were left out.
    unread: Names of fields that may have the id of a mention without one.
    """

    parts: list[str] = field(default_factory=list)
    mentions: list[AnnotatedMention] = field(default_factory=list)
    length: int = 0
    pieces: int = 0
    unread: list[str] = field(default_factory=list)

    def add(self, words: str) -> tuple[int, int]:
        """Add a piece of text and return its place."""
        start = self.length
        self.parts.append(words)
        self.length += len(words)
        return start, self.length

    def annotate(self, start: int, end: int, label: str, ids: tuple[str, ...]) -> None:
        """Add a mention. It counts as compared with the words of the file, which are the text."""
        label = label.strip() or LABEL
        self.mentions.append(
            AnnotatedMention(start, end, label, ids, counted=CHARACTERS)
        )

    @property
    def text(self) -> str:
        return "".join(self.parts)


def split_at(source: Source, start: "re.Pattern[str]") -> Iterator[NumberedLines]:
    """The lines of a file in parts.

    start: The line that begins a part, which has its id as its group.
    """
    id_ = ""
    lines: Numbered = []
    for number, line in read_lines(source.path, source.on_error):
        if begins := start.fullmatch(line):
            yield id_, lines
            id_ = (begins[1] or "").strip()
            lines = []
        else:
            lines.append((number, line))
    yield id_, lines


def read_parts(
    source: Source,
    documents: Iterable[NumberedLines],
    grow: Callable[[Numbered], Growing],
) -> Iterator[AnnotatedText]:
    """Yield the documents of a file. One with an invalid line is left out and reported.

    documents: The lines of each document. A document without lines is left out.
    grow: Raises ``LineProblem`` for an invalid line.
    """

    def parse(document: Any, made_up: str) -> AnnotatedText:
        id_, lines = document
        grown = grow(lines)
        counts = grown.pieces, tuple(grown.unread)
        return AnnotatedText(
            id_ or made_up, grown.text, tuple(grown.mentions), *counts
        )

    numbered = ((document[1][0][0], document) for document in documents if document[1])
    return read_each(source, parse, numbered)
