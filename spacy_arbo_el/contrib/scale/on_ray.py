"""Shards by workers of Ray.

Ray carries shards to the workers, and back when they are done. Documents, pipelines and links never
enter its object store: workers read and write files that all machines can reach.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...base.errors import ArboError
from .errors import ScaleMessages
from .shards import Shard

# The most tasks that Ray is to plan; with more shards, a task has several.
MAX_TASKS = 10_000
# Makes a worker of a job.
MakeWorker = Callable[[Any], Callable[[Shard], None]]
# What Ray calls a cluster that it starts on this machine.
LOCAL = "local"
# The object store of such a cluster, for lists of shards.
LOCAL_STORE = 200 << 20


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError(ScaleMessages.E893) from error
    return ray


@dataclass(frozen=True)
class RaySettings:
    """The cluster, and the workers on it.

    address: "local" to start Ray on this machine, "auto" for the cluster that this machine belongs
        to, or the address of one.
    workers: How many workers.
    cpus: CPUs of a worker: the threads that it computes with.
    gpus: GPUs of a worker; 0.5 for two workers on one.
    code: Python file with registered functions, which each worker imports; "" for none.
    """

    address: str = LOCAL
    workers: int = 1
    cpus: int = 1
    gpus: float = 0.0
    code: str = ""

    def __post_init__(self) -> None:
        for name, least in (("workers", 1), ("cpus", 1), ("gpus", 0)):
            value = getattr(self, name)
            if value < least:
                raise ScaleMessages.E900(name=name, least=least, value=value)

    def actors(self) -> dict[str, Any]:
        """Settings of ``Dataset.map_batches`` for classes loaded once per worker."""
        strategy = _ray().data.ActorPoolStrategy(size=self.workers)
        gpus = {"num_gpus": self.gpus} if self.gpus else {}
        return {"compute": strategy, "num_cpus": self.cpus, **gpus}


@contextmanager
def connected(settings: RaySettings | None) -> Iterator[None]:
    """Connect to the cluster, if any, for the duration of the block.

    One that is open already stays open. A cluster on this machine has as many CPUs as the workers
    need, and no dashboard.
    """
    if settings is None or (ray := _ray()).is_initialized():
        yield
        return
    options: dict[str, Any] = {}
    if settings.address == LOCAL:
        cpus = settings.workers * settings.cpus
        options = {
            "num_cpus": cpus,
            "object_store_memory": LOCAL_STORE,
            "include_dashboard": False,
        }
    ray.init(address=settings.address, log_to_driver=False, **options)
    try:
        yield
    finally:
        ray.shutdown()


def prepare(settings: RaySettings) -> None:
    """Set a worker's threads and GPU, and import its code."""
    import spacy
    import torch
    from spacy.util import import_file

    # For later imports.
    os.environ["OMP_NUM_THREADS"] = str(settings.cpus)
    torch.set_num_threads(settings.cpus)
    faiss = sys.modules.get("faiss")
    if faiss is not None:
        faiss.omp_set_num_threads(settings.cpus)
    if settings.gpus:
        spacy.require_gpu()
    if settings.code:
        import_file("python_code", settings.code)


class RayShardWorker:
    """A Ray actor: a worker on shards, given as batches of JSON."""

    def __init__(self, make: MakeWorker, job: Any, settings: RaySettings) -> None:
        prepare(settings)
        self.work = make(job)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        for text in batch["shard"]:
            self.work(Shard.from_json(text))
        return {"shard": list(batch["shard"])}


def map_shards(
    make: MakeWorker, job: Any, shards: Sequence[Shard], settings: RaySettings
) -> Iterator[Shard]:
    """Process shards on workers. Yields each that is done, in any order. See ``map_files``.

    A worker that is killed costs its shard: another one does it again.
    """
    ray = _ray()
    if not shards:
        return
    items = [{"shard": shard.to_json()} for shard in shards]
    blocks = min(len(items), MAX_TASKS)
    done = ray.data.from_items(items, override_num_blocks=blocks).map_batches(
        RayShardWorker,
        batch_size=1,
        fn_constructor_args=(make, job, settings),
        **settings.actors(),
    )
    with readable_errors(ray):
        for row in done.iter_rows():
            yield Shard.from_json(row["shard"])


@contextmanager
def readable_errors(ray: Any) -> Iterator[None]:
    """Raise workers' errors with our messages as ValueError."""
    try:
        yield
    except ray.exceptions.RayError as error:
        message = coded_line(str(error))
        if not message:
            raise
        raise ArboError(message) from error


def coded_line(text: str) -> str:
    """The last message of this package in a traceback; "" for none."""
    return "".join(re.findall(r"\[arbo-E.*", text)[-1:])
