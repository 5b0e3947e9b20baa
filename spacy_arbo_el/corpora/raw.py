"""Documents to link: plain text, JSONL, CSV, Parquet, ``.spacy``, and folders of these."""

from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ..errors import Errors
from ..storage.lines import (
    OTHER_ENCODING,
    WHOLE,
    Lines,
    OnBad,
    PathLike,
    check_encoding,
    check_exists,
    encoding_name,
    read_lines,
    throw,
)
from . import parquet
from .annotated import AnnotatedText
from .convert import make_doc, read_corpus
from .fields import string
from .jsonl import mentions_of
from .reader import SUFFIX, read_docs, unlinked
from .records import id_in, read_each
from .table import read_table

SUFFIXES = (SUFFIX, ".txt", ".jsonl", ".csv", ".tsv", parquet.SUFFIX)


def read_documents(
    path: Path, nlp: Language, encoding: str = "utf8", bad: OnBad = throw
) -> Iterator[Doc]:
    """Yield the documents of a file, or of all files of a folder, with their mentions unlinked.

    A ``.txt`` file is one document. An object of a JSONL file, a line of a CSV file and a row of a
    Parquet file need only a ``text``. Ids are made up where there are none; they may occur again in
    another folder. Documents without text are left out.

    Raises ValueError for a file of another kind, and for a folder without such files.

    path: The file or the folder.
    nlp: Only its tokenizer and its vocabulary are used.
    encoding: That of the files of text.
    bad: Takes the errors of invalid lines, and of ``.txt`` files; by default they are raised.
    """
    check_encoding(encoding)
    for file in files_of(path):
        if file.suffix.lower() == SUFFIX:
            for doc in read_docs(file, nlp.vocab):
                yield unlinked(doc)
            continue
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        for text in _read_texts(file, name, encoding=encoding, bad=bad):
            doc = unlinked(make_doc(nlp, text))
            if len(doc):
                yield doc


def read_plain_documents(
    path: Path,
    nlp: Language,
    format: str = "",
    keep: Callable[[str], bool] = lambda id_: True,
) -> Iterator[Doc]:
    """Yield the documents of a file, or of all files of a folder, without their annotations.

    Nothing but their text and id is read. Each line of a ``.txt`` file is a document, so that
    files of any size fit into memory. Documents without text are left out.

    Raises ValueError as ``read_documents`` does, and for an unknown format.

    path: The file or the folder.
    nlp: Only its tokenizer and its vocabulary are used.
    format: The format of all files, a name in ``corpus_formats``; "" goes by their suffixes.
    keep: Whether a document is wanted, by its id.
    """
    for file in files_of(path, any_suffix=bool(format)):
        name = file.relative_to(path).as_posix() if path.is_dir() else file.name
        yield from plain_documents_of(file, name, nlp, format, keep)


def plain_documents_of(
    file: Path,
    name: str,
    nlp: Language,
    format: str = "",
    keep: Callable[[str], bool] = lambda id_: True,
    part: Lines = WHOLE,
) -> Iterator[Doc]:
    """The documents of one file, as ``read_plain_documents`` yields them.

    name: What the file is called in ids that are made up.
    part: Which lines of a ``.txt`` or JSONL file, rows of a Parquet file or documents of a
        ``.spacy`` file to read; others are read as a whole.
    """
    for id_, text in _plain_texts(file, name, nlp, format, part):
        if text.strip() and keep(id_):
            doc = nlp.make_doc(text)
            doc.user_data["doc_id"] = id_
            yield doc


def _plain_texts(
    path: Path, name: str, nlp: Language, format: str, part: Lines
) -> Iterator[Tuple[str, str]]:
    suffix = path.suffix.lower()
    if format:
        yield from ((text.id, text.text) for text in read_corpus(path, format))
    elif suffix == SUFFIX:
        docs = islice(read_docs(path, nlp.vocab), part.start, part.stop)
        for number, doc in enumerate(docs, part.start + 1):
            yield str(doc.user_data.get("doc_id", "")) or f"{name}:{number}", doc.text
    elif suffix == ".txt":
        yield from ((f"{name}:{number}", line) for number, line in read_lines(path, lines=part))
    else:
        yield from ((text.id, text.text) for text in _read_texts(path, name, part))


def files_of(path: Path, any_suffix: bool = False) -> Iterator[Path]:
    """The files of a folder that can be read, in order of their names; or the file itself.

    any_suffix: Whether they can have any suffix.
    """
    path = check_exists(path, "Check the path.")
    if not path.is_dir():
        if not any_suffix and path.suffix.lower() not in SUFFIXES:
            raise ValueError(Errors.E789.format(path=path, suffixes=", ".join(SUFFIXES)))
        yield path
        return
    files = sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and (any_suffix or file.suffix.lower() in SUFFIXES)
    )
    if not files:
        raise ValueError(Errors.E789.format(path=path, suffixes=", ".join(SUFFIXES)))
    yield from files


def _read_texts(
    path: Path, name: str, part: Lines = WHOLE, encoding: str = "utf8", bad: OnBad = throw
) -> Iterator[AnnotatedText]:
    suffix = path.suffix.lower()
    if suffix == ".txt":
        try:
            yield text_of_file(path, name, encoding)
        except ValueError as error:
            bad(error)
    elif suffix == ".jsonl":
        yield from read_each(path, text_of_record, bad, part, encoding)
    elif suffix == parquet.SUFFIX:
        yield from parquet.read_parquet(path, text_of_record, bad, part.start, part.stop)
    else:
        yield from read_table(path, bad, encoding)


def text_of_file(path: PathLike, name: str, encoding: str = "utf8") -> AnnotatedText:
    """The document that a ``.txt`` file is.

    name: Its id.
    encoding: Its encoding. A byte order mark is no part of the text.
    """
    try:
        text = Path(path).read_bytes().decode(encoding).removeprefix("\ufeff")
    except UnicodeError as error:
        problem = f"the file isn't {encoding_name(encoding)} ({error}). {OTHER_ENCODING}"
        raise ValueError(Errors.E788.format(path=path, problem=problem)) from None
    return AnnotatedText(name, text)


def text_of_record(record: Dict[str, Any], id_: str) -> AnnotatedText:
    """The document of a record that needs only a ``text``. Raises Problem for an invalid one.

    id_: Its id where it has none.
    """
    text = string(record, "text", empty=True)
    mentions = mentions_of(_with_ids(record), text) if record.get("mentions") is not None else ()
    return AnnotatedText(id_in(record, "id", id_), text, mentions)


def _with_ids(record: Dict[str, Any]) -> Dict[str, Any]:
    """The record with a ``kb_id`` for each mention: those that are to be linked need none."""
    mentions = record["mentions"]
    if not isinstance(mentions, list):
        return record
    given = [{"kb_id": None, **m} if isinstance(m, dict) else m for m in mentions]
    return {**record, "mentions": given}
