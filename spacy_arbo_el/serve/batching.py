"""One pass of a pipeline for requests that arrive together."""

import threading
import time
from typing import Any, Callable, Generic, List, Optional, Sequence, TypeVar

T = TypeVar("T")
# Seconds that the first of several requests waits for others.
WAIT = 0.005


class _Job(Generic[T]):
    """Items of a request, and what became of them."""

    def __init__(self, items: Sequence[Any]) -> None:
        self.items, self.since = items, time.monotonic()
        self.results: Optional[List[T]] = None
        self.error: Optional[Exception] = None


class Batcher(Generic[T]):
    """Lets threads that call at the same time share one call of a function.

    The first of them calls it, after ``wait`` seconds, with the items of all; those that come
    meanwhile share the next call. Where it fails, each one's items are tried by themselves.

    function: Gives one result for each item, in order. It is called by one thread at a time.
    """

    def __init__(self, function: Callable[[List[Any]], List[T]], wait: float = WAIT) -> None:
        self.function, self.wait = function, wait
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._waiting: List[_Job[T]] = []

    def __call__(self, items: Sequence[Any]) -> List[T]:
        """The results for some items. Raises what the function raises for these alone."""
        job: _Job[T] = _Job(items)
        with self._lock:
            self._waiting.append(job)
        with self._turn:
            if job.results is None and job.error is None:
                # Those that waited for the call before have waited long enough.
                time.sleep(max(0.0, job.since + self.wait - time.monotonic()))
                with self._lock:
                    jobs, self._waiting = self._waiting, []
                self._run(jobs)
        if job.error is not None:
            raise job.error
        return job.results or []

    def _run(self, jobs: List[_Job[T]]) -> None:
        try:
            results = iter(self.function([item for job in jobs for item in job.items]))
            for job in jobs:
                job.results = [next(results) for _ in job.items]
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].error = error
            else:
                for job in jobs:
                    self._run([job])
