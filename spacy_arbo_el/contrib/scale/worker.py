"""A worker that loads a pipeline and links single documents or shards of them."""

import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from spacy.tokens import Doc
from spacy.util import minibatch

from ...corpora.docs import unlinked
from ...find.finders import make_finder
from ...linker import find_linker
from ...linking.corpus import BATCH
from ...pipelines import load_pipeline
from ...show.frames import linked_mentions
from .identity import check_same, fingerprint, versions
from .job import FORMATS, Job, ShardReport
from .shards import Shard, read_shard

# Takes a document that cannot be linked, and why.
OnBadDoc = Callable[[Doc, ValueError], None]


class PipelineWorker:
    """A pipeline that finds and links mentions per document.

    Raises ValueError where the pipeline or the packages are not those of the driver.
    """

    def __init__(self, job: Job) -> None:
        model = Path(job.model)
        ours = {"pipeline": fingerprint(model), **versions()}
        check_same({"pipeline": job.pipeline, **job.versions}, ours)
        self.nlp = load_pipeline(model, config=job.overrides)
        self.linker = find_linker(self.nlp)
        self.is_given = not job.find
        self.finder = make_finder(self.nlp, self.linker, job.find)

    def find(self, docs: Sequence[Doc], bad: OnBadDoc) -> list[Doc]:
        """Find mentions, leaving out documents where that fails."""
        return (
            list(docs) if self.finder is None else all_or_each(self._find, docs, bad)
        )

    def link(self, docs: Sequence[Doc], bad: OnBadDoc) -> list[Doc]:
        """The documents with links, without those that cannot be linked."""
        return all_or_each(self._link, docs, bad)

    def _find(self, docs: Sequence[Doc]) -> list[Doc]:
        assert self.finder is not None
        return list(
            self.finder([unlinked(doc, mentions=self.is_given) for doc in docs])
        )

    def _link(self, docs: Sequence[Doc]) -> list[Doc]:
        self.linker.set_annotations(docs, self.linker.predict(docs))
        return list(docs)


def all_or_each(
    change: Callable[[Sequence[Doc]], list[Doc]], docs: Sequence[Doc], bad: OnBadDoc
) -> list[Doc]:
    """The changed documents. If all at once fail, they are changed one by one, without bad ones.

    ValueError is what this package and spaCy raise for documents. Other errors are none of theirs.
    """
    try:
        return change(docs)
    except ValueError as error:
        if len(docs) == 1:
            bad(docs[0], error)
            return []
    return [changed for doc in docs for changed in all_or_each(change, [doc], bad)]


class Problems(list[dict[str, str]]):
    """Documents of a shard with errors, as rows."""

    def reading(self, error: ValueError) -> None:
        """A document that could not be read. The message says where it is."""
        self.append({"document": "", "reason": str(error)})

    def linking(self, doc: Doc, error: ValueError) -> None:
        """A document that could not be linked."""
        self.append({"document": str(doc.user_data["doc_id"]), "reason": str(error)})


class ShardWorker:
    """Reads, links and writes shards, each document for itself.

    The words of a shard are forgotten after it, so that memory does not grow with the documents.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.pipeline = PipelineWorker(job)

    def __call__(self, shard: Shard) -> None:
        start = time.perf_counter()
        problems = Problems()
        with self.pipeline.nlp.memory_zone():
            docs = [
                linked
                for batch in minibatch(self.read(shard, problems), BATCH)
                for linked in self.pipeline.link(batch, problems.linking)
            ]
            self.write(shard, docs, problems, start)

    def read(self, shard: Shard, problems: Problems) -> list[Doc]:
        """The documents of a shard with the mentions to link."""
        corpus = Path(self.job.corpus)
        docs = list(read_shard(corpus, shard, self.pipeline.nlp, problems.reading))
        return self.pipeline.find(docs, problems.linking)

    def write(
        self, shard: Shard, docs: list[Doc], problems: Problems, start: float
    ) -> None:
        """Write the linked documents of a shard. start: When the work on it began."""
        linker = self.pipeline.linker
        place = linker.mentions.getter, linker.cfg["extension"]
        links = [link for _, link in linked_mentions(docs, *place)]
        linked = sum(not link.is_nil for link in links)
        worker = f"{platform.node()}:{os.getpid()}"
        seconds = time.perf_counter() - start
        counts = len(docs), len(links), linked, len(links) - linked, len(problems)
        report = ShardReport(shard.number, worker, *counts, round(seconds, 3))
        self.job.finish(
            shard, FORMATS[self.job.format](docs, *place), problems, report
        )
