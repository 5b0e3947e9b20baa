"""Linking of a corpus in shards, from start to summary."""

from collections.abc import Iterator
from typing import Any

from ...base.errors import Errors
from ...discovery.new_entities import NewEntities
from ...storage.files import write_json
from .job import SUMMARY, Job, ShardReport, part_of, summed
from .map_files import SHARDS, map_files, undone
from .on_ray import RaySettings, connected
from .one_graph import (
    NEW_ENTITIES,
    REDUCED,
    WritingWorker,
    reduce_shards,
    remove_intermediate,
)
from .shards import read_shards
from .worker import ShardWorker


def link_in_shards(
    job: Job, part: str = "", ray: RaySettings | None = None
) -> Iterator[ShardReport]:
    """Link the remaining shards of a corpus.

    Yields what became of each shard. ``summary.json`` is written once all shards are done.

    part: Which shards, such as "3/16"; "" for all. One graph has no parts.
    ray: The cluster to do it on; None for this process.
    """
    if job.one_graph and part:
        why = "one graph over all documents has no parts"
        raise Errors.E896(option="A part", other="one_graph=False", why=why)
    shards = job.begin()
    todo = undone(part_of(shards, part), job.done_file)
    if todo:
        with connected(ray):
            if job.one_graph:
                reduce_shards(job, shards, ray)
            worker = WritingWorker if job.one_graph else ShardWorker
            for shard in map_files(worker, job, todo, job.done_file, ray):
                yield job.report_of(shard)
    # Others may have done other parts meanwhile.
    if not undone(shards, job.done_file) and (
        todo or not (job.folder / SUMMARY).is_file()
    ):
        write_json(job.folder / SUMMARY, summary(job), indent=2)
    if job.one_graph:
        remove_intermediate(job)


def discover_in_shards(job: Job, ray: RaySettings | None = None) -> NewEntities:
    """Discover new entities in a sharded corpus. As ``linker.corpus.discover`` does.

    Links are not written; ``link_in_shards`` of the same job would resume it.

    job: The documents and the settings; with ``one_graph``.
    ray: The cluster to do it on; None for this process.
    """
    shards = job.begin()
    if not (job.folder / REDUCED).is_file():
        with connected(ray):
            reduce_shards(job, shards, ray)
    return NewEntities.from_disk(job.folder / NEW_ENTITIES)


def summary(job: Job, part: str = "") -> dict[str, Any]:
    """Sum the counts of the finished shards of a part. part: See ``link_in_shards``."""
    done = job.done()
    shards = part_of(read_shards(job.folder / SHARDS), part)
    return summed(job.report_of(shard) for shard in shards if shard.number in done)
