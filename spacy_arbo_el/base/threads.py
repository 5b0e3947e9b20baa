"""Work in threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item]
) -> list[Result]:
    """Apply a function to items in as many threads as torch has, each with one of its own.

    Threads that share each operation wait for one another after it, by spinning: where other
    programs hold the cores, they waited for most of the time.
    """
    n_threads = torch.get_num_threads()
    n_workers = min(n_threads, len(items))
    if n_workers < 2:
        return list(map(function, items))
    started = Barrier(n_workers + 1)

    def start() -> None:
        # A thread's first use of torch would give it the number that was set last.
        torch.get_num_threads()
        torch.set_num_threads(n_threads // n_workers)
        started.wait()

    with ThreadPoolExecutor(n_workers, initializer=start) as pool:
        try:
            results = pool.map(function, items)
        except RuntimeError:
            # Too many threads: those that wait would wait for ever.
            started.abort()
            raise
        started.wait()
        # A thread that begins later would have the number that was set last.
        torch.set_num_threads(n_threads)
        return list(results)
