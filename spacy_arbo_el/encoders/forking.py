"""Worker processes of ``nlp.pipe(n_process=...)``, which spaCy forks on Linux."""

import os
import sys

from ..devices import torch

_home = os.getpid()


def one_thread_after_fork() -> None:
    """Compute with one thread in a forked process; do nothing in the process that loaded us.

    OpenMP's threads do not survive a fork, and a child that asks for them waits for ever. One
    thread for each worker also keeps workers from competing for the cores.
    """
    global _home
    if os.getpid() == _home:
        return
    _home = os.getpid()
    # For what is imported later.
    os.environ["OMP_NUM_THREADS"] = "1"
    if torch is not None:
        torch.set_num_threads(1)
    faiss = sys.modules.get("faiss")
    if faiss is not None:
        faiss.omp_set_num_threads(1)
