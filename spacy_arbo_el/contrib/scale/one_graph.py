"""A corpus in one graph: maps over its shards, and one process between them.

It is ``CorpusLinker`` in steps, with the same links and the same ids of new entities:

1. Workers read, encode, retrieve and rerank the mentions of shards (``MentionWorker``).
2. One process brings all mentions into files that can be mapped, and builds the search index
   (``arrange_mentions``).
3. Workers search the neighbours of the mentions of shards among all (``SearchWorker``).
4. One process, the reducer, decides in one graph (``reduce_mentions``). It reads no vectors but
   those of new entities.
5. Workers make the links of shards, and write them onto the documents (``WritingWorker``).

Between the steps, the folder of the job has these as well:

    mentions/part-000012.spacy     the documents of a shard, with the mentions that were found
    mentions/part-000012.json      its documents that could not be read, with the reasons
    mentions/part-000012.npz       its mentions, written last, until they are in ``corpus``
    corpus                         all mentions, see ``corpus_files.py``
    search                         the search index, see ``corpus_files.py``
    arranged.json                  written after these two
    neighbours/part-000012.npz     the neighbours of the mentions of a shard
    decided                        the decisions, see ``corpus_files.py``
    new_entities                   the new entities, as ``NewEntities.to_disk`` writes them
    decided.json                   written after these two
"""

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np
from spacy.tokens import Doc, DocBin
from spacy.util import minibatch

from ...base.arrays import TopK, int_array
from ...linking.corpus import BATCH, CorpusLinks
from ...linking.corpus_mentions import CorpusMentions, CorpusPart
from ...ranking.decisions import Decisions
from ...storage.files import pack_arrays, unpack_arrays, write_file, write_json
from ...storage.folders import replacing_folder
from .corpus_files import (
    FOLDER,
    part_from_bytes,
    part_to_bytes,
    read_decisions,
    read_mentions,
    read_search,
    write_decisions,
    write_mentions,
    write_search,
)
from .identity import check_same, versions
from .job import Job
from .map_files import SHARDS, do_once, map_files
from .on_ray import RaySettings
from .shards import Shard, read_shards
from .worker import PipelineWorker, Problems, ShardWorker, all_or_each

MENTIONS = "mentions"
CORPUS = "corpus"
SEARCH = "search"
ARRANGED = "arranged.json"
NEIGHBOURS = "neighbours"
DECIDED = "decided"
REDUCED = "decided.json"
NEW_ENTITIES = "new_entities"


def reduce_shards(job: Job, shards: Sequence[Shard], ray: RaySettings | None) -> None:
    """Run the one-graph steps up to the decisions, where needed."""
    if not (job.folder / ARRANGED).is_file():
        list(map_files(MentionWorker, job, shards, partial(mentions_file, job), ray))
        do_once(arrange_mentions, job, job.folder / ARRANGED, ray)
    if Arranged.of(job).searched:
        list(map_files(SearchWorker, job, shards, partial(neighbours_file, job), ray))
    do_once(reduce_mentions, job, job.folder / REDUCED, ray)


def remove_intermediate(job: Job) -> None:
    """Remove intermediate files once all shards are done."""
    for name in (MENTIONS, CORPUS, SEARCH, NEIGHBOURS, DECIDED):
        shutil.rmtree(job.folder / name, ignore_errors=True)


def mentions_file(job: Job, shard: Shard) -> Path:
    """The file of the mentions of a shard."""
    return job.file(MENTIONS, shard, ".npz")


def neighbours_file(job: Job, shard: Shard) -> Path:
    """File of the neighbours of a shard's mentions."""
    return job.file(NEIGHBOURS, shard, ".npz")


class MentionWorker:
    """The mentions of shards with their candidates."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shards = ShardWorker(job)
        self.corpus = self.shards.pipeline.linker.corpus

    def __call__(self, shard: Shard) -> None:
        problems = Problems()
        batches: list[CorpusPart] = []
        docs: list[Doc] = []

        def gather(batch_docs: Sequence[Doc]) -> list[Doc]:
            batches.append(self.corpus.gather_part(batch_docs))
            return list(batch_docs)

        with self.shards.pipeline.nlp.memory_zone():
            for batch in minibatch(self.shards.read(shard, problems), BATCH):
                docs += all_or_each(gather, batch, problems.linking)
            documents = DocBin(docs=docs, store_user_data=True).to_bytes()
            write_file(self.job.file(MENTIONS, shard, ".spacy"), documents)
            write_json(self.job.file(MENTIONS, shard, ".json"), problems)
            shard_mentions = CorpusPart.concat(
                batches or [self.corpus.gather_part([])]
            )
            write_file(mentions_file(self.job, shard), part_to_bytes(shard_mentions))


@dataclass(frozen=True)
class Arranged:
    """The state after the mentions of all shards are joined.

    stops: For each shard, how many documents it and those before it have.
    searched: Whether mentions have neighbours.
    """

    stops: list[int]
    searched: bool

    @classmethod
    def of(cls, job: Job) -> "Arranged":
        """Load the result of ``arrange_mentions``."""
        return cls(**json.loads((job.folder / ARRANGED).read_bytes()))

    def documents(self, shard: Shard) -> slice:
        """Read the documents of a shard by their numbers."""
        start = self.stops[shard.number - 1] if shard.number else 0
        return slice(start, self.stops[shard.number])

    def rows(self, shard: Shard, mentions: CorpusMentions) -> np.ndarray:
        """(b,) int64, the mentions of a shard, document by document."""
        places = mentions.places[self.documents(shard)]
        ranges = [np.arange(place.start, place.stop) for place in places]
        return np.concatenate([int_array(), *ranges])


def arrange_mentions(job: Job) -> None:
    """Join the gathered mentions of all shards and index them. They are brought into one order."""
    shards = read_shards(job.folder / SHARDS)
    documents: list[int] = []

    def parts() -> Iterator[CorpusPart]:
        documents.clear()
        for shard in shards:
            shard_mentions = part_from_bytes(mentions_file(job, shard).read_bytes())
            documents.append(len(shard_mentions.counts))
            yield shard_mentions

    write_mentions(job.folder / CORPUS, parts)
    linker = PipelineWorker(job).linker.corpus
    search = linker.search(read_mentions(job.folder / CORPUS))
    if search is not None:
        with replacing_folder(job.folder / SEARCH, FOLDER) as folder:
            write_search(folder, search)
    arranged = Arranged(list(accumulate(documents)), search is not None)
    write_json(job.folder / ARRANGED, asdict(arranged))
    for shard in shards:
        mentions_file(job, shard).unlink()


class SearchWorker:
    """The neighbours of the mentions of shards among all, which are arranged.

    It needs no pipeline.
    """

    def __init__(self, job: Job) -> None:
        check_same(job.versions, versions())
        self.job = job
        self.arranged = Arranged.of(job)
        self.mentions = read_mentions(job.folder / CORPUS)
        vectors = self.mentions.ranked.batch.encoded
        self.search = read_search(job.folder / SEARCH, vectors)

    def __call__(self, shard: Shard) -> None:
        nearest = self.search.nearest(self.arranged.rows(shard, self.mentions))
        data = pack_arrays({"ids": nearest.ids, "scores": nearest.scores})
        write_file(neighbours_file(self.job, shard), data)


def reduce_mentions(job: Job) -> None:
    """Decide on all shards' mentions in one graph, once the neighbours of all are found.

    Decisions and new entities are written.
    """
    pipeline = PipelineWorker(job)
    mentions = read_mentions(job.folder / CORPUS)
    linker = pipeline.linker.corpus
    arranged = Arranged.of(job)
    if arranged.searched:
        mentions = linker.with_neighbours(
            mentions, _neighbours(job, arranged, mentions)
        )
    decided, new_entities = linker.decide(mentions, pipeline.linker.threshold)
    write_decisions(job.folder / DECIDED, decided)
    new_entities.to_disk(job.folder / NEW_ENTITIES)
    counts = {"documents": len(mentions.places), "mentions": len(mentions.documents)}
    write_json(job.folder / REDUCED, counts)


def _neighbours(job: Job, arranged: Arranged, mentions: CorpusMentions) -> TopK:
    nearest = TopK.empty(0)
    for shard in read_shards(job.folder / SHARDS):
        arrays = unpack_arrays(neighbours_file(job, shard).read_bytes())
        if not nearest.width:
            nearest = TopK.empty(len(mentions.documents), arrays["ids"].shape[1])
        rows = arranged.rows(shard, mentions)
        nearest.ids[rows] = arrays["ids"]
        nearest.scores[rows] = arrays["scores"]
    return nearest


class WritingWorker:
    """Writes links onto the documents of shards. It makes them from the decisions."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.shards = ShardWorker(job)
        self.linker = self.shards.pipeline.linker.corpus
        self.arranged = Arranged.of(job)
        self.mentions = read_mentions(job.folder / CORPUS)
        self.decided = read_decisions(job.folder / DECIDED)

    def __call__(self, shard: Shard) -> None:
        start = time.perf_counter()
        nlp = self.shards.pipeline.nlp
        problems = Problems(
            json.loads(self.job.file(MENTIONS, shard, ".json").read_bytes())
        )
        documents = DocBin().from_disk(self.job.file(MENTIONS, shard, ".spacy"))
        with nlp.memory_zone():
            docs = list(documents.get_docs(nlp.vocab))
            links = self._links(shard)
            for doc, rows in zip(
                docs, self.mentions.places[self.arranged.documents(shard)]
            ):
                self.linker.write(doc, self.linker.links_of(links, rows))
            self.shards.write(shard, docs, problems, start)

    def _links(self, shard: Shard) -> CorpusLinks:
        rows = self.arranged.rows(shard, self.mentions)
        decisions = self.decided.decisions
        paths = [decisions.paths[row] for row in rows.tolist()]
        decisions_here = Decisions(
            decisions.entities[rows], decisions.logits[rows], paths
        )
        stages = self.linker.stages
        with stages.datastore.snapshot():
            texts = stages.link_texts(
                self.mentions.candidates.take(rows), decisions_here
            )
        return CorpusLinks(self.mentions, self.decided, texts)
