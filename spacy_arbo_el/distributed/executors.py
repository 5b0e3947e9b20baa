"""Where work on shards is done: in this process, or by workers on a cluster."""

from contextlib import nullcontext
from typing import Callable, ContextManager, Iterator, Optional, Sequence

from . import on_ray, serial
from .job import J, Report, Worker
from .on_ray import RaySettings
from .shards import Shard


def cluster(ray: Optional[RaySettings]) -> ContextManager[None]:
    """The connection to a cluster; nothing if there is none."""
    return nullcontext() if ray is None else on_ray.connected(ray)


def map_on(
    make: Callable[[J], Worker], job: J, shards: Sequence[Shard], ray: Optional[RaySettings]
) -> Iterator[Report]:
    """Have workers work on shards: those of a cluster, or one in this process."""
    if ray is None:
        return serial.map_shards(make, job, shards)
    return on_ray.map_shards(make, job, shards, ray)


def do_all(
    make: Callable[[J], Worker], job: J, shards: Sequence[Shard], ray: Optional[RaySettings]
) -> None:
    """As ``map_on``, for work whose reports nobody reads."""
    for _ in map_on(make, job, shards, ray):
        pass


def do_once(function: Callable[[J], None], job: J, ray: Optional[RaySettings]) -> None:
    """Call a function in this process, or on a machine of the cluster."""
    if ray is None:
        function(job)
    else:
        on_ray.call_on_ray(function, job, ray)
