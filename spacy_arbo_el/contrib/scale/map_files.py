"""The one map over files. Workers do shards, and a shard is done where its output exists.

A run has a folder that all workers can reach, with its settings in ``job.json`` and mostly its
shards in ``shards.jsonl``. Every file is written under a temporary name and renamed. Whoever does a
shard a second time writes the same, so nothing is lost or doubled by a worker that was killed.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ...storage.files import is_temporary, write_json
from . import on_ray
from .errors import ScaleMessages
from .identity import differing
from .on_ray import RaySettings
from .shards import Shard, read_shards, write_shards

JOB = "job.json"
SHARDS = "shards.jsonl"
# What workers are made of: a job says the task and its settings.
J = TypeVar("J")
# Does a shard, and writes its output.
Worker = Callable[[Shard], None]
# Gives the file that is written last of a shard.
Output = Callable[[Shard], Path]


def begin(
    folder: Path, settings: dict[str, Any], shards: Sequence[Shard] | None = None
) -> None:
    """Begin a run in a folder, or resume its run.

    Raises ValueError where the folder holds anything else, or a run with other settings or shards.
    """
    names = sorted(
        path.name for path in folder.glob("*") if not is_temporary(path.name)
    )
    if JOB not in names:
        strangers = [name for name in names if name != SHARDS]
        if strangers:
            raise ScaleMessages.E902(path=folder, names=", ".join(strangers[:3]))
        if shards is not None:
            write_shards(folder / SHARDS, shards)
        # Last, so that a run that has begun has its shards too.
        write_json(folder / JOB, settings, indent=2)
    # Read again, since another part of the run may have begun at the same time.
    differences = differing(settings, json.loads((folder / JOB).read_bytes()))
    if (
        not differences
        and shards is not None
        and read_shards(folder / SHARDS) != shards
    ):
        differences = "the corpus has other files or documents"
    if differences:
        raise ScaleMessages.E890(path=folder, differences=differences)


def undone(shards: Sequence[Shard], output: Output) -> list[Shard]:
    """The shards whose output does not exist."""
    return [shard for shard in shards if not output(shard).is_file()]


def map_files(
    make: Callable[[J], Worker],
    job: J,
    shards: Sequence[Shard],
    output: Output,
    ray: RaySettings | None = None,
) -> Iterator[Shard]:
    """Process the remaining shards on workers. Yields each when done, on Ray in any order.

    make: Makes a worker of the job, once per process; a class, whose name Ray carries.
    ray: The workers of a cluster; None for one in this process.
    """
    todo = undone(shards, output)
    if ray is not None:
        yield from on_ray.map_shards(make, job, todo, ray)
    elif todo:
        work = make(job)
        for shard in todo:
            work(shard)
            yield shard
    missing = undone(todo, output)
    if missing:
        path = output(missing[0]).parent
        raise ScaleMessages.E899(missing=len(missing), total=len(todo), path=path)


def do_once(
    function: Callable[[J], None], job: J, output: Path, ray: RaySettings | None = None
) -> None:
    """Call a function that writes ``output``, unless it exists.

    It runs here, or on one worker of Ray.
    """
    alone = None if ray is None else replace(ray, workers=1)
    shards = [Shard(0, ())]
    list(
        map_files(
            lambda job: lambda shard: function(job),
            job,
            shards,
            lambda _: output,
            alone,
        )
    )
