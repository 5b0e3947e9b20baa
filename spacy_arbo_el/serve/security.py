"""Who may ask what: a token, a session, forms of our own pages only, and limits."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, MutableMapping, Optional, Union
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

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


@dataclass(frozen=True)
class Rules:
    """Where a server listens, its secret, and how many bytes a request may have."""

    host: str = LOOPBACK[0]
    port: int = 8765
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    body: int = 1_000_000

    @property
    def origins(self) -> List[str]:
        """Our own addresses. A page of another name may try to reach us (DNS rebinding)."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        names = dict.fromkeys((own, *LOOPBACK)) if own in LOOPBACK else (own,)
        return [f"http://{name}" + f":{self.port}" * (self.port != 80) for name in names]

    def secret(self, purpose: str) -> str:
        """A secret for one purpose: "session" or "form"."""
        return hmac.new(self.token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


class Gate:
    """ASGI middleware: lets a request through, or answers it.

    app: The application. It finds the fields of a form in ``scope["form"]``.
    """

    def __init__(self, app: Callable, rules: Rules) -> None:
        self.app, self.rules = app, rules
        # Browsers share cookies between the ports of a host.
        self.cookie = f"arbo_{rules.port}"

    async def __call__(self, scope: Dict[str, Any], receive: Callable, send: Callable) -> None:
        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        request = Request(scope, receive)
        answer = self._refusal(request) or await self._read_form(request)
        await (answer or self.app)(scope, receive, with_headers)

    def _refusal(self, request: Request) -> Optional[Response]:
        """The answer to a request that may not pass; None where it may."""
        if f"http://{request.headers.get('host', '')}" not in self.rules.origins:
            return PlainTextResponse("This server is reached by another name.", 421)
        if request.method not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Method not allowed.", 405)
        token, session = request.query_params.get("token"), self.rules.secret("session")
        if request.method == "GET" and token is not None and same(token, self.rules.token):
            # The token is in the address no more.
            answer = RedirectResponse(request.url.path, 303)
            answer.set_cookie(self.cookie, session, httponly=True, samesite="lax")
            return answer
        if token is not None or not same(request.cookies.get(self.cookie, ""), session):
            text = "Open the address that the command has printed: it has the token."
            return PlainTextResponse(text, 403)
        return None

    async def _read_form(self, request: Request) -> Optional[Response]:
        """Read the form of a POST; the answer where it is too large or not from our pages."""
        if request.method != "POST":
            return None
        fields = await read_form(request, self.rules.body)
        if isinstance(fields, Response):
            return fields
        origin = request.headers.get("origin", self.rules.origins[0])
        is_ours = same(fields.get("csrf", [""])[0], self.rules.secret("form"))
        if not is_ours or origin not in self.rules.origins:
            return PlainTextResponse("The form is from another page. Reload this one.", 403)
        request.scope["form"] = fields
        return None


async def read_form(request: Request, most: int) -> Union[Response, Dict[str, List[str]]]:
    """The fields of a form of at most so many bytes, or the answer where there are none."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            return PlainTextResponse(f"More than {most:,} bytes.", 413)
    try:
        return parse_qs(body.decode("utf8"), keep_blank_values=True, max_num_fields=20_000)
    except ValueError:
        return PlainTextResponse("This is no form.", 400)


def same(left: str, right: str) -> bool:
    """Whether two secrets are equal, in the same time for all."""
    return hmac.compare_digest(left.encode("utf8", "replace"), right.encode())
