"""A corpus in one graph: two passes over its shards, and one process between them.

Workers read, encode, retrieve and rerank the mentions of shards, and write them. One process, the
reducer, reads the mentions of all shards, decides on them in one graph, and writes the links of
each shard. Workers write these onto the documents. It is ``CorpusLinker`` in three steps, with the
same links and the same ids of new entities.

    mentions/part-000012.msgpack   the mentions of a shard
    mentions/part-000012.spacy     its documents, with the mentions that were found
    mentions/part-000012.json      its documents that could not be read, with the reasons
    decided/part-000012.msgpack    the links of these documents
    decided.json                   written last by the reducer
    new_entities                   the new entities, as ``NewEntities.to_disk`` writes them
"""

import json
import shutil
import time
from itertools import accumulate
from pathlib import Path
from typing import Any, List, Sequence

import srsly
from spacy.tokens import Doc, DocBin
from spacy.util import minibatch

from ..annotations import Link
from ..discovery.new_entities import NewEntities
from ..io import write_file
from ..linking.corpus import BATCH, CorpusLinker, CorpusLinks
from ..linking.corpus_part import CorpusPart
from .job import SHARDS, Job, Report
from .shards import Shard, read_shards
from .worker import PipelineWorker, Problems, ShardWorker, all_or_each

MENTIONS, DECIDED = "mentions", "decided"
REDUCED, NEW_ENTITIES = "decided.json", "new_entities"


def mentions_file(job: Job, shard: Shard) -> Path:
    """The file of the mentions of a shard, which is written last in the first pass over it."""
    return job.folder / MENTIONS / f"{shard.name}.msgpack"


def documents_file(job: Job, shard: Shard) -> Path:
    """The file of the documents of a shard with their mentions."""
    return job.folder / MENTIONS / f"{shard.name}.spacy"


def problems_file(job: Job, shard: Shard) -> Path:
    """The file of the documents of a shard that could not be read."""
    return job.folder / MENTIONS / f"{shard.name}.json"


def links_file(job: Job, shard: Shard) -> Path:
    """The file of the links that the reducer gives to the documents of a shard."""
    return job.folder / DECIDED / f"{shard.name}.msgpack"


def is_gathered(job: Job, shard: Shard) -> bool:
    """Whether the first pass over a shard is done."""
    return mentions_file(job, shard).is_file()


def is_reduced(job: Job) -> bool:
    """Whether the links of all shards are decided on."""
    return (job.folder / REDUCED).is_file()


class MentionWorker:
    """The first pass: the mentions of shards with their candidates.

    job: What is linked, and how.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shards = ShardWorker(job)
        self.corpus = self.shards.pipeline.linker.corpus_linker()

    def __call__(self, shard: Shard) -> Report:
        """Gather the mentions of a shard. In the report, none is linked."""
        with self.shards.pipeline.nlp.memory_zone():
            return self._gather(shard)

    def _gather(self, shard: Shard) -> Report:
        start, problems = time.perf_counter(), Problems()
        parts: List[CorpusPart] = []
        docs: List[Doc] = []

        def gather(some: Sequence[Doc]) -> List[Doc]:
            parts.append(self.corpus.gather_part(some))
            return list(some)

        for batch in minibatch(self.shards.read(shard, problems), BATCH):
            docs += all_or_each(gather, batch, problems.linking)
        part = CorpusPart.concat(parts or [self.corpus.gather_part([])])
        docbin = DocBin(docs=docs, store_user_data=True)
        write_file(documents_file(self.job, shard), docbin.to_bytes())
        write_file(problems_file(self.job, shard), json.dumps(problems).encode("utf8"))
        write_file(mentions_file(self.job, shard), part.to_bytes())
        seconds = round(time.perf_counter() - start, 3)
        counts = len(docs), len(part.ranked.batch), 0, 0, len(problems)
        return Report(shard.number, self.shards.name, *counts, seconds)


def reduce_mentions(job: Job) -> None:
    """Decide on the mentions of all shards in one graph, and write their links and new entities.

    job: What is linked, and how. The first pass over all its shards is done.
    """
    shards = read_shards(job.folder / SHARDS)
    pipeline = PipelineWorker.of(job)
    corpus = pipeline.linker.corpus_linker()
    parts = [CorpusPart.from_bytes(mentions_file(job, shard).read_bytes()) for shard in shards]
    documents = [len(part.counts) for part in parts]
    mentions = corpus.joined(parts)
    del parts
    links = corpus.link_mentions(mentions, pipeline.linker.threshold)
    stops = list(accumulate(documents))
    for shard, start, stop in zip(shards, [0, *stops], stops):
        data = [_packed(corpus, links, number) for number in range(start, stop)]
        write_file(links_file(job, shard), srsly.msgpack_dumps(data))
    links.new_entities.to_disk(job.folder / NEW_ENTITIES)
    counts = {"documents": sum(documents), "mentions": len(mentions.ranked.batch)}
    write_file(job.folder / REDUCED, json.dumps(counts).encode("utf8"))


def _packed(corpus: CorpusLinker, links: CorpusLinks, number: int) -> List[Any]:
    """The links of a document in plain values. number: Of the document, in the order of reading."""
    rows = links.mentions.places[number]
    return [link.to_data() for link in corpus.links_of(links, rows)]


class WritingWorker:
    """The second pass: writes the links of the reducer onto the documents of shards.

    job: What is linked, and how.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shards = ShardWorker(job)

    def __call__(self, shard: Shard) -> Report:
        """Write the documents of a shard with their links."""
        with self.shards.pipeline.nlp.memory_zone():
            return self._write(shard)

    def _write(self, shard: Shard) -> Report:
        start = time.perf_counter()
        problems = Problems(json.loads(problems_file(self.job, shard).read_bytes()))
        vocab = self.shards.pipeline.nlp.vocab
        docs = list(DocBin().from_disk(documents_file(self.job, shard)).get_docs(vocab))
        decided = srsly.msgpack_loads(links_file(self.job, shard).read_bytes())
        linker = self.shards.pipeline.linker.corpus_linker()
        for doc, links in zip(docs, decided):
            linker.write(doc, [Link.from_data(link) for link in links])
        return self.shards.write(shard, docs, problems, start)


def remove_intermediate(job: Job) -> None:
    """Remove what only the passes needed, once all shards are done."""
    for name in (MENTIONS, DECIDED):
        shutil.rmtree(job.folder / name, ignore_errors=True)


def new_entities_of(job: Job) -> NewEntities:
    """The new entities of a job whose mentions are reduced."""
    return NewEntities.from_disk(job.folder / NEW_ENTITIES)
