"""Shards one after the other, in this process."""

from typing import Iterable, Iterator

from .job import Job, Report
from .shards import Shard
from .worker import ShardWorker


def link_shards(job: Job, shards: Iterable[Shard]) -> Iterator[Report]:
    """Link shards, each document for itself; yields what became of each.

    job: What is linked, and how.
    shards: Those to link; no pipeline is loaded where there are none.
    """
    worker = None
    for shard in shards:
        worker = worker or ShardWorker(job)
        yield worker(shard)
