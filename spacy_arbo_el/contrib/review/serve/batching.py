"""One pass of a pipeline for requests that arrive together."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
# Items of a call, and their weight together: others wait no longer, and it is soon over.
ITEMS = 64
WEIGHT = 512


@dataclass
class _Request:
    """A request, with its results by the number of the item."""

    items: Sequence[Any]
    start: float
    answer: "Future[list[Any]]" = field(default_factory=Future)
    begun: int = 0
    results: dict[int, Any] = field(default_factory=dict)

    def settle(self, number: int, result: Any) -> None:
        self.results[number] = result
        if len(self.results) == len(self.items) and not self.answer.done():
            self.answer.set_result([self.results[i] for i in range(len(self.items))])

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class SharedCall(Generic[T]):
    """Share one call of a function among threads.

    The function is called at once where nothing else is asked. Those that come during a call share
    the next one. A large request is answered in several calls, and others have their turn between
    them. Where a call fails, the items of each request are tried by themselves.

    function: Gives one result for each item, in order.
    thread: One thread calls it, always the same: torch starts more threads for each one that it is
        called from.
    weigh: How much work an item is, beside ``WEIGHT``.
    patience: Seconds after which a request is given up: TimeoutError.
    """

    def __init__(
        self,
        function: Callable[[list[Any]], list[T]],
        thread: ThreadPoolExecutor | None = None,
        *,
        weigh: Callable[[Any], int] = lambda item: 1,
        patience: float = float("inf"),
    ) -> None:
        self.function = function
        self.weigh = weigh
        self.patience = patience
        self._thread = thread or ThreadPoolExecutor(1, "batches")
        self._lock = threading.Lock()
        self._waiting: list[_Request] = []

    def __call__(self, items: Sequence[Any]) -> list[T]:
        """The results for some items. Raises what the function raises for these alone."""
        job = _Request(items, time.monotonic())
        if not items:
            return []
        with self._lock:
            self._waiting.append(job)
        self._thread.submit(self._run_waiting)
        return job.answer.result()

    def _run_waiting(self) -> None:
        # A call before may have served this one's job too.
        if self._waiting:
            self._run(self._next())
            if self._waiting:
                self._thread.submit(self._run_waiting)

    def _next(self) -> list[tuple[_Request, int]]:
        """The items of the next call, by job and number. Jobs with more wait on."""
        chosen: list[tuple[_Request, int]] = []
        weight = 0
        late = time.monotonic() - self.patience
        with self._lock:
            for job in self._waiting:
                if job.start < late:
                    job.fail(TimeoutError())
            jobs = [job for job in self._waiting if not job.answer.done()]
            share = WEIGHT // max(1, len(jobs))
            for job in jobs:
                own = 0
                while job.begun < len(job.items) and len(chosen) < ITEMS:
                    more = self.weigh(job.items[job.begun])
                    # Each has at least one item, or the same share as others.
                    if (chosen and weight + more > WEIGHT) or (own and own + more > share):
                        break
                    chosen.append((job, job.begun))
                    weight = weight + more
                    own = own + more
                    job.begun = job.begun + 1
            self._waiting = [job for job in jobs if job.begun < len(job.items)]
        return chosen

    def _run(self, chosen: list[tuple[_Request, int]]) -> None:
        try:
            results = self.function([job.items[number] for job, number in chosen])
        except Exception as error:
            jobs = {id(job): job for job, _ in chosen}
            if len(jobs) == 1:
                chosen[0][0].fail(error)
            for job in jobs.values() if len(jobs) > 1 else ():
                self._run([pair for pair in chosen if pair[0] is job])
            return
        for (job, number), result in zip(chosen, results):
            job.settle(number, result)
