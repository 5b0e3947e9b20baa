"""A corpus in one graph: maps over its shards, and one process between them.

It is ``CorpusLinker`` in steps, with the same links and the same ids of new entities:

1. Workers read, encode, retrieve and rerank the mentions of shards (``MentionWorker``).
2. One process brings all mentions into files that can be mapped, and builds the search index
   (``arrange_mentions``).
3. Workers search the neighbours of the mentions of shards among all (``SearchWorker``).
4. One process, the reducer, decides in one graph (``reduce_mentions``). It reads no vectors but
   those of new entities.
5. Workers make the links of shards, and write them onto the documents (``WritingWorker``).

``graph_files.py`` has the files between the steps.
"""

import json
import time
from itertools import accumulate
from typing import Iterator, List, Sequence

from spacy.tokens import Doc, DocBin
from spacy.util import minibatch

from ..arrays import TopK
from ..inference.decisions import Decisions
from ..linking.corpus import BATCH, CorpusLinks
from ..linking.corpus_files import read_mentions, write_mentions
from ..linking.corpus_mentions import CorpusMentions
from ..linking.corpus_part import CorpusPart
from ..linking.decision_files import read_decisions, write_decisions
from ..linking.mapped import FOLDER
from ..retrieval.corpus_search import CorpusSearch
from ..storage.files import pack_arrays, unpack_arrays, write_file
from ..storage.folders import replacing_folder
from .graph_files import (
    CORPUS,
    DECIDED,
    NEW_ENTITIES,
    REDUCED,
    SEARCH,
    Arranged,
    documents_file,
    mentions_file,
    neighbours_file,
    problems_file,
)
from .identity import check_same, versions
from .job import SHARDS, Job, Report
from .shards import Shard, read_shards
from .worker import PipelineWorker, Problems, ShardWorker, all_or_each, worker_name


class MentionWorker:
    """The mentions of shards with their candidates.

    job: The documents and the settings.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shards = ShardWorker(job)
        self.corpus = self.shards.pipeline.linker.corpus

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


def arrange_mentions(job: Job) -> None:
    """Bring the mentions of all shards into one order, and build the search index over them.

    job: The documents and the settings. The mentions of all its shards are gathered.
    """
    shards = read_shards(job.folder / SHARDS)
    documents: List[int] = []

    def parts() -> Iterator[CorpusPart]:
        documents.clear()
        for shard in shards:
            part = CorpusPart.from_bytes(mentions_file(job, shard).read_bytes())
            documents.append(len(part.counts))
            yield part

    write_mentions(job.folder / CORPUS, parts)
    linker = PipelineWorker.of(job).linker.corpus
    search = linker.search(read_mentions(job.folder / CORPUS))
    if search is not None:
        with replacing_folder(job.folder / SEARCH, FOLDER) as folder:
            search.to_disk(folder)
    Arranged(list(accumulate(documents)), search is not None).write(job)
    for shard in shards:
        mentions_file(job, shard).unlink()


class SearchWorker:
    """The neighbours of the mentions of shards among all mentions. It needs no pipeline.

    job: The documents and the settings. Its mentions are arranged.
    """

    def __init__(self, job: Job) -> None:
        check_same(job.versions, versions())
        self.job, self.name = job, worker_name()
        self.arranged = Arranged.of(job)
        self.mentions = read_mentions(job.folder / CORPUS)
        vectors = self.mentions.ranked.batch.encoded
        self.search = CorpusSearch.from_disk(job.folder / SEARCH, vectors)

    def __call__(self, shard: Shard) -> Report:
        """Write the neighbours of a shard. In the report, no mention is linked."""
        start = time.perf_counter()
        rows = self.arranged.rows(shard, self.mentions)
        nearest = self.search.nearest(rows)
        data = pack_arrays({"ids": nearest.ids, "scores": nearest.scores})
        write_file(neighbours_file(self.job, shard), data)
        documents = len(self.mentions.places[self.arranged.documents(shard)])
        seconds = round(time.perf_counter() - start, 3)
        return Report(shard.number, self.name, documents, len(rows), 0, 0, 0, seconds)


def reduce_mentions(job: Job) -> None:
    """Decide on the mentions of all shards in one graph, and write the decisions and new entities.

    job: The documents and the settings. The neighbours of the mentions of all its shards are found.
    """
    pipeline, mentions = PipelineWorker.of(job), read_mentions(job.folder / CORPUS)
    linker, arranged = pipeline.linker.corpus, Arranged.of(job)
    if arranged.searched:
        mentions = linker.with_neighbours(mentions, _neighbours(job, arranged, mentions))
    decided, new_entities = linker.decide(mentions, pipeline.linker.threshold)
    write_decisions(job.folder / DECIDED, decided)
    new_entities.to_disk(job.folder / NEW_ENTITIES)
    counts = {"documents": len(mentions.places), "mentions": len(mentions.documents)}
    write_file(job.folder / REDUCED, json.dumps(counts).encode("utf8"))


def _neighbours(job: Job, arranged: Arranged, mentions: CorpusMentions) -> TopK:
    """The neighbours of all mentions, from the files of all shards."""
    nearest = TopK.empty(0)
    for shard in read_shards(job.folder / SHARDS):
        arrays = unpack_arrays(neighbours_file(job, shard).read_bytes())
        if not nearest.width:
            nearest = TopK.empty(len(mentions.documents), arrays["ids"].shape[1])
        rows = arranged.rows(shard, mentions)
        nearest.ids[rows], nearest.scores[rows] = arrays["ids"], arrays["scores"]
    return nearest


class WritingWorker:
    """Makes the links of shards from the decisions, and writes them onto the documents.

    job: The documents and the settings. Its mentions are reduced.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shards = ShardWorker(job)
        self.linker = self.shards.pipeline.linker.corpus
        self.arranged = Arranged.of(job)
        self.mentions = read_mentions(job.folder / CORPUS)
        self.decided = read_decisions(job.folder / DECIDED)

    def __call__(self, shard: Shard) -> Report:
        """Write the documents of a shard with their links."""
        with self.shards.pipeline.nlp.memory_zone():
            return self._write(shard)

    def _write(self, shard: Shard) -> Report:
        start = time.perf_counter()
        problems = Problems(json.loads(problems_file(self.job, shard).read_bytes()))
        vocab = self.shards.pipeline.nlp.vocab
        docs = list(DocBin().from_disk(documents_file(self.job, shard)).get_docs(vocab))
        links = self._links(shard)
        places = self.mentions.places[self.arranged.documents(shard)]
        for doc, rows in zip(docs, places):
            self.linker.write(doc, self.linker.links_of(links, rows))
        return self.shards.write(shard, docs, problems, start)

    def _links(self, shard: Shard) -> CorpusLinks:
        """The decisions with the words for those on a shard."""
        rows, decisions = self.arranged.rows(shard, self.mentions), self.decided.decisions
        paths = [decisions.paths[row] for row in rows.tolist()]
        own = Decisions(decisions.entities[rows], decisions.logits[rows], paths)
        stages = self.linker.stages
        with stages.datastore.reading():
            wording = stages.wording(self.mentions.candidates.take(rows), own)
        return CorpusLinks(self.mentions, self.decided, wording)
