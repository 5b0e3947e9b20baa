"""Locks that are reset after a fork, and values derived once from a state."""

import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..base.errors import Errors

T = TypeVar("T")

# Each forgets in a forked process the threads that do not exist there.
_locks: "weakref.WeakSet[ForkableLock | SharedLock]" = weakref.WeakSet()


class ForkableLock:
    """A reentrant lock, reset after fork."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return ForkableLock, ()

    def __enter__(self) -> "ForkableLock":
        self._lock.acquire()
        return self

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def _keep_own(self) -> None:
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


class SharedLock:
    """Lets many threads read, or one thread write.

    A thread may take it again while it has it, as a reader or as a writer. A reader that wants to
    write is an error, since two such readers would wait for each other. A writer that is waiting
    goes before new readers, so that edits are not kept waiting by a busy service.
    """

    def __init__(self) -> None:
        self._reset()
        _locks.add(self)

    def _reset(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        # How often each thread has the lock as a reader.
        self._readers: dict[int, int] = {}
        self._writer = 0
        self._depth = 0
        self._waiting = 0

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process has its own readers and writers.
        return SharedLock, ()

    @property
    def is_reading(self) -> bool:
        """Return whether this thread has the lock, either way."""
        thread = threading.get_ident()
        return self._writer == thread or thread in self._readers

    @property
    def is_writing(self) -> bool:
        """Return whether this thread has the lock as writer."""
        return self._writer == threading.get_ident()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock as one of its readers."""
        if self.is_writing:
            yield
            return
        thread = threading.get_ident()
        with self._condition:
            if thread not in self._readers:
                self._condition.wait_for(
                    lambda: not self._writer and not self._waiting
                )
            self._readers[thread] = self._readers.get(thread, 0) + 1
        try:
            yield
        finally:
            self._end_reading()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock exclusively. RuntimeError where the thread holds it as a reader."""
        thread = threading.get_ident()
        with self._condition:
            if self._writer != thread:
                if thread in self._readers:
                    raise RuntimeError(Errors.E770)
                self._waiting += 1
                try:
                    self._condition.wait_for(
                        lambda: not self._writer and not self._readers
                    )
                finally:
                    self._waiting -= 1
                self._writer = thread
            self._depth += 1
        try:
            yield
        finally:
            with self._condition:
                self._depth -= 1
                if not self._depth:
                    self._writer = 0
                    self._condition.notify_all()

    @contextmanager
    def reading_after(self, write: Callable[[], T]) -> Iterator[T]:
        """Call a function as the writer, and read without a gap; an outer block writes on alone."""
        is_reader = False
        try:
            with self.writing():
                result = write()
                is_reader = self._depth == 1
                if is_reader:
                    # It is a reader before it gives up writing. Nobody else has the lock.
                    self._readers[threading.get_ident()] = 1
            yield result
        finally:
            if is_reader:
                self._end_reading()

    def _end_reading(self) -> None:
        thread = threading.get_ident()
        with self._condition:
            self._readers[thread] -= 1
            if not self._readers[thread]:
                del self._readers[thread]
                self._condition.notify_all()

    def _keep_own(self) -> None:
        """Forget what other threads have of the lock."""
        thread = threading.get_ident()
        reads = self._readers.get(thread, 0)
        depth = self._depth
        is_writing = self.is_writing
        self._reset()
        if reads:
            self._readers[thread] = reads
        if is_writing:
            self._writer = thread
            self._depth = depth


def _forget_other_threads() -> None:
    # They do not exist in a forked process.
    for lock in list(_locks):
        lock._keep_own()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


class RevisionCache:
    """Values derived from a store, built once per revision."""

    def __init__(self) -> None:
        self._values: dict[Hashable, tuple[Any, Any]] = {}
        self._lock = ForkableLock()

    def get(
        self,
        name: Hashable,
        revision: Any,
        build: Callable[[], T],
        update: Callable[[T], T | None] = lambda value: None,
    ) -> T:
        """The value of a name, rebuilt for new revisions.

        update: Makes it from an earlier value, which it may change; None where it can't.
        """
        cached = self._values.get(name)
        if cached is not None and cached[0] == revision:
            return cached[1]
        # Of several threads one builds, and the others wait for the same value.
        with self._lock:
            cached = self._values.get(name)
            if cached is None or cached[0] != revision:
                # On an error, a value that is half updated must not be kept.
                self._values.pop(name, None)
                value = None if cached is None else update(cached[1])
                cached = self._values[name] = (
                    revision,
                    build() if value is None else value,
                )
            return cached[1]
