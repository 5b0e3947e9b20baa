"""One pass of a pipeline for requests that arrive together."""

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
# Items of a call, and their weight together: others wait no longer, and it is soon over.
ITEMS = 64
WEIGHT = 512


@dataclass(eq=False)
class _Request:
    """A request, with its results by the number of the item.

    states: Those before and after its calls.
    at_once: Whether one call is to answer all of it.
    """

    items: Sequence[Any]
    start: float
    answer: "Future[list[Any]]" = field(default_factory=Future)
    begun: int = 0
    results: dict[int, Any] = field(default_factory=dict)
    states: set[Hashable] = field(default_factory=set)
    at_once: bool = False

    def settle(self, number: int, result: Any) -> None:
        self.results[number] = result
        if len(self.results) == len(self.items) and not self.answer.done():
            self.answer.set_result([self.results[i] for i in range(len(self.items))])

    def restart(self) -> None:
        """Begin anew, with one call."""
        self.begun = 0
        self.results.clear()
        self.at_once = True

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class SharedCall(Generic[T]):
    """Share one call of a function among threads.

    The function is called at once where nothing else is asked. Those that come during a call share
    the next one. A large request is answered in several calls, and others have their turn between
    them. Where the state changes meanwhile, one call answers all of it, so that no answer mixes two
    states. Where a call fails, the items of each request are tried by themselves.

    function: Gives one result for each item, in order.
    thread: One thread calls it, always the same: torch starts more threads for each one that it is
        called from.
    weigh: How much work an item is, beside ``WEIGHT``.
    patience: Seconds after which a request is given up: TimeoutError.
    state: A value that changes with what the results depend on. A call sees one state.
    """

    def __init__(
        self,
        function: Callable[[list[Any]], list[T]],
        thread: ThreadPoolExecutor | None = None,
        *,
        weigh: Callable[[Any], int] = lambda item: 1,
        patience: float = float("inf"),
        state: Callable[[], Hashable] = lambda: None,
    ) -> None:
        self.function = function
        self.weigh = weigh
        self.patience = patience
        self.state = state
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
                weight_of_job = 0
                while job.begun < len(job.items) and (
                    len(chosen) < ITEMS or job.at_once
                ):
                    more = self.weigh(job.items[job.begun])
                    # Each has at least one item, or the same share as others.
                    is_full = (chosen and weight + more > WEIGHT) or (
                        weight_of_job and weight_of_job + more > share
                    )
                    if is_full and not job.at_once:
                        break
                    chosen.append((job, job.begun))
                    weight += more
                    weight_of_job += more
                    job.begun += 1
            self._waiting = [job for job in jobs if job.begun < len(job.items)]
        return chosen

    def _run(self, chosen: list[tuple[_Request, int]]) -> None:
        before = self.state()
        jobs = list(dict.fromkeys(job for job, _ in chosen))
        try:
            results = self.function([job.items[number] for job, number in chosen])
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].fail(error)
            for job in jobs if len(jobs) > 1 else ():
                self._run([pair for pair in chosen if pair[0] is job])
            return
        states = {before, self.state()}
        mixed = [job for job in jobs if job.results and len(job.states | states) > 1]
        for job in jobs:
            job.states |= states
        for (job, number), result in zip(chosen, results):
            if job not in mixed:
                job.settle(number, result)
        for job in mixed:
            job.restart()
        with self._lock:
            self._waiting = mixed + [job for job in self._waiting if job not in mixed]
