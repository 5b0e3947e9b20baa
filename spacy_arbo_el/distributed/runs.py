"""A run from its beginning to its summary."""

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence

from ..errors import Errors
from ..io import write_file
from .job import SUMMARY, Job, Report, part_of, summed
from .on_ray import RaySettings, connected, map_shards
from .serial import link_shards
from .shards import Shard
from .worker import ShardWorker


def link_in_shards(job: Job, part: str = "", ray: Optional[RaySettings] = None) -> Iterator[Report]:
    """Link the shards of a corpus that are not done yet, each document for itself.

    Yields what became of each shard. At the end, ``summary.json`` is written if all are done.

    job: What is linked, and how.
    part: Which shards, such as "3/16"; "" for all.
    ray: The cluster to do it on; None for this process.
    """
    shards = job.begin()
    todo = remaining(job, part_of(shards, part))
    if ray is None:
        yield from link_shards(job, todo)
    else:
        with connected(ray):
            yield from map_shards(ShardWorker, job, todo, ray)
    check_done(job, todo)
    write_summary(job, shards)


def remaining(job: Job, shards: Sequence[Shard]) -> List[Shard]:
    """The shards that are not done."""
    done = job.done()
    return [shard for shard in shards if shard.number not in done]


def check_done(job: Job, shards: Sequence[Shard]) -> None:
    """Raise ValueError where some shards are still not done."""
    missing = len(remaining(job, shards))
    if missing:
        message = Errors.E899.format(missing=missing, total=len(shards), path=job.folder)
        raise ValueError(message)


def summary(job: Job, shards: Sequence[Shard]) -> Dict[str, Any]:
    """The counts of the shards that are done."""
    done = job.done()
    return summed(job.report_of(shard) for shard in shards if shard.number in done)


def write_summary(job: Job, shards: Sequence[Shard]) -> None:
    """Write the counts of all shards, if all are done."""
    if not remaining(job, shards):
        data = json.dumps(summary(job, shards), indent=2).encode("utf8")
        write_file(Path(job.output, SUMMARY), data)
