"""A run from its beginning to its summary."""

import json
from typing import Any, Container, Dict, Iterator, List, Optional, Sequence

from ..discovery.new_entities import NewEntities
from ..errors import Errors
from ..storage.files import write_file
from .executors import cluster, do_all, do_once, map_on
from .graph_files import (
    Arranged,
    is_arranged,
    is_gathered,
    is_reduced,
    is_searched,
    new_entities_of,
    remove_intermediate,
)
from .job import SUMMARY, Job, Report, part_of, summed
from .on_ray import RaySettings
from .one_graph import (
    MentionWorker,
    SearchWorker,
    WritingWorker,
    arrange_mentions,
    reduce_mentions,
)
from .shards import Shard
from .worker import ShardWorker


def link_in_shards(job: Job, part: str = "", ray: Optional[RaySettings] = None) -> Iterator[Report]:
    """Link the shards of a corpus that are not done yet.

    Yields what became of each shard. ``summary.json`` is written once all shards are done.

    job: The documents and the settings.
    part: Which shards, such as "3/16"; "" for all. One graph has no parts.
    ray: The cluster to do it on; None for this process.
    """
    if job.one_graph and part:
        why = "one graph over all documents has no parts"
        raise ValueError(Errors.E896.format(option="A part", other="one_graph=False", why=why))
    shards = job.begin()
    done = job.done()
    todo = remaining(part_of(shards, part), done)
    if todo:
        with cluster(ray):
            if job.one_graph:
                reduce_shards(job, shards, ray)
            yield from map_on(WritingWorker if job.one_graph else ShardWorker, job, todo, ray)
        # Others may have done other parts meanwhile.
        done = job.done()
        missing = len(remaining(todo, done))
        if missing:
            message = Errors.E899.format(missing=missing, total=len(todo), path=job.folder)
            raise ValueError(message)
    if not remaining(shards, done) and (todo or not (job.folder / SUMMARY).is_file()):
        write_summary(job, shards)
    if job.one_graph:
        remove_intermediate(job)


def discover_in_shards(job: Job, ray: Optional[RaySettings] = None) -> NewEntities:
    """Group the mentions of a corpus that no entity fits, as ``ArboLinker.discover`` does.

    Links are not written; ``link_in_shards`` of the same job would resume it.

    job: The documents and the settings; with ``one_graph``.
    ray: The cluster to do it on; None for this process.
    """
    shards = job.begin()
    if not is_reduced(job):
        with cluster(ray):
            reduce_shards(job, shards, ray)
    return new_entities_of(job)


def reduce_shards(job: Job, shards: Sequence[Shard], ray: Optional[RaySettings]) -> None:
    """All steps up to the decisions in one graph, as far as needed."""
    if is_reduced(job):
        return
    if not is_arranged(job):
        todo = [shard for shard in shards if not is_gathered(job, shard)]
        do_all(MentionWorker, job, todo, ray)
        do_once(arrange_mentions, job, ray)
    if Arranged.of(job).searched:
        todo = [shard for shard in shards if not is_searched(job, shard)]
        do_all(SearchWorker, job, todo, ray)
    do_once(reduce_mentions, job, ray)


def remaining(shards: Sequence[Shard], done: Container[int]) -> List[Shard]:
    """The shards that are not done. done: The numbers of those that are."""
    return [shard for shard in shards if shard.number not in done]


def summary(job: Job, shards: Sequence[Shard]) -> Dict[str, Any]:
    """The counts of those of the shards that are done."""
    done = job.done()
    return summed(job.report_of(shard) for shard in shards if shard.number in done)


def write_summary(job: Job, shards: Sequence[Shard]) -> None:
    """Write the counts of all shards, which are done."""
    counts = summed(map(job.report_of, shards))
    write_file(job.folder / SUMMARY, json.dumps(counts, indent=2).encode("utf8"))
