"""Access control: tokens, sessions, forms, and limits. A token for programs, a session and forms
for browsers.
"""

import hashlib
import hmac
import secrets
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, MutableMapping, Optional
from urllib.parse import parse_qs, urlsplit

import anyio
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

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
# All addresses of a machine. Browsers reach it by one of ours, or by that of ``Rules.url``.
EVERY = ("0.0.0.0", "::", "")
# Below it, ``Reconciliation`` says who may ask.
RECONCILE = "/reconcile/"
# What a container's runtime asks, by whatever name and without a token. It tells nothing.
PROBES = ("/health", "/ready")
FORM = "application/x-www-form-urlencoded"


def new_token() -> str:
    """A random secret."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Rules:
    """Rules of a server: addresses, secret, and limits.

    url: The address by which browsers reach it, where that is another than of ``host``: behind a
        proxy, or with a port that a container's runtime maps.
    body: Bytes of a request.
    requests: Requests that are answered at a time.
    seconds: How long a client may take to send a body.
    """

    host: str = LOOPBACK[0]
    port: int = 8765
    token: str = field(default_factory=new_token)
    url: str = ""
    body: int = 2_000_000
    requests: int = 32
    seconds: float = 30.0

    @property
    def origins(self) -> List[str]:
        """Our own addresses. A page of another name may try to reach us (DNS rebinding)."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        names = LOOPBACK if self.host in EVERY else (own,)
        names = tuple(dict.fromkeys((*names, *LOOPBACK))) if own in LOOPBACK else names
        found = [f"http://{name}" + f":{self.port}" * (self.port != 80) for name in names]
        return [*([self.url.rstrip("/")] if self.url else []), *found]

    def origin_of(self, request: Request) -> Optional[str]:
        """Find the own address that a client asks by. None for a foreign one, as after a
        rebinding.
        """
        host = request.headers.get("host", "")
        return next((one for one in self.origins if urlsplit(one).netloc == host), None)

    def has_secret(self, path: str) -> bool:
        """Return whether a path below ``RECONCILE`` has the secret."""
        return same(path.split("/")[2], self.secret("reconcile"))

    def secret(self, purpose: str) -> str:
        """A secret for one purpose: "session", "form" or "reconcile"."""
        return hmac.new(self.token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


class Gate:
    """ASGI middleware: lets a request through, or answers it.

    A program sends the token as a header, which no browser adds by itself. A browser has a cookie;
    it must ask by our name, and its forms have a secret of our pages. OpenRefine has a secret in
    the address, see ``Reconciliation``.

    app: The application. It finds the body of a POST in ``scope["body"]``, and the fields of a form
        in ``scope["form"]``.
    """

    def __init__(self, app: Callable, rules: Rules) -> None:
        self.app, self.rules = app, rules
        # Browsers share cookies between the ports of a host.
        self.cookie = f"arbo_{rules.port}"
        self.slots = threading.BoundedSemaphore(rules.requests)

    async def __call__(self, scope: Dict[str, Any], receive: Callable, send: Callable) -> None:
        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        path = own_path(scope)
        if scope["type"] != "http" or path in PROBES:
            await self.app(scope, receive, with_headers)
            return
        request = Request(scope, receive)
        try:
            by_address = path.startswith(RECONCILE)
            answer = None if by_address else self._refusal(request)
            if request.method == "POST" and (not by_address or self.rules.has_secret(path)):
                answer = await self._read(request, answer)
        except ClientDisconnect:
            return
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
            await refusal(request, 503, text, {"Retry-After": "1"})(scope, receive, with_headers)

    def _refusal(self, request: Request) -> Optional[Response]:
        """The answer to a request that may not pass. None where it may."""
        if request.method not in ("GET", "HEAD", "POST"):
            return refusal(request, 405, "Method not allowed.", {"Allow": "GET, HEAD, POST"})
        header = request.headers.get("authorization")
        if header is not None and same(header, f"Bearer {self.rules.token}"):
            return None
        if header is None and self.rules.origin_of(request) is None:
            return refusal(request, 421, "Browsers reach this server by another name: --url.")
        token, session = request.query_params.get("token"), self.rules.secret("session")
        if request.method == "GET" and token is not None and same(token, self.rules.token):
            # The token is in the address no more.
            answer = RedirectResponse(request.url.path, 303)
            secure = self.rules.url.startswith("https:")
            answer.set_cookie(self.cookie, session, httponly=True, samesite="lax", secure=secure)
            return answer
        given = request.cookies.get(self.cookie, "") if header is None and token is None else ""
        if same(given, session):
            return None
        text = (
            "The token is wrong or missing. Browsers: open the address that the command has "
            "printed. Programs: send it as a header, Authorization: Bearer TOKEN."
        )
        return refusal(request, 401, text, {"WWW-Authenticate": "Bearer"})

    async def _read(self, request: Request, refused: Optional[Response]) -> Optional[Response]:
        """Read the body of a POST. The answer where it is refused, too large, or not from us.

        A refused body is read too, since a client that is still sending sees no answer.
        """
        body, size, most = bytearray(), 0, self.rules.body
        try:
            with anyio.fail_after(self.rules.seconds):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > 8 * most:
                        break
                    if size <= most and refused is None:
                        body += chunk
        except TimeoutError:
            text = f"The body did not arrive within {self.rules.seconds:g} seconds."
            return refusal(request, 408, text, {"Connection": "close"})
        if refused is not None:
            return refused
        if size > most:
            return refusal(request, 413, f"The body has more than {most:,} bytes.")
        request.scope.update(body=bytes(body), form={})
        if "authorization" in request.headers:
            if request.headers.get("content-type", "").startswith(FORM):
                with suppress(ValueError):  # Curl calls JSON a form too
                    request.scope["form"] = parse_qs(body.decode("utf8"), max_num_fields=20_000)
            return None
        try:
            fields = parse_qs(body.decode("utf8"), keep_blank_values=True, max_num_fields=20_000)
        except ValueError:
            return refusal(request, 400, "This is no form.")
        request.scope["form"] = fields
        if own_path(request.scope).startswith(RECONCILE):
            return None
        origin = request.headers.get("origin", self.rules.origins[0])
        is_ours = same(fields.get("csrf", [""])[0], self.rules.secret("form"))
        if not is_ours or origin not in self.rules.origins:
            return refusal(request, 403, "The form is from another page. Reload this one.")
        return None


def own_path(scope: Mapping[str, Any]) -> str:
    """Path of a request below the application's mount point."""
    path: str = scope.get("path", "")
    return path.removeprefix(scope.get("root_path", ""))


def refusal(
    request: Request, status: int, text: str, headers: Optional[Dict[str, str]] = None
) -> Response:
    """Make an error as text for browsers, else JSON."""
    if "text/html" in request.headers.get("accept", ""):
        return PlainTextResponse(text, status, headers)
    return JSONResponse({"error": text}, status, headers)


def same(left: str, right: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(left.encode("utf8", "replace"), right.encode())
