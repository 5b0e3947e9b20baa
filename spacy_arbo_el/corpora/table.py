"""Documents in CSV and TSV, one mention per line.

    id,text,start,end,label,kb_id
    d1,Ada met Bo.,0,3,PERSON,Q7259
    d1,Ada met Bo.,8,10,PERSON,

Only ``text`` must be there. Lines with the same id are one document, and so are lines with the
same text where there are no ids. Instead of offsets, ``mention`` may have the words of the mention,
which are searched in the text: a second line with the same words means their second place. A line
without offsets and words adds no mention.
"""

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from ..formats import corpus_formats
from ..storage.lines import PathLike, ignore, line_error, read_lines, throw
from .annotated import AnnotatedMention, AnnotatedText, offsets_problem, split_ids
from .fields import Problem
from .records import OnBad, made_up_id
from .spans import LABEL

COLUMNS = ("id", "text", "start", "end", "mention", "label", "kb_id", "cluster")
# The default limit is too small for long texts.
csv.field_size_limit(1 << 30)


@corpus_formats("csv")
def read_table(
    path: PathLike, bad: OnBad = throw, encoding: str = "utf8"
) -> Iterator[AnnotatedText]:
    """Yield the documents of a table whose first line names its columns.

    Raises ValueError with file, line and problem at an invalid line.

    path: The file. Columns are separated by tabs in .tsv files, otherwise by what is most frequent
        in the first line: commas, or semicolons.
    bad: Takes the errors; by default they are raised.
    encoding: That of the file.
    """
    documents: Dict[str, _Document] = {}
    for number, row in read_rows(path, ("text",), bad, encoding):
        try:
            _add(documents, row, made_up_id(path, number))
        except Problem as problem:
            bad(line_error(path, number, str(problem)))
    for document in documents.values():
        yield AnnotatedText(document.id, document.text, tuple(document.mentions))


def read_rows(
    path: PathLike, required: Tuple[str, ...], bad: OnBad = throw, encoding: str = "utf8"
) -> Iterator[Tuple[int, Dict[str, str]]]:
    """Yield (line number, cells by column) for each line that isn't empty, but the first.

    required: Columns that must be there.
    bad: Takes the errors of lines; by default they are raised.
    encoding: That of the file.
    """
    lines = _Lines(path, bad, encoding)
    delimiter = _delimiter_of(path, lines.first())
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header: Optional[List[str]] = None
    while True:
        first = lines.number + 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            bad(line_error(path, lines.number, f"no valid table: {error}."))
            continue
        if row is None:
            break
        if not any(cell.strip() for cell in row):
            continue
        if header is None:
            header = [name.strip().lower() for name in row]
            _check_header(path, first, header, required)
        elif len(row) != len(header):
            problem = f"expected {len(header)} columns as in the first line, got {len(row)}."
            bad(line_error(path, first, problem))
        else:
            yield first, dict(zip(header, row))
    if header is None:
        raise line_error(path, 1, "the file is empty. The first line must name the columns.")


@dataclass
class _Lines:
    """The lines of a file for the csv module.

    path: The file.
    bad: Takes the errors of lines.
    encoding: That of the file.
    number: The number of lines read so far.
    """

    path: PathLike
    bad: OnBad
    encoding: str
    number: int = field(default=0)

    def first(self) -> str:
        """The first line that can be read."""
        return next((line for _, line in read_lines(self.path, ignore, encoding=self.encoding)), "")

    def __iter__(self) -> Iterator[str]:
        for number, line in read_lines(self.path, self.bad, encoding=self.encoding):
            self.number = number
            yield line + "\n"


def _delimiter_of(path: PathLike, line: str) -> str:
    """What separates columns, given the first line."""
    if Path(path).suffix.lower() in (".tsv", ".tab"):
        return "\t"
    return max(",;", key=line.count)


def _check_header(path: PathLike, line: int, header: List[str], required: Tuple[str, ...]) -> None:
    missing = [name for name in required if name not in header]
    if missing:
        problem = f"there is no column {missing[0]!r}. Columns: {', '.join(header)}."
        raise line_error(path, line, problem)
    twice = [name for name in COLUMNS if header.count(name) > 1]
    if twice:
        raise line_error(path, line, f"the column {twice[0]!r} occurs twice.")


@dataclass
class _Document:
    """A document as far as it has been read.

    id: Its id.
    text: Its text.
    mentions: The mentions of the lines so far.
    ends: Where the last mention ends that was given by these words alone.
    """

    id: str
    text: str
    mentions: List[AnnotatedMention] = field(default_factory=list)
    ends: Dict[str, int] = field(default_factory=dict)


def _add(documents: Dict[str, _Document], row: Dict[str, str], otherwise: str) -> None:
    """Add the document of a line, or its mention to the document that is there already."""
    text, own_id = row["text"], row.get("id", "").strip()
    key = own_id or f"\n{text}"
    document = documents.get(key) or _Document(own_id or otherwise, text)
    if document.text != text:
        raise Problem(f"the document {own_id!r} has another text in an earlier line.")
    mention = _mention(row, document)
    if mention:
        document.mentions.append(mention)
    documents[key] = document


def _mention(row: Dict[str, str], document: _Document) -> Optional[AnnotatedMention]:
    offsets = _offsets(row, document)
    if offsets is None:
        return None
    label = row.get("label", "").strip() or LABEL
    ids, cluster = split_ids(row.get("kb_id", "")), row.get("cluster", "").strip()
    return AnnotatedMention(*offsets, label, ids, cluster if not ids else "")


def _offsets(row: Dict[str, str], document: _Document) -> Optional[Tuple[int, int]]:
    """Start and end of the mention of a line; None where it has none.

    Words that several lines have are found one place after the other, and again at the first one
    where the text has them less often.
    """
    words, text = row.get("mention", "").strip(), document.text
    if row.get("start", "").strip():
        start = _number(row, "start")
        end = _number(row, "end") if row.get("end", "").strip() else start + len(words)
        if not 0 <= start < end <= len(text):
            raise Problem(offsets_problem(start, end, len(text)))
        if words and text[start:end].strip() != words:
            raise Problem(f"the mention is {words!r}, but the text there {text[start:end]!r}.")
        return start, end
    if not words:
        return None
    start = text.find(words, document.ends.get(words, 0))
    if start < 0:
        start = text.find(words)
    if start < 0:
        raise Problem(f"the text does not contain the mention {words!r}.")
    document.ends[words] = start + len(words)
    return start, start + len(words)


def _number(row: Dict[str, str], column: str) -> int:
    value = row[column].strip()
    if not (value.isascii() and value.isdigit() and len(value) < 16):
        raise Problem(f"{column!r} must be a whole number, got {value!r:.40}.")
    return int(value)


def cell(value: object) -> object:
    """A value for a CSV file, which no spreadsheet takes for a formula.

    A text that begins with "=" or the like gets an apostrophe before it.
    """
    is_formula = isinstance(value, str) and value[:1] in tuple("=+-@\t\r")
    return f"'{value}" if is_formula else value
