"""Reading of files and folders of any format. They become annotated text or Docs.

``read`` gives the documents of a file as text, ``docs_in`` as Docs without links, with the tokens
that a ``.spacy`` file has. All commands read with these.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab

from ..base.errors import Errors, Warnings
from ..base.settings import check_choice
from ..mentions.record import document_id
from ..records.formats import check_readable, corpus_formats, format_of, make_reader
from ..records.lines import (
    OnBad,
    PathLike,
    check_encoding,
    check_exists,
    files_in,
    read_lines,
    read_text,
    throw,
    unpacked_start,
)
from ..records.offsets import CHARACTERS, READINGS, is_within_word, within_words
from ..records.parquet import parquet_rows
from ..records.source import Source
from .annotated import AnnotatedText
from .docbin import SUFFIX, numbered_docs
from .docs import to_doc, unlinked, warn_of_overlaps
from .json_documents import JsonlReader, read_each, text_of_record
from .table import read_table

PARQUET = ".parquet"
# The columns that are read of a Parquet file, of which only the text must be there.
COLUMNS = ("id", "text", "mentions")
SUFFIXES = (SUFFIX, ".txt", ".jsonl", ".csv", ".tsv", PARQUET)


def read(
    path: PathLike,
    format: str,
    on_error: OnBad = throw,
    counts: Counter | None = None,
    offsets: str = "",
    id_key: str = "",
) -> Iterator[AnnotatedText]:
    """Read an annotated corpus.

    A warning tells where offsets did not count characters, and where they seem not to. Raises
    ValueError for an unknown format or reading.

    format: A name in ``corpus_formats``; "" for what name and content of the file say.
    on_error: Takes the errors of invalid lines; by default they are raised.
    counts: Counts omissions, under "duplicates" and "excluded".
    offsets: How the file counts offsets, one of ``READINGS``; "" tries all of them where it has
        the words of mentions, and counts characters where it has not.
    id_key: The name of the field that has the ids of mentions; "" to know it by its name.
    """
    format = format or known_format_of(check_exists(path))
    if offsets:
        check_choice("offsets", offsets, READINGS)
    settings = {"offsets": offsets, "id_key": id_key}
    options = {name: value for name, value in settings.items() if value}
    reader = make_reader(corpus_formats, format, options)
    texts = reader.read(path, on_error, Counter() if counts is None else counts)
    return checked(texts, path, is_known=bool(offsets))


def known_format_of(path: Path) -> str:
    """The format that name and content of a file say. ValueError where they say nothing."""
    format = format_of(corpus_formats, path)
    if format:
        return format
    if not path.is_dir():
        check_readable(path, JsonlReader)
        if not unpacked_start(path, 2):
            return "jsonl"  # an empty file, or a pipe, whose beginning is not taken
    formats = ", ".join(sorted(corpus_formats.get_all()))
    raise Errors.E120(path=path, formats=formats)


def checked(
    texts: Iterable[AnnotatedText], path: PathLike, is_known: bool
) -> Iterator[AnnotatedText]:
    """Yield documents, then warn of doubtful offsets and of mentions that were left out.

    is_known: Whether it was said how they count.
    """
    counted = Counter[str]()
    doubtful = Counter[str]()
    total = 0
    in_pieces: dict[str, int] = {}
    example = ""
    unread = Counter[str]()
    for text in texts:
        unread.update(text.unread)
        counted.update(
            {mention.counted for mention in text.mentions} - {"", CHARACTERS}
        )
        places = [(m.start, m.end) for m in text.mentions if not m.counted]
        total += len(places)
        within = within_words(text.text, places) if places else {}
        if within.get(CHARACTERS) and not example:
            start, end = next(at for at in places if is_within_word(text.text, *at))
            example = f"{text.text[start:end]!r} in document {text.id!r}"
        doubtful.update(within)
        if text.in_pieces:
            in_pieces[text.id] = text.in_pieces
        yield text
    if unread:
        fields = ", ".join(
            f"{name!r} ({count})" for name, count in unread.most_common(5)
        )
        first = unread.most_common(1)[0][0]
        Warnings.W109.warn(path=path, fields=fields, first=first)
    if in_pieces:
        Warnings.W107.warn(
            path=path,
            count=sum(in_pieces.values()),
            doc=next(iter(in_pieces)),
            docs=len(in_pieces),
        )
    for reading, count in counted.items() if not is_known else ():
        Warnings.W104.warn(path=path, count=count, reading=reading)
    if count := doubtful[CHARACTERS]:
        best = min(READINGS, key=lambda reading: doubtful[reading])
        fewer = doubtful[best]
        message = (
            Warnings.W105 if not is_known and fewer <= count / 2 else Warnings.W103
        )
        message.warn(
            path=path,
            count=count,
            all=total,
            example=example,
            reading=best,
            fewer=fewer,
        )


def read_source(source: Source, by_line: bool = False) -> Iterator[AnnotatedText]:
    """Read a file by its suffix. Nothing but the text of a document must be there.

    by_line: Whether each line of a ``.txt`` file is a document, instead of the file.
    """
    suffix = Path(source.path).suffix.lower()
    if suffix == SUFFIX:
        for number, doc in numbered_docs(
            source.path, Vocab(), source.on_error, source.lines
        ):
            yield AnnotatedText(
                document_id(doc) or source.made_up_id(number), doc.text
            )
    elif suffix == ".jsonl":
        yield from read_each(source, text_of_record)
    elif suffix == PARQUET:
        rows = parquet_rows(source, COLUMNS, "text")
        # Without a text, one is left out and counted as that of a table is.
        texts = (
            (row, {**record, "text": record["text"] or ""}) for row, record in rows
        )
        yield from read_each(source, text_of_record, texts)
    elif suffix != ".txt":
        yield from read_table(source)
    elif by_line:
        for number, line in read_lines(source.path, source.on_error, source.lines):
            yield AnnotatedText(source.made_up_id(number), line)
    else:
        yield AnnotatedText(source.name, read_text(source.path, source.encoding))


def docs_in(source: Source, nlp: Language) -> Iterator[Doc]:
    """Yield a file's documents with unlinked mentions. Each has a ``doc_id``.

    Documents without text are left out, with a warning that counts them. A file that can't be read
    at all is an error too.

    nlp: Only its tokenizer and its vocabulary are used.
    """
    try:
        if Path(source.path).suffix.lower() == SUFFIX:
            docs = numbered_docs(source.path, nlp.vocab, source.on_error, source.lines)
            for number, doc in docs:
                doc.user_data.setdefault("doc_id", source.made_up_id(number))
                yield unlinked(doc)
            return
        empty: list[str] = []
        counts: Counter = Counter()
        for text in read_source(source):
            try:
                doc = to_doc(nlp, text, counts=counts)
            except ValueError as error:
                source.on_error(error)
                continue
            if text.text.strip():
                yield unlinked(doc)
            else:
                empty.append(text.id)
        warn_of_overlaps(source.path, counts)
        if empty:
            Warnings.W110.warn(path=source.path, count=len(empty), doc=empty[0])
    except (ValueError, OSError) as error:
        source.on_error(
            error if isinstance(error, ValueError) else ValueError(str(error))
        )


def read_documents(
    path: Path, nlp: Language, encoding: str = "utf8", on_error: OnBad = throw
) -> Iterator[Doc]:
    """Yield documents of a file or folder with unlinked mentions.

    A ``.txt`` file is one document. An object of a JSONL file, a line of a CSV file and a row of a
    Parquet file need only a ``text``. An id that is made up is the file and the number of the line,
    row or document: the same in each run. Documents without text are left out.

    Raises ValueError for a file of another kind, and for a folder without such files.

    nlp: Only its tokenizer and its vocabulary are used.
    on_error: Takes the errors of invalid lines and files; by default they are raised.
    """
    check_encoding(encoding)
    for file in files_of(path):
        name = relative_name(path, file)
        yield from docs_in(Source(file, on_error, name, encoding=encoding), nlp)


@registry.readers("spacy-arbo-el.Documents.v1")
def documents_reader(
    path: str | Path, encoding: str = "utf8"
) -> Callable[[Language], Iterator[Doc]]:
    """Read the documents of a file or folder, with the mentions that they have.

    See ``read_documents``.

    path: The file or the folder.
    encoding: That of the files of text.
    """
    return lambda nlp: read_documents(Path(path), nlp, encoding)


def files_of(path: Path, any_suffix: bool = False) -> Iterator[Path]:
    """List the readable files of a folder by name, or the file itself."""
    path = check_exists(path, "Check the path.")
    files = [
        file
        for file in files_in(path)
        if any_suffix or file.suffix.lower() in SUFFIXES
    ]
    if not files:
        raise Errors.E789(path=path, suffixes=", ".join(SUFFIXES))
    yield from files


def relative_name(corpus: Path, file: Path) -> str:
    """Name of a file within its corpus. It is the same wherever the corpus is."""
    return file.name if file == corpus else file.relative_to(corpus).as_posix()


def read_ids(path: PathLike) -> frozenset[str]:
    """Read a file with one id per line. Such as documents to leave out."""
    return frozenset(line.strip() for _, line in read_lines(path) if line.strip())
