"""Start and stop of the server, and the folder that it follows."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from ....base.log import log
from ....kb.knowledge_base import ArboKB
from ..errors import ReviewMessages
from .security import Rules
from .service import Service

# Connections; how many requests are answered at a time is in the rules.
CONNECTIONS = 512
# Seconds beyond the patience of requests until a client that does not read its answer is left.
GRACE = 5


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that is bound to an address. ValueError where that is not possible."""
    try:
        addresses = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = addresses[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        raise ReviewMessages.E924(host=host, port=port, problem=error) from None
    with bound:
        yield bound


class _Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection that ends where the client does not read its answer, which takes memory.

    seconds: How long it may take to read.
    """

    seconds: float

    def pause_writing(self) -> None:
        super().pause_writing()
        self.late = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self.late.cancel()
        super().resume_writing()


def configured(app: Any, rules: Rules) -> uvicorn.Config:
    """How an application is served: with limits of connections, and of the time to read answers."""
    protocol: Any = type("Protocol", (_Protocol,), {"seconds": rules.seconds})
    return uvicorn.Config(
        app,
        http=protocol,
        log_level="warning",
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=int(rules.patience) + GRACE,
    )


class _Server(uvicorn.Server):
    """A server that saves once it is to stop.

    Saving waits for no client, and no client for it.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        rules: Rules,
        say: Callable[[], None],
        save: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self.rules = rules
        self.say = say
        self.save = save

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.say()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.rules.stopping.set()
        saving = asyncio.get_running_loop().run_in_executor(None, self.save)
        await super().shutdown(sockets)
        await saving


def run(
    app: Any,
    bound: socket.socket,
    rules: Rules,
    say: Callable[[], None] = lambda: None,
    save: Callable[[], None] = lambda: None,
) -> None:
    """Serve an application at a socket until a signal comes.

    say: Called once it listens.
    save: Called as soon as it is to stop; requests that came before are answered meanwhile.
    """
    _Server(configured(app, rules), rules, say, save).run(sockets=[bound])


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
