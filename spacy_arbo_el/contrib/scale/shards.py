"""The shards of a corpus. What a worker reads, links and writes at a time."""

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from spacy.language import Language
from spacy.tokens import Doc

from ...base.extras import import_pyarrow
from ...corpora.docbin import SUFFIX
from ...corpora.read import PARQUET, docs_in, files_of, relative_name
from ...records.lines import Lines, OnBad, read_lines
from ...records.source import Source
from ...storage.files import write_file

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
    start: The number of the first record of the file, from 0: a line of JSONL, a row of Parquet, a
        document of a ``.spacy`` file.
    stop: The number behind that of the last record; None for the end of the file.
    offset: The byte at which ``start`` begins in a JSONL file.
    """

    number: int
    files: tuple[str, ...]
    start: int = 0
    stop: int | None = None
    offset: int = 0

    @property
    def name(self) -> str:
        """Base name of its files: ``part-000012``."""
        return f"part-{self.number:06d}"

    @property
    def lines(self) -> Lines:
        """The part of the file that it is."""
        return Lines(self.start, self.stop, self.offset)

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Shard":
        values: dict[str, Any] = json.loads(text)
        return cls(**{**values, "files": tuple(values["files"])})


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
        for start, stop, offset in borders(file, size):
            yield Shard(number, (name,), start, stop, offset)
            number += 1
    if singles:
        yield Shard(number, singles)


def write_shards(path: Path, shards: Sequence[Shard]) -> None:
    """Write shards to a file, one per line."""
    write_file(
        path, "".join(shard.to_json() + "\n" for shard in shards).encode("utf8")
    )


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


def borders(file: Path, size: int) -> Iterator[tuple[int, int | None, int]]:
    """Yield first record, number behind the last, and first byte of each shard of a file."""
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
        yield 0, None, 0
        return
    for start in range(0, count, size):
        yield start, min(start + size, count), 0


def _borders_of_lines(file: Path, size: int) -> Iterator[tuple[int, int, int]]:
    start = end = offset = position = 0
    with file.open("rb") as lines:
        for line in lines:
            if end - start == size:
                yield start, end, offset
                start = end
                offset = position
            end += 1
            position += len(line)
    if end > start:
        yield start, end, offset


def _count_docs(file: Path) -> int | None:
    """Count the documents of a ``.spacy`` file. None where it can't be read."""
    try:
        # As DocBin reads it, without making strings and documents of it.
        message = srsly.msgpack_loads(zlib.decompress(file.read_bytes()))
        return len(np.frombuffer(message["lengths"], dtype="int32"))
    except (OSError, ValueError, KeyError, TypeError, zlib.error):
        return None
