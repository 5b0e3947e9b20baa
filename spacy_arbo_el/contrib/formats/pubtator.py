"""The format PubTator of NCBI Disease, BC5CDR and others.

    8808605|t|The title.
    8808605|a|The abstract.
    8808605<tab>0<tab>9<tab>The title<tab>Disease<tab>D005955

Empty lines separate documents. Offsets count the characters of title + one space + abstract.
"""

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from ...corpora.annotated import AnnotatedText, split_ids
from ...corpora.json_documents import About, placed
from ...records.formats import certainty, check_readable
from ...records.lines import OnBad, PathLike, check_exists, read_lines
from ...records.offsets import Given, Misplaced
from ...records.source import LineProblem, Source
from .errors import FormatMessages

TEXT_LINE = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
# A variant as tmVar writes it: "tmVar:c|SUB|G|12|A;HGVS:c.12G>A".
VARIANT = re.compile(
    r"\b(?:tmVar:|HGVS:|[cgmnpr]?\|(?:SUB|DEL|INS|DUP|INDEL|FS|Allele)\|)", re.I
)
# What GNormPlus and others write behind an id: the species of a gene, and a star for a guess.
REMARK = re.compile(
    r"\((?:Tax|taxid|species)[:_ ]?\d+\)|(?<=\w)\*(?=$|[|+;,\s])", re.I
)
FORM = "Expected 'id|t|title', 'id|a|abstract', 'id<tab>start<tab>end<tab>text<tab>label<tab>ids'"


START = re.compile(rb"[^|\s]+\|t\|")


@dataclass(frozen=True)
class PubTatorReader:
    """Reads the documents of a PubTator file.

    Ids joined by ``|``, ``+``, ``;`` or ``,`` become several ``kb_ids``; in a variant of tmVar,
    ``;`` alone separates ids, and its bars become ``_``. An id of ``-1`` or an empty one becomes
    NIL. Relation lines (``CID``) and the columns after the ids (BC5CDR's
    composite names) are skipped. There may be no abstract. Of documents with the same id, the first
    is kept; the others are left out with a warning, and count as "duplicates".

    Raises ValueError with file, line and problem at the first invalid line, for example if the text
    of an annotation differs from the text at its offsets. Where such lines are left out, the rest
    of their document is too.

    offsets: How the file counts offsets, such as utf16; "" to find it out.
    """

    offsets: str = ""

    sniff = staticmethod(partial(certainty, suffixes=(".pubtator",), pattern=START))

    def read(
        self, path: PathLike, bad: OnBad, counts: Counter
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        check_readable(check_exists(path), self)
        seen: set[str] = set()
        source = Source(path, bad, offsets=self.offsets)

        def read(line: int, document: _Abstract) -> AnnotatedText | None:
            if document.id in seen:
                message = FormatMessages.W100.format(
                    path=path, line=line, id=document.id
                )
                warnings.warn(message, stacklevel=2)
                counts["duplicates"] += 1
                return None
            seen.add(document.id)
            try:
                mentions = placed(
                    document.text, document.places, document.about, self.offsets
                )
            except Misplaced as problem:
                raise LineProblem(document.lines[problem.position], problem) from None
            return AnnotatedText(document.id, document.text, mentions)

        return source.read(_documents(source), read)


@dataclass
class _Abstract:
    """A document whose lines are being read.

    places, about, lines: Its mentions, their labels and ids, and their lines.
    """

    id: str
    title: str
    abstract: str | None = None
    places: list[Given] = field(default_factory=list)
    about: list[About] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.title if self.abstract is None else f"{self.title} {self.abstract}"

    def add_line(self, number: int, line: str) -> None:
        """Add the next line. Raises ValueError if it is not a line of this document."""
        match = TEXT_LINE.fullmatch(line)
        columns = line.split("\t")
        id_ = match[1] if match else columns[0]
        if id_ != self.id:
            raise ValueError(
                f"a line of document {id_[:40]!r} inside document {self.id!r}. {FORM}."
            )
        if match and self.abstract is not None:
            raise ValueError(f"a second abstract for document {self.id}.")
        if match:
            self.abstract = match[3]
        elif not _is_relation(columns):
            mention, annotation = _mention(columns)
            self.places.append(mention)
            self.about.append(annotation)
            self.lines.append(number)


def _documents(source: Source) -> Iterator[tuple[int, _Abstract]]:
    """The documents, each complete, with their first lines. Of one with a bad line nothing."""
    document: _Abstract | None = None
    first = 0
    after_empty = False
    skips = False  # Whether the lines up to the next document are left out.
    for number, line in read_lines(source.path, source.on_error):
        title = TEXT_LINE.fullmatch(line)
        starts = title is not None and title[2] == "t"
        if not line.strip():
            after_empty = True
            skips = False
            continue
        # Some files have empty lines within a document.
        if document and (
            starts
            or (
                after_empty
                and not line.startswith((f"{document.id}|", f"{document.id}\t"))
            )
        ):
            yield first, document
            document = None
        after_empty = False
        if title and starts:
            skips = False
            document = _Abstract(title[1], title[3])
            first = number
        elif not skips:
            try:
                if document is None:
                    raise ValueError(
                        f"a line outside any document, {line[:40]!r}. {FORM}."
                    )
                document.add_line(number, line)
            except ValueError as problem:
                source.report(number, problem)
                document = None
                skips = True
    if document:
        yield first, document


def _is_relation(columns: list[str]) -> bool:
    """Return whether a line is a relation. ``id, CID, D008750, D007022``, and "Novel" in BioRED."""
    return (
        len(columns) in (4, 5)
        and re.fullmatch(r"[A-Za-z_-]{2,}", columns[1]) is not None
    )


def _mention(columns: list[str]) -> tuple[Given, About]:
    if len(columns) < 5:
        raise ValueError(f"{len(columns)} columns are too few. {FORM}.")
    mention = Given(_offset(columns[1]), _offset(columns[2]), columns[3])
    label = columns[4].strip()
    if not label:
        raise ValueError(f"the label (column 5) is empty. {FORM}.")
    ids = ids_in(columns[5]) if len(columns) > 5 else ()
    return mention, (label, ids, "")


def ids_in(value: str) -> tuple[str, ...]:
    """The ids of a mention, where bars within a variant of tmVar separate none."""
    if VARIANT.search(value):
        return split_ids(value.replace("|", "_"), ";")
    return split_ids(REMARK.sub("", value), "+;,")


def _offset(value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", value.strip()):
        raise ValueError(
            f"{value[:40]!r} is no offset: expected a whole number. {FORM}."
        )
    return int(value)
