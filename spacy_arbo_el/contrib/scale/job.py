"""A run, its settings and its state. A folder that all workers can reach.

job.json                    the documents and the settings
shards.jsonl                the shards of the corpus
links/part-000012.parquet   the links of a shard
errors/part-000012.jsonl    its documents that could not be read or linked, with the reasons
done/part-000012.json       its counts, written last: the shard is done
summary.json                the counts of all shards, once all are done
new_entities                what one graph over all documents has grouped, see ``one_graph.py``
"""

import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spacy.tokens import Doc, DocBin

from ...base.extras import import_pyarrow
from ...mentions.getters import SpanGetter
from ...records.lines import PathLike
from ...show.frames import LINK_WITH_EVIDENCE, LINKS, rows_of
from ...storage.files import json_lines, write_file, write_json
from .errors import ScaleMessages
from .identity import fingerprint, model_folder, versions
from .map_files import begin
from .shards import SIZE, Shard, cut

SUMMARY = "summary.json"
ERRORS = "errors"
DONE = "done"
# Endings of names that people mean as files.
FILES = (".spacy", ".jsonl", ".csv", ".json", ".tsv", ".txt", ".parquet")
# Settings that say where things are, which may be somewhere else after a restart.
PLACES = ("model", "corpus", "output")


def to_parquet(docs: Sequence[Doc], get_spans: SpanGetter, extension: str) -> bytes:
    pa = import_pyarrow()
    types = {
        **dict.fromkeys(("start", "end"), pa.int64()),
        **dict.fromkeys(("score", "presence"), pa.float64()),
        "evidence": pa.list_(pa.string()),
    }
    schema = pa.schema(
        [(name, types.get(name, pa.string())) for name in LINK_WITH_EVIDENCE]
    )
    rows = list(rows_of(docs, get_spans, extension))
    buffer = io.BytesIO()
    pa.parquet.write_table(pa.Table.from_pylist(rows, schema=schema), buffer)
    return buffer.getvalue()


# From linked documents to the bytes of a file, by format.
FORMATS: dict[str, Callable[[Sequence[Doc], SpanGetter, str], bytes]] = {
    "parquet": to_parquet,
    "jsonl": lambda *linked: json_lines(rows_of(*linked)),
    "spacy": lambda docs, *_: DocBin(docs=docs, store_user_data=True).to_bytes(),
}


@dataclass(frozen=True)
class ShardReport:
    """The outcome of a shard.

    worker: The host and process that linked it.
    documents: Documents that were linked, those without mentions included.
    mentions, linked, nil: Mentions in them, and how many are linked or NIL.
    errors: Documents and files that could not be read or linked.
    """

    shard: int
    worker: str
    documents: int
    mentions: int
    linked: int
    nil: int
    errors: int
    seconds: float


@dataclass(frozen=True)
class Job:
    """A run: its documents and its settings.

    model: The folder of the pipeline.
    corpus: The documents: a file or a folder.
    pipeline: The fingerprint of the pipeline's folder.
    one_graph: Whether all documents are linked in one graph, instead of each for itself.
    format: Of the links, one of ``FORMATS``.
    find: How mentions are found, see ``make_finder``.
    overrides: Values of settings in the place of those of the pipeline's config.
    size: Documents of a shard.
    versions: Of the packages that links depend on.
    """

    model: str
    corpus: str
    output: str
    pipeline: str
    one_graph: bool = False
    format: str = "parquet"
    find: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)
    size: int = SIZE
    versions: dict[str, str] = field(default_factory=versions)

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            choices = ", ".join(FORMATS)
            raise ScaleMessages.E894(value=self.format, choices=choices)
        if self.size < 1:
            raise ScaleMessages.E900(name="--shard", least=1, value=self.size)

    @classmethod
    def of(
        cls, model: PathLike, corpus: PathLike, output: PathLike, **settings: Any
    ) -> "Job":
        """A job for the pipeline as it is now.

        model: The folder of the pipeline, or the name of an installed package.
        settings: one_graph, format, find, overrides and size.
        """
        folder = model_folder(Path(model))
        at, documents, out = (
            str(Path(path).resolve()) for path in (folder, corpus, output)
        )
        return cls(at, documents, out, fingerprint(folder), **settings)

    @property
    def folder(self) -> Path:
        return Path(self.output)

    @property
    def identity(self) -> dict[str, Any]:
        """Settings that must agree across workers and restarts."""
        return {
            name: value for name, value in asdict(self).items() if name not in PLACES
        }

    def begin(self) -> list[Shard]:
        """Begin the run, or check that it continues the same. See ``begin``.

        RETURNS: The shards of the corpus, done or not.
        """
        if self.format == "parquet":
            import_pyarrow()
        if self.folder.suffix.lower() in FILES or self.folder.is_file():
            raise ScaleMessages.E901(path=self.folder)
        shards = list(cut(Path(self.corpus), self.size))
        begin(self.folder, self.identity, shards)
        return shards

    def file(self, kind: str, shard: Shard, suffix: str) -> Path:
        """The file of a kind of a shard."""
        return self.folder / kind / f"{shard.name}{suffix}"

    def done_file(self, shard: Shard) -> Path:
        """The file that says that a shard is done."""
        return self.file(DONE, shard, ".json")

    def finish(
        self,
        shard: Shard,
        links: bytes,
        errors: list[dict[str, str]],
        report: ShardReport,
    ) -> None:
        """Write what became of a shard; its counts come last."""
        write_file(self.file(LINKS, shard, f".{self.format}"), links)
        if errors:
            write_file(self.file(ERRORS, shard, ".jsonl"), json_lines(errors))
        write_json(self.done_file(shard), asdict(report))

    def done(self) -> frozenset[int]:
        """The numbers of the shards that are done."""
        files = (self.folder / DONE).glob("part-*.json")
        return frozenset(int(file.stem.removeprefix("part-")) for file in files)

    def report_of(self, shard: Shard) -> ShardReport:
        """The counts of a shard that is done."""
        return ShardReport(**json.loads(self.done_file(shard).read_bytes()))


def part_of(shards: Sequence[Shard], part: str) -> list[Shard]:
    """The shards of a part, such as "3/16": every sixteenth from the third.

    "" stands for all.
    """
    if not part:
        return list(shards)
    match = re.fullmatch(r"(\d+)/(\d+)", part)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise ScaleMessages.E892(value=part)
    return [shard for shard in shards if shard.number % count == number - 1]


def summed(reports: Iterable[ShardReport]) -> dict[str, Any]:
    """Sum counts of shards, with each worker's documents per second."""
    counts: dict[str, Any] = dict.fromkeys(
        ("shards", "documents", "mentions", "linked", "nil", "errors"), 0
    )
    workers: dict[str, tuple[int, float]] = {}
    for report in reports:
        values = {**asdict(report), "shards": 1}
        for name in counts:
            counts[name] += values[name]
        documents, seconds = workers.get(report.worker, (0, 0.0))
        workers[report.worker] = documents + report.documents, seconds + report.seconds
    speeds = {
        worker: round(n / max(s, 1e-9), 2)
        for worker, (n, s) in sorted(workers.items())
    }
    return {**counts, "documents_per_second": speeds}
