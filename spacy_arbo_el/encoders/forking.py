"""Workers of ``nlp.pipe(n_process=…)``, which spaCy forks on Linux."""

import os

import torch

try:
    import faiss
except ImportError:  # pragma: no cover - depends on what is installed
    faiss = None  # type: ignore[assignment]

_home = os.getpid()


def one_thread_after_fork() -> None:
    """Compute with one thread in a forked process; does nothing in the process we were loaded in.

    OpenMP's threads do not survive a fork, and a child that asks for them waits for ever. One
    thread a worker is also what keeps workers from fighting over the cores.
    """
    global _home
    if os.getpid() == _home:
        return
    _home = os.getpid()
    torch.set_num_threads(1)
    if faiss is not None:
        faiss.omp_set_num_threads(1)
