"""Documents in CSV and TSV, one mention per line.

    id,text,start,end,label,kb_id
    d1,Ada met Bo.,0,3,PERSON,Q7259
    d1,Ada met Bo.,8,10,PERSON,

Only ``text`` must be there. Lines with the same id are one document, and so are lines with the
same text where there are no ids. Instead of offsets, ``mention`` may have the words of the mention,
which are searched in the text: a second line with the same words means their second place. A line
without offsets and words adds no mention.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..records.cells import uncell
from ..records.formats import certainty, check_readable
from ..records.id_fields import FoundId, find_id
from ..records.lines import OnBad, PathLike, check_exists, line_error
from ..records.offsets import CHARACTERS, Given
from ..records.source import Source
from ..records.tables import open_table
from .annotated import LABEL, AnnotatedMention, AnnotatedText, split_ids
from .json_documents import About, placed_or_reported

COLUMNS = ("id", "text", "start", "end", "mention", "label", "kb_id", "cluster")


@dataclass(frozen=True)
class CsvReader:
    """Reads the documents of a table, CSV or TSV; see ``read_table``.

    offsets: How the file counts offsets, such as utf16; "" to find it out.
    id_key: The field that has the ids of mentions; "" to know it by its name.
    """

    offsets: str = ""
    id_key: str = ""

    @staticmethod
    def sniff(name: str, start: bytes) -> float:
        """Know files by their name."""
        return certainty(name, start, (".csv", ".tsv", ".tab"))

    def read(
        self, path: PathLike, bad: OnBad, counts: Counter
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        check_readable(check_exists(path), self)
        return read_table(Source(path, bad, offsets=self.offsets, id_key=self.id_key))


def read_table(source: Source) -> Iterator[AnnotatedText]:
    """Yield the documents of a table whose first line names the columns.

    Empty lines and comments before it are left out.

    Raises ValueError with file, line and problem at an invalid line.
    """
    documents: dict[str, _TableDocument] = {}
    for number, row in read_rows(source, ("text",)):
        try:
            _add(documents, row, number, source)
        except ValueError as problem:
            source.report(number, problem)
    for document in documents.values():
        text = document.placed(source)
        if text is not None:
            yield text


def read_rows(
    source: Source, required: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells of each row, by column.

    required: Columns that must be there.
    """
    table = open_table(source.path, encoding=source.encoding)
    header = [name.lower() for name in table.header]
    missing = [name for name in required if name not in header]
    if missing:
        problem = f"there is no column {missing[0]!r}. Columns: {', '.join(header)}."
        raise line_error(source.path, table.line, problem)
    twice = [name for name in COLUMNS if header.count(name) > 1]
    if twice:
        raise line_error(
            source.path, table.line, f"the column {twice[0]!r} occurs twice."
        )
    for number, row in table.rows(source.on_error):
        yield number, dict(zip(header, row))


@dataclass(frozen=True)
class _TableMention:
    """The mention of a line.

    is_found: Whether its words alone were given, which were found there.
    """

    line: int
    given: Given
    about: About
    is_found: bool


@dataclass
class _TableDocument:
    """A document as far as it has been read.

    rows: The mentions of the lines so far.
    ends: Where the last mention ends that was given by these words alone.
    lines: The number of its lines.
    unread: The columns that may have the id of a mention without one.
    """

    id: str
    text: str
    rows: list[_TableMention] = field(default_factory=list)
    ends: dict[str, int] = field(default_factory=dict)
    lines: int = 0
    unread: list[str] = field(default_factory=list)

    def find(self, words: str) -> Given:
        """Find words in the text. Raises ValueError where they are not there.

        Words that several lines have are found one place after the other, and again at the first
        one where the text has them less often.
        """
        start = self.text.find(words, self.ends.get(words, 0))
        if start < 0:
            start = self.text.find(words)
        if start < 0:
            raise ValueError(f"the text does not contain the mention {words!r}.")
        self.ends[words] = start + len(words)
        return Given(start, start + len(words), words)

    def placed(self, source: Source) -> AnnotatedText | None:
        """The document with mentions at their places. None where all its lines are wrong."""
        mentions: dict[int, AnnotatedMention] = {}
        # Words that were found count characters, whatever the offsets of the file count.
        for is_found, how in (
            (False, source),
            (True, replace(source, offsets=CHARACTERS)),
        ):
            there = [i for i, row in enumerate(self.rows) if row.is_found == is_found]
            rows = [
                (self.rows[i].line, self.rows[i].given, self.rows[i].about)
                for i in there
            ]
            placed_rows = zip(there, placed_or_reported(how, self.text, rows))
            mentions.update(
                (i, mention) for i, mention in placed_rows if mention is not None
            )
        if len(self.rows) - len(mentions) == self.lines:
            return None
        placed = tuple(mentions[i] for i in sorted(mentions))
        return AnnotatedText(self.id, self.text, placed, unread=tuple(self.unread))


def _add(
    documents: dict[str, _TableDocument],
    row: dict[str, str],
    number: int,
    source: Source,
) -> None:
    text = row["text"]
    own_id = row.get("id", "").strip()
    key = own_id or f"\n{text}"
    document = documents.get(key) or _TableDocument(
        own_id or source.made_up_id(number), text
    )
    if document.text != text:
        raise ValueError(
            f"the document {own_id!r} has another text in an earlier line."
        )
    words = row.get("mention", "")
    cells = row.get("start", "").strip()
    words = words if cells else words.strip()
    words = words if words in text else uncell(words)
    mention = _given(row, words) if cells else document.find(words) if words else None
    if mention:
        label = row.get("label", "").strip() or LABEL
        found_id = _id_in(row, source.id_key)
        ids = split_ids(found_id.value)
        cluster = row.get("cluster", "").strip()
        document.unread += found_id.unread
        annotation = (label, ids, cluster if not ids else "")
        document.rows.append(_TableMention(number, mention, annotation, not cells))
    document.lines += 1
    documents[key] = document


def _id_in(row: dict[str, str], id_key: str) -> FoundId:
    if "kb_id" in row and not id_key:
        return FoundId(row["kb_id"])
    return find_id(
        {name: value for name, value in row.items() if name not in COLUMNS}, id_key
    )


def _given(row: dict[str, str], words: str) -> Given:
    end = _number(row, "end") if row.get("end", "").strip() or not words else None
    return Given(_number(row, "start"), end, words)


def _number(row: dict[str, str], column: str) -> int:
    value = row[column].strip()
    if not (value.isascii() and value.isdigit() and len(value) < 16):
        raise ValueError(f"{column!r} must be a whole number, got {value!r:.40}.")
    return int(value)
