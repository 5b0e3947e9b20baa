"""Shards one after the other, in this process."""

from typing import Callable, Iterable, Iterator, Optional

from .job import J, Report, Worker
from .shards import Shard


def map_shards(make: Callable[[J], Worker], job: J, shards: Iterable[Shard]) -> Iterator[Report]:
    """Have one worker work on shards in their order; yields what became of each.

    make: Function from the job to the worker. It is not called where there are no shards.
    """
    worker: Optional[Worker] = None
    for shard in shards:
        worker = worker or make(job)
        yield worker(shard)
