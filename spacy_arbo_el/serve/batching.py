"""One pass of a pipeline for requests that arrive together."""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Generic, List, Sequence, Tuple, TypeVar

import numpy as np

T = TypeVar("T")
# Seconds that the first of several requests waits for others.
WAIT = 0.005
# Items of a call, but for a request that has more: while some are linked, others are read.
ITEMS = 64


# When a request came, its items, and what becomes of them.
_Job = Tuple[float, Sequence[Any], "Future[List[Any]]"]


class Batcher(Generic[T]):
    """Share one call of a function among threads.

    The function is called ``wait`` seconds after the first of them came, with the items of all, up
    to ``ITEMS``. Those that come during a call share the next one. Where it fails, each one's items
    are tried by themselves.

    function: Gives one result for each item, in order. One thread calls it, always the same: torch
        starts more threads for each one that it is called from.
    """

    def __init__(self, function: Callable[[List[Any]], List[T]], wait: float = WAIT) -> None:
        self.function, self.wait = function, wait
        self._thread = ThreadPoolExecutor(1, "batches")
        self._lock = threading.Lock()
        self._waiting: List[_Job] = []

    def __call__(self, items: Sequence[Any]) -> List[T]:
        """The results for some items. Raises what the function raises for these alone."""
        answer: Future[List[T]] = Future()
        with self._lock:
            self._waiting.append((time.monotonic(), items, answer))
        self._thread.submit(self._run_waiting)
        return answer.result()

    def _run_waiting(self) -> None:
        # A call before may have served this one's job too.
        if self._waiting:
            # Those that waited for the call before have waited long enough.
            time.sleep(max(0.0, self._waiting[0][0] + self.wait - time.monotonic()))
            with self._lock:
                ends = np.cumsum([len(items) for _, items, _ in self._waiting])
                count = max(1, int(np.searchsorted(ends, ITEMS, "right")))
                jobs, self._waiting = self._waiting[:count], self._waiting[count:]
            self._run(jobs)

    def _run(self, jobs: List[_Job]) -> None:
        try:
            results = iter(self.function([item for _, items, _ in jobs for item in items]))
            answers = [[next(results) for _ in items] for _, items, _ in jobs]
        except Exception as error:
            if len(jobs) == 1:
                jobs[0][2].set_exception(error)
            else:
                for job in jobs:
                    self._run([job])
            return
        for (_, _, answer), one in zip(jobs, answers):
            answer.set_result(one)
