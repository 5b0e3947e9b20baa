"""Options of commands that can run on Ray."""

from pathlib import Path
from typing import TYPE_CHECKING, Optional

from spacy.cli._util import Opt

from .arguments import check_needs

if TYPE_CHECKING:
    from ..distributed.on_ray import RaySettings

RAY = Opt(
    None,
    "--ray",
    help="Run on Ray: local for this machine, auto for the cluster that it belongs to, or the "
    "address of a cluster",
)
WORKERS = Opt(1, "--workers", help="Number of Ray workers")
CPUS = Opt(1, "--cpus-per-worker", help="CPUs of each worker, which has as many threads")
GPUS = Opt(0.0, "--gpus-per-worker", help="GPUs of each worker; 0.5 for two workers on one")


def ray_settings(
    address: Optional[str], workers: int, cpus: int, gpus: float, code: Optional[Path]
) -> "Optional[RaySettings]":
    """The cluster and its workers. None where the command does not use Ray."""
    if address is None:
        options = "--workers, --cpus-per-worker and --gpus-per-worker"
        given = {options: (workers, cpus, gpus) != (1, 1, 0.0)}
        check_needs(given, "--ray", "without it, one process does all work")
        return None
    from ..distributed.on_ray import RaySettings

    path = "" if code is None else str(code.resolve())
    return RaySettings(address, workers, cpus, gpus, path)
