"""Several processes that answer programs at one address, over one copy of a pipeline in memory.

They are forked once everything is loaded. So vectors, weights and names are the same pages of
memory for all, and each further process takes what it computes with.
"""

import gc
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from spacy.language import Language
from starlette.exceptions import HTTPException

from ....base.errors import ArboError
from ....base.log import log
from ....encoders.dual import one_thread_after_fork
from ..errors import ReviewMessages
from .reconciliation import Reconciliation
from .security import Rules, Windows
from .service import Service, fail, guarded

# A process that ends within so many seconds would end again.
LEAST = 5.0


def create_workers_app(nlp: Language, rules: Rules, name: str, space: str = "") -> FastAPI:
    """The application of each worker: the service and the Reconciliation API, without pages.

    Nothing else may use the pipeline. Nothing is changed: each process would change its own copy.

    name: What clients of the Reconciliation API call it.
    space: What the ids of entities belong to, see ``Reconciliation``.
    """
    service = Service(nlp, None, rules.patience, threading.RLock())
    service.warm()
    failures: Any = {HTTPException: fail}
    app = service.app(exception_handlers=failures)
    app.add_middleware(Reconciliation, service=service, name=name, rules=rules, space=space)
    return guarded(app, service, rules, Windows())


@dataclass
class Workers:
    """Processes that are forked from this one. One that ends by itself is replaced.

    count: How many.
    serve: Serves until a signal comes; called in each process.
    """

    count: int
    serve: Callable[[], None]
    # When each process began, by its number.
    _began: dict[int, float] = field(default_factory=dict, init=False)
    # Its writing end is open as long as this process lives.
    _pipe: tuple[int, int] = field(default=(-1, -1), init=False)

    def run(self) -> None:
        """Run the processes until KeyboardInterrupt, then let them answer what was asked."""
        self._pipe = os.pipe()
        # Objects that nobody changes are not looked at, so that their pages stay shared.
        gc.collect()
        gc.freeze()
        try:
            while len(self._began) < self.count:
                self._start()
            while True:
                self._replace(*os.wait())
        finally:
            self._stop()

    def _start(self) -> None:
        sys.stdout.flush()
        with warnings.catch_warnings():
            # Python warns of threads, of which only those of libraries for matrices are left.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process:
            self._began[process] = time.monotonic()
            return
        code = 1
        try:
            reading, writing = self._pipe
            os.close(writing)
            one_thread_after_fork()
            threading.Thread(target=_end_with_parent, args=(reading,), daemon=True).start()
            self.serve()
            code = 0
        except KeyboardInterrupt:
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            # What the first process has opened is its own to close.
            os._exit(code)

    def _replace(self, process: int, status: int) -> None:
        began = self._began.pop(process, None)
        if began is None:
            return
        if time.monotonic() - began < LEAST:
            raise ArboError(ReviewMessages.E926.format(seconds=LEAST, status=status))
        log.warning("A worker has ended (status %d). Another one takes its place.", status)
        self._start()

    def _stop(self) -> None:
        for process in self._began:
            os.kill(process, signal.SIGTERM)
        for process in self._began:
            os.waitpid(process, 0)
        for end in self._pipe:
            os.close(end)
        gc.unfreeze()


def _end_with_parent(reading: int) -> None:
    """Stop this process when the first one has gone, whatever has ended it."""
    os.read(reading, 1)
    os.kill(os.getpid(), signal.SIGTERM)
