"""The documents of a shard, without those that cannot be read."""

from functools import partial
from pathlib import Path
from typing import Callable, Iterator

from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..corpora import parquet
from ..corpora.annotated import AnnotatedText
from ..corpora.convert import make_doc
from ..corpora.fields import Problem
from ..corpora.raw import text_of_file, text_of_record
from ..corpora.reader import SUFFIX, unlinked
from ..corpora.records import OnBad
from ..corpora.table import read_table
from ..errors import Errors
from ..storage.lines import Lines, line_error, read_records
from .shards import Shard, path_in


def read_shard(corpus: Path, shard: Shard, nlp: Language, bad: OnBad) -> Iterator[Doc]:
    """Yield the documents of a shard, with their mentions unlinked, and each with a ``doc_id``.

    Documents without text are left out. An id that is made up is the file and the number of the
    line, row or document: the same in each run.

    corpus: The file or folder that was cut.
    nlp: Only its tokenizer and its vocabulary are used.
    bad: Takes the errors of documents and files that cannot be read.
    """
    for name in shard.files:
        path = path_in(corpus, name)
        try:
            if path.suffix.lower() == SUFFIX:
                yield from _read_docbin(path, name, shard, nlp.vocab, bad)
            else:
                for text in _read_texts(path, name, shard, bad):
                    yield from _made(nlp, text, bad)
        except (ValueError, FileNotFoundError) as error:
            bad(ValueError(str(error)))


def _made(nlp: Language, text: AnnotatedText, bad: OnBad) -> Iterator[Doc]:
    """The document of a text; none where it is empty, or where spaCy can't make it."""
    try:
        doc = unlinked(make_doc(nlp, text))
    except ValueError as error:
        bad(error)
        return
    if len(doc):
        yield doc


def _read_texts(path: Path, name: str, shard: Shard, bad: OnBad) -> Iterator[AnnotatedText]:
    suffix = path.suffix.lower()
    made_up = partial(_made_up_id, name)
    if suffix == ".jsonl":
        yield from _read_jsonl(path, shard, bad, made_up)
    elif suffix == parquet.SUFFIX:
        rows = shard.start, shard.stop
        yield from parquet.read_parquet(path, text_of_record, bad, *rows, made_up)
    elif suffix == ".txt":
        yield text_of_file(path, name)
    else:
        yield from read_table(path, bad)


def _made_up_id(name: str, number: int) -> str:
    return f"{name}:{number}"


def _read_jsonl(
    path: Path, shard: Shard, bad: OnBad, made_up: Callable[[int], str]
) -> Iterator[AnnotatedText]:
    for number, record in read_records(path, bad, Lines(shard.start, shard.stop, shard.offset)):
        try:
            yield text_of_record(record, made_up(number))
        except Problem as problem:
            bad(line_error(path, number, str(problem)))


def _read_docbin(path: Path, name: str, shard: Shard, vocab: Vocab, bad: OnBad) -> Iterator[Doc]:
    try:
        docbin = DocBin().from_bytes(path.read_bytes())
    except OSError:
        raise
    # zlib, msgpack, NumPy and spaCy raise different errors on invalid bytes.
    except Exception as error:
        raise ValueError(Errors.E116.format(path=path, problem=error)) from error
    for string in docbin.strings:
        vocab[string]
    stop = len(docbin) if shard.stop is None else shard.stop
    for number in range(shard.start, stop):
        try:
            (doc,) = _only(docbin, number).get_docs(vocab)
        except Exception as error:
            problem = f"document {number + 1}: {error}"
            bad(ValueError(Errors.E116.format(path=path, problem=problem)))
            continue
        if len(doc):
            doc.user_data.setdefault("doc_id", _made_up_id(name, number + 1))
            yield unlinked(doc)


def _only(docbin: DocBin, number: int) -> DocBin:
    """A DocBin with one of the documents; their strings must be in the vocabulary."""
    one = DocBin()
    one.attrs = docbin.attrs
    for part in ("tokens", "spaces", "cats", "flags", "span_groups", "user_data"):
        setattr(one, part, getattr(docbin, part)[number : number + 1])
    return one
