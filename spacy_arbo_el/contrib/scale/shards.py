"""The shards of a corpus. What a worker reads, links and writes at a time."""

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import srsly
from spacy.language import Language
from spacy.tokens import Doc

from ...base.extras import import_pyarrow
from ...corpora.docbin import SUFFIX
from ...corpora.read import PARQUET, docs_in, files_of, relative_name
from ...records.lines import WHOLE, Lines, OnBad, read_lines
from ...records.source import Source
from ...storage.files import json_lines, write_file

# Documents of a shard. A multiple of the documents that are encoded at a time.
SIZE = 256


def count_rows(path: Path) -> int | None:
    """Count the rows of a file. None where it can't be read."""
    pyarrow = import_pyarrow()
    try:
        return int(pyarrow.parquet.ParquetFile(path).metadata.num_rows)
    except (OSError, pyarrow.ArrowException):
        return None


@dataclass(frozen=True)
class Shard:
    """Some documents of a corpus.

    files: The file that the documents are in, relative to the corpus; several where each file is
        one document.
    lines: The part of the file that it is: lines of JSONL, rows of Parquet, documents of a
        ``.spacy`` file; the byte at which it begins in a JSONL file.
    """

    number: int
    files: tuple[str, ...]
    lines: Lines = WHOLE

    @property
    def name(self) -> str:
        """Base name of its files: ``part-000012``."""
        return f"part-{self.number:06d}"

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Shard":
        number, files, lines = json.loads(text).values()
        return cls(number, tuple(files), Lines(*lines))


def cut(corpus: Path, size: int = SIZE) -> Iterator[Shard]:
    """Cut a file or folder into shards, the same ones in each call.

    Files are cut one by one, in order of their names. A ``.csv`` file is one shard, since it must
    be read as a whole. Files that are one document each, ``.txt``, are put together.
    """
    number = 0
    singles: tuple[str, ...] = ()
    for file in files_of(corpus):
        name = relative_name(corpus, file)
        if file.suffix.lower() == ".txt":
            singles += (name,)
            if len(singles) < size:
                continue
            yield Shard(number, singles)
            number += 1
            singles = ()
            continue
        for lines in borders(file, size):
            yield Shard(number, (name,), lines)
            number += 1
    if singles:
        yield Shard(number, singles)


def write_shards(path: Path, shards: Sequence[Shard]) -> None:
    """Write shards to a file, one per line."""
    write_file(path, json_lines(map(asdict, shards)))


def read_shards(path: Path) -> list[Shard]:
    """The shards that ``write_shards`` wrote."""
    return [Shard.from_json(line) for _, line in read_lines(path)]


def read_shard(corpus: Path, shard: Shard, nlp: Language, bad: OnBad) -> Iterator[Doc]:
    """Yield the documents of a shard, see ``docs_in``.

    corpus: The file or folder that was cut.
    bad: Takes the errors of documents and files that cannot be read.
    """
    for name in shard.files:
        file = corpus / name if corpus.is_dir() else corpus
        yield from docs_in(Source(file, bad, name, shard.lines), nlp)


def borders(file: Path, size: int) -> Iterator[Lines]:
    """Yield the part of a file that each of its shards is."""
    suffix = file.suffix.lower()
    # The worker that reads a file reports that it can't be read.
    if suffix == ".jsonl" and os.access(file, os.R_OK):
        yield from _borders_of_lines(file, size)
        return
    count: int | None = None
    if suffix == PARQUET:
        count = count_rows(file)
    elif suffix == SUFFIX:
        count = _count_docs(file)
    if count is None:
        yield WHOLE
        return
    for start in range(0, count, size):
        yield Lines(start, min(start + size, count))


def _borders_of_lines(file: Path, size: int) -> Iterator[Lines]:
    start = end = offset = position = 0
    with file.open("rb") as lines:
        for line in lines:
            if end - start == size:
                yield Lines(start, end, offset)
                start = end
                offset = position
            end += 1
            position += len(line)
    if end > start:
        yield Lines(start, end, offset)


def _count_docs(file: Path) -> int | None:
    """Count the documents of a ``.spacy`` file. None where it can't be read."""
    try:
        # As DocBin reads it, without making strings and documents of it.
        message = srsly.msgpack_loads(zlib.decompress(file.read_bytes()))
        return len(np.frombuffer(message["lengths"], dtype="int32"))
    except (OSError, ValueError, KeyError, TypeError, zlib.error):
        return None
