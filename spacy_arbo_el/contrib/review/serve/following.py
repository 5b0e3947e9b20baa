"""A knowledge base in a folder that another program edits, followed by a running service."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ....base.log import log
from ....kb.knowledge_base import ArboKB
from .service import Service

# Seconds between two looks at the folder.
SECONDS = 1.0


class Following:
    """Looks for edits of another program, and has the service link with each state of them.

    A document sees the state before an edit or after it. Names that are new are encoded while the
    old state still answers.

    service: Its linker reads the folder, see ``set_kb``.
    """

    def __init__(self, service: Service, path: Path) -> None:
        self.service = service
        self.path = path

    def look(self) -> bool:
        """Take up edits. RETURNS: Whether there were any."""
        linker = self.service.linker
        if not linker.kb.has_changed_outside:
            return False
        new = ArboKB(linker.vocab).from_disk(self.path)
        self.service.encode_ahead(new)
        linker.refresh()
        log.info("%s has changed: %d entities now", self.path, len(linker.kb))
        return True

    @contextmanager
    def running(self, seconds: float = SECONDS) -> Iterator[None]:
        """Look every so many seconds while the block runs."""
        stopping = threading.Event()

        def run() -> None:
            while not stopping.wait(seconds):
                try:
                    self.look()
                except (
                    Exception
                ) as error:  # whatever another program leaves in the folder
                    log.warning(
                        "%s cannot be read, the old state stays: %s", self.path, error
                    )

        thread = threading.Thread(target=run, name="following", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()
