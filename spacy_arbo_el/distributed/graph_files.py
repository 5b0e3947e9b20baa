"""The files that the steps of one graph leave to each other, in the folder of a job.

mentions/part-000012.msgpack   the mentions of a shard, until they are in ``corpus``
mentions/part-000012.spacy     its documents, with the mentions that were found
mentions/part-000012.json      its documents that could not be read, with the reasons
corpus                         all mentions, see ``linking/corpus_files.py``
search                         the search index, see ``CorpusSearch.to_disk``
arranged.json                  written after these two
neighbours/part-000012.npz     the neighbours of the mentions of a shard
decided                        the decisions, see ``linking/decision_files.py``
new_entities                   the new entities, as ``NewEntities.to_disk`` writes them
decided.json                   written after these two
"""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import List

import numpy as np

from ..discovery.new_entities import NewEntities
from ..linking.corpus_mentions import CorpusMentions
from ..storage.files import write_file
from .job import Job
from .shards import Shard

MENTIONS, CORPUS, SEARCH, ARRANGED = "mentions", "corpus", "search", "arranged.json"
NEIGHBOURS, DECIDED, REDUCED = "neighbours", "decided", "decided.json"
NEW_ENTITIES = "new_entities"


@dataclass(frozen=True)
class Arranged:
    """The state once the mentions of all shards are in one place.

    stops: For each shard, how many documents it and those before it have.
    searched: Whether mentions have neighbours.
    """

    stops: List[int]
    searched: bool

    @classmethod
    def of(cls, job: Job) -> "Arranged":
        """What ``write`` wrote."""
        return cls(**json.loads((job.folder / ARRANGED).read_text(encoding="utf8")))

    def write(self, job: Job) -> None:
        write_file(job.folder / ARRANGED, json.dumps(asdict(self)).encode("utf8"))

    def documents(self, shard: Shard) -> slice:
        """The documents of a shard, by their numbers in the order of reading."""
        start = self.stops[shard.number - 1] if shard.number else 0
        return slice(start, self.stops[shard.number])

    def rows(self, shard: Shard, mentions: CorpusMentions) -> np.ndarray:
        """(b,) int64, the mentions of a shard, document by document."""
        places = mentions.places[self.documents(shard)]
        ranges = [np.arange(place.start, place.stop) for place in places]
        return np.concatenate([np.zeros(0, dtype=np.int64), *ranges])


def mentions_file(job: Job, shard: Shard) -> Path:
    """The file of the mentions of a shard, which is written last in the first step."""
    return job.folder / MENTIONS / f"{shard.name}.msgpack"


def documents_file(job: Job, shard: Shard) -> Path:
    """The file of the documents of a shard with their mentions."""
    return job.folder / MENTIONS / f"{shard.name}.spacy"


def problems_file(job: Job, shard: Shard) -> Path:
    """The file of the documents of a shard that could not be read."""
    return job.folder / MENTIONS / f"{shard.name}.json"


def neighbours_file(job: Job, shard: Shard) -> Path:
    """The file of the neighbours of the mentions of a shard."""
    return job.folder / NEIGHBOURS / f"{shard.name}.npz"


def is_gathered(job: Job, shard: Shard) -> bool:
    """Whether the mentions of a shard are read."""
    return mentions_file(job, shard).is_file()


def is_arranged(job: Job) -> bool:
    """Whether the mentions of all shards are in one place."""
    return (job.folder / ARRANGED).is_file()


def is_searched(job: Job, shard: Shard) -> bool:
    """Whether the neighbours of the mentions of a shard are found."""
    return neighbours_file(job, shard).is_file()


def is_reduced(job: Job) -> bool:
    """Whether the links of all shards are decided on."""
    return (job.folder / REDUCED).is_file()


def new_entities_of(job: Job) -> NewEntities:
    """The new entities of a job whose mentions are reduced."""
    return NewEntities.from_disk(job.folder / NEW_ENTITIES)


def remove_intermediate(job: Job) -> None:
    """Remove what only the steps needed, once all shards are done."""
    for name in (MENTIONS, CORPUS, SEARCH, NEIGHBOURS, DECIDED):
        shutil.rmtree(job.folder / name, ignore_errors=True)
