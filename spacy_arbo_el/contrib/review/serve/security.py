"""Access control: tokens, windows, forms and limits.

Programs have a token, and browsers a window with its address and forms.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.types import Message

from ..errors import ReviewMessages

# Nothing but our own files is loaded, nothing is sent elsewhere, and no text of others can run.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src "
    "'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
# All addresses of a machine, and the names by which it reaches itself. Browsers reach it by one of
# these, or by that of ``Rules.url``.
EVERY = {"0.0.0.0": LOOPBACK, "": LOOPBACK, "::": LOOPBACK[::-1]}
# Below it, ``Reconciliation`` says who may ask.
RECONCILE = "/reconcile/"
# Below it are the pages of a window.
WINDOW = "/w/"
# What a container's runtime asks, by whatever name and without a token. It tells nothing.
PROBES = ("/health", "/ready")
COOKIE = "arbo"
# Windows that are open at a time. The oldest is closed then.
MOST_WINDOWS = 2000
READING = ("GET", "HEAD")
FORM = "application/x-www-form-urlencoded"
# Seconds between looks at whether the server is to stop, while a body arrives.
LOOK = 0.25
PORTS = {"http": 80, "https": 443}


def new_token() -> str:
    """A random secret."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Rules:
    """Rules of a server: addresses, secret, and limits.

    url: The address by which browsers reach it, where that is another than of ``host``: behind a
        proxy, or with a port that a container's runtime maps. ValueError where it is no origin.
    body: Bytes of a request.
    requests: Requests that are answered at a time.
    seconds: How long a client may take to send a body.
    patience: How long a request may wait for its links.
    stopping: Set when the server is to stop. What has not arrived by then is not waited for.
    """

    host: str = LOOPBACK[0]
    port: int = 8765
    token: str = field(default_factory=new_token)
    url: str = ""
    body: int = 2_000_000
    requests: int = 32
    seconds: float = 30.0
    patience: float = 20.0
    stopping: threading.Event = field(default_factory=threading.Event, compare=False)

    def __post_init__(self) -> None:
        if self.url:
            object.__setattr__(self, "url", _origin(self.url))

    @property
    def origins(self) -> list[str]:
        """Our own addresses. A page of another name may try to reach us (DNS rebinding)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        names = EVERY.get(self.host, (host,))
        names = (
            tuple(dict.fromkeys((*names, *LOOPBACK))) if host in LOOPBACK else names
        )
        origins = [
            f"http://{name}" + f":{self.port}" * (self.port != 80) for name in names
        ]
        return [*([self.url] if self.url else []), *origins]

    def origin_of(self, request: Request) -> str | None:
        """Find the own address that a client asks by; None for another, as after a rebinding."""
        host = request.headers.get("host", "")
        return next(
            (origin for origin in self.origins if urlsplit(origin).netloc == host),
            None,
        )

    def has_secret(self, path: str) -> bool:
        """Return whether a path below ``RECONCILE`` has the secret."""
        return same("/".join(path.split("/")[:3]), self.reconciliation)

    @property
    def reconciliation(self) -> str:
        """The path of the Reconciliation API, which ends with a secret made of the token."""
        digest = hmac.new(self.token.encode(), b"reconcile", hashlib.sha256)
        return RECONCILE + digest.hexdigest()


@dataclass
class Window:
    """A window of a browser. Its address has a secret, which other ports of the host never see.

    path: The secret in the address. cookie: That of the browser, which it sends below this address
    alone. form: What its forms carry. name: Who decides in it.
    """

    path: str = field(default_factory=new_token)
    cookie: str = field(default_factory=new_token)
    form: str = field(default_factory=new_token)
    name: str = ""


class Windows:
    """The windows that are open. name: Who decides where a window has no name."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._open: dict[str, Window] = {}

    def open(self) -> Window:
        """A new window."""
        window = Window(name=self.name)
        self._open[window.path] = window
        while len(self._open) > MOST_WINDOWS:
            self._open.pop(next(iter(self._open)))
        return window

    def find(self, request: Request, path: str) -> Window | None:
        """The window that a request comes from; None without its secret and its cookie."""
        window = self._open.get(path.split("/")[2])
        cookie = request.cookies.get(COOKIE, "")
        return window if window is not None and same(cookie, window.cookie) else None

    def close(self, window: Window) -> None:
        """End a window. Its address and cookie open nothing any more."""
        self._open.pop(window.path, None)


class Gate:
    """ASGI middleware: lets a request through, or answers it.

    A program sends the token as a header, which no browser adds by itself. A browser has a window,
    with a secret in its address and a cookie; it must ask by our name, and its forms have a secret
    of this window. OpenRefine has a secret in the address, see ``Reconciliation``.

    app: The application. It receives the body of a POST in one message, and finds the fields of a
        form in ``scope["form"]`` and the window in ``scope["window"]``, None for a program.
    """

    def __init__(self, app: Callable, rules: Rules, windows: Windows) -> None:
        self.app = app
        self.rules = rules
        self.windows = windows
        self.slots = threading.BoundedSemaphore(rules.requests)

    async def __call__(
        self, scope: dict[str, Any], receive: Callable, send: Callable
    ) -> None:
        def add_headers(start: Message) -> None:
            headers = MutableHeaders(scope=start)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = own_path(scope)
        request = Request(scope, receive)
        with_headers = at_start(send, add_headers)
        if path in PROBES:
            probed = (
                self.app
                if request.method in READING
                else not_allowed(request, READING)
            )
            await probed(scope, receive, with_headers)
            return
        try:
            answer = self._enter(request, path)
            by_address = path.startswith(RECONCILE)
            if request.method == "POST" and (
                not by_address or self.rules.has_secret(path)
            ):
                answer = await self._read(request, answer, by_address)
        except ClientDisconnect:
            return
        receive = _again(scope.pop("body")) if "body" in scope else receive
        # A slow client has no slot while it sends.
        if answer is not None:
            await answer(scope, receive, with_headers)
        elif self.slots.acquire(blocking=False):
            try:
                await self.app(scope, receive, with_headers)
            finally:
                self.slots.release()
        else:
            text = f"{self.rules.requests} requests are being answered. Ask again in a second."
            await refusal(request, 503, text, {"Retry-After": "1"})(
                scope, receive, with_headers
            )

    def _enter(self, request: Request, path: str) -> Response | None:
        """The answer to a request that may not pass. None where it may, with its window noted."""
        scope = request.scope
        header = request.headers.get("authorization")
        scope["window"] = None
        if path.startswith(RECONCILE):
            return None
        if request.method not in (*READING, "POST"):
            return not_allowed(request, (*READING, "POST"))
        if header is not None and same(header, f"Bearer {self.rules.token}"):
            return None
        if header is None and self.rules.origin_of(request) is None:
            return refusal(
                request, 421, "Browsers reach this server by another name: --url."
            )
        root = scope.get("root_path", "")
        token = request.query_params.get("token")
        if (
            request.method == "GET"
            and token is not None
            and same(token, self.rules.token)
        ):
            return self._open(root, path)
        if path.startswith(WINDOW) and header is None:
            scope["window"] = window = self.windows.find(request, path)
            if window is not None:
                scope["root_path"] = f"{root}{WINDOW}{window.path}"
                return None
        text = (
            "The token is wrong or missing. Browsers: open the address that the command has "
            "printed. Programs: send it as a header, Authorization: Bearer TOKEN."
        )
        return refusal(request, 401, text, {"WWW-Authenticate": "Bearer"})

    def _open(self, root: str, path: str) -> Response:
        """Open a window. The token is in its address no more."""
        window = self.windows.open()
        home = f"{root}{WINDOW}{window.path}"
        answer = RedirectResponse(
            home + (path if not path.startswith(WINDOW) else "/"), 303
        )
        secure = self.rules.url.startswith("https:")
        settings: Any = {"httponly": True, "samesite": "lax", "secure": secure}
        answer.set_cookie(COOKIE, window.cookie, path=home, **settings)
        return answer

    async def _read(
        self, request: Request, refused: Response | None, by_address: bool
    ) -> Response | None:
        """Read the body of a POST. The answer where it is refused, too large, or not from us.

        A refused body is read too, since a client that is still sending sees no answer.

        by_address: Whether it is for the Reconciliation API.
        """
        refuse = partial(refusal, request)
        body = bytearray()
        size = 0
        most = self.rules.body
        end = time.monotonic() + self.rules.seconds
        is_whole = False
        while not is_whole and size <= 8 * most:
            chunk = None
            with anyio.move_on_after(min(LOOK, max(0.0, end - time.monotonic()))):
                chunk = await request.receive()
            if chunk is not None:
                if chunk["type"] == "http.disconnect":
                    raise ClientDisconnect
                size += len(chunk.get("body", b""))
                is_whole = not chunk.get("more_body", False)
                if size <= most and refused is None:
                    body += chunk.get("body", b"")
            elif self.rules.stopping.is_set():
                return refuse(503, "The server stops.", {"Connection": "close"})
            elif time.monotonic() > end:
                text = (
                    f"The body did not arrive within {self.rules.seconds:g} seconds."
                )
                return refuse(408, text, {"Connection": "close"})
        if refused is not None:
            return refused
        if size > most:
            return refuse(413, f"The body has more than {most:,} bytes.")
        request.scope.update(body=bytes(body), form={})
        window = request.scope["window"]
        is_form = window is not None or by_address
        if not is_form and not request.headers.get("content-type", "").startswith(
            FORM
        ):
            return None
        try:
            fields = parse_qs(
                body.decode("utf8"), keep_blank_values=True, max_num_fields=20_000
            )
        except ValueError:
            # Curl calls JSON a form too.
            return refuse(400, "This is no form.") if is_form else None
        request.scope["form"] = fields
        if window is None:
            return None
        origin = request.headers.get("origin", self.rules.origins[0])
        is_ours = same(fields.get("csrf", [""])[0], window.form)
        if not is_ours or origin not in self.rules.origins:
            return refuse(403, "The form is from another page. Reload this one.")
        return None


def at_start(send: Callable, change: Callable[[Message], None]) -> Callable:
    """The channel of an answer, whose start is changed or noted before it is sent."""

    async def send_changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            change(message)
        await send(message)

    return send_changed


def _again(body: bytes) -> Callable:
    """Make the channel by which an application receives a body that was read already."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _origin(url: str) -> str:
    """An address as browsers send it in Origin and Host. ValueError where it is none."""
    try:
        split_url = urlsplit(url)
        host = split_url.hostname
        port = split_url.port
    except ValueError:
        raise ReviewMessages.E923(url=url) from None
    more = (
        split_url.path.rstrip("/")
        or split_url.query
        or split_url.fragment
        or "@" in split_url.netloc
    )
    if split_url.scheme not in PORTS or not host or more:
        raise ReviewMessages.E923(url=url)
    name = f"[{host}]" if ":" in host else host
    shown = "" if port in (None, PORTS[split_url.scheme]) else f":{port}"
    return f"{split_url.scheme}://{name}{shown}"


def own_path(scope: Mapping[str, Any]) -> str:
    """Path of a request below the application's mount point."""
    path: str = scope.get("path", "")
    return path.removeprefix(scope.get("root_path", ""))


def not_allowed(request: Request, methods: Sequence[str]) -> Response:
    """The answer to a request by another method."""
    return refusal(request, 405, "Method not allowed.", {"Allow": ", ".join(methods)})


def refusal(
    request: Request, status: int, text: str, headers: dict[str, str] | None = None
) -> Response:
    """Make an error as text for browsers, else JSON."""
    if "text/html" in request.headers.get("accept", ""):
        return PlainTextResponse(text, status, headers)
    return JSONResponse({"error": text}, status, headers)


def same(first: str, right: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(first.encode("utf8", "replace"), right.encode())
