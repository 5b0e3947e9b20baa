"""Worker processes of ``nlp.pipe(n_process=...)``, which spaCy forks on Linux."""

import os
from typing import Any

import srsly
import threadpoolctl

from ..base.devices import torch

# The environment variable of the package tokenizers.
PARALLELISM = "TOKENIZERS_PARALLELISM"
_home = os.getpid()
_parallelism: str | None = None


def resolve_entry_points(*registries: Any) -> None:
    """Look up the entry points of registries once, instead of at each use.

    srsly looks for encoders of other packages at each call of ``msgpack_dumps`` and ``loads``, of
    which a Doc with user data needs three to be sent and three to be received: 0.4 ms each.
    """
    for registry in registries:
        if registry.entry_points:
            for name, function in registry.get_entry_points().items():
                registry.register(name, func=function)
            registry.entry_points = False


resolve_entry_points(srsly.msgpack_encoders, srsly.msgpack_decoders)


def _before_fork() -> None:
    """Tell tokenizers that children use one thread. They would warn of it in each of them."""
    global _parallelism
    _parallelism = os.environ.get(PARALLELISM)
    if _parallelism is None:
        os.environ[PARALLELISM] = "false"


def _after_fork_in_parent() -> None:
    if _parallelism is None:
        os.environ.pop(PARALLELISM, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent)


def one_thread_after_fork() -> None:
    """Compute with one thread in a forked process. Do nothing in the process that loaded us.

    OpenMP's threads do not survive a fork, and a child that asks for them waits for ever. One
    thread for each worker also keeps workers from competing for the cores.
    """
    global _home
    if os.getpid() == _home:
        return
    _home = os.getpid()
    # For later imports.
    os.environ["OMP_NUM_THREADS"] = "1"
    if torch is not None:
        torch.set_num_threads(1)
    # OpenMP, which faiss uses, and OpenBLAS, which NumPy uses and which starts its threads anew in
    # each child: more threads than cores wait for each other by spinning.
    threadpoolctl.threadpool_limits(1)
