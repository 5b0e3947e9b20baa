"""Documents in CSV and TSV, one mention per line.

    id,text,start,end,label,kb_id
    d1,Ada met Bo.,0,3,PERSON,Q7259
    d1,Ada met Bo.,8,10,PERSON,

Only ``text`` must be there. Lines with the same id are one document, and so are lines with the
same text where there are no ids. Instead of offsets, ``mention`` may have the words of the mention,
which are searched in the text: a second line with the same words means their second place. A line
without offsets and words adds no mention.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from ..formats import corpus_formats
from ..storage.lines import OnBad, PathLike, ignore, line_error, read_cells, read_lines, throw
from .annotated import LABEL, AnnotatedMention, AnnotatedText, offsets_problem, split_ids
from .json_documents import Problem, Source

COLUMNS = ("id", "text", "start", "end", "mention", "label", "kb_id", "cluster")


@corpus_formats("csv")
def read_csv(path: PathLike, bad: OnBad = throw) -> Iterator[AnnotatedText]:
    """Yield the documents of a table; see ``read_table``."""
    return read_table(Source(path, bad))


def read_table(source: Source) -> Iterator[AnnotatedText]:
    """Yield the documents of a table with named columns. Its first line names them.

    Columns are separated by tabs in .tsv files, otherwise by the most frequent of these in the
    first line: commas, or semicolons.

    Raises ValueError with file, line and problem at an invalid line.
    """
    documents: Dict[str, _Document] = {}
    for number, row in read_rows(source, ("text",)):
        try:
            _add(documents, row, source.made_up_id(number))
        except Problem as problem:
            source.report(number, problem)
    for document in documents.values():
        yield AnnotatedText(document.id, document.text, tuple(document.mentions))


def read_rows(source: Source, required: Tuple[str, ...]) -> Iterator[Tuple[int, Dict[str, str]]]:
    """Yield line number and cells of each nonempty row. The first line is skipped; cells are by
    column.

    required: Columns that must be there.
    """
    path = source.path
    start = next((line for _, line in read_lines(path, ignore, encoding=source.encoding)), "")
    is_tsv = Path(path).suffix.lower() in (".tsv", ".tab")
    delimiter = "\t" if is_tsv else max(",;", key=start.count)
    header: Optional[List[str]] = None
    for first, row in read_cells(path, delimiter, source.on_error, source.encoding):
        if not any(cell.strip() for cell in row):
            continue
        if header is None:
            header = [name.strip().lower() for name in row]
            _check_header(path, first, header, required)
        elif len(row) != len(header):
            problem = f"expected {len(header)} columns as in the first line, got {len(row)}."
            source.report(first, problem)
        else:
            yield first, dict(zip(header, row))
    if header is None:
        raise line_error(path, 1, "the file is empty. The first line must name the columns.")


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
    """Add a line's document, or its mention to that document."""
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
    """Start and end of the mention of a line. None where it has none.

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
    """Escape a CSV value that spreadsheets would run as formula.

    A text that begins with "=" or the like gets an apostrophe before it.
    """
    is_formula = isinstance(value, str) and value[:1] in tuple("=+-@\t\r")
    return f"'{value}" if is_formula else value
