"""Pages and forms of a review, and the service: a thin layer over ``Review``."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import FastAPI
from jinja2 import Environment, FileSystemLoader, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from ....base.display import counted, shown_probability
from ....base.errors import message_of
from ....base.pages import part
from ..decisions.deciding import span_in
from ..forms import FORMS, Form
from ..links import EXPORTS, GOLD, LinkReview, exported
from ..queue import CHOICES, Filters, next_id, sure_of, version_of
from ..review import Review
from .reconciliation import Reconciliation, address
from .security import COOKIE, Rules, Window, Windows, refusal
from .service import Service, guarded

HERE = Path(__file__).parent
# The templates of pages, and of the parts of pages that are fetched when they are needed.
PAGES = ("cluster", "bulk", "document", "links", "link", "kb", "history")
PARTS = ("similar", "search", "why", "effect")
# After these, the page moves to the next cluster; after others it stays.
MOVES_ON = ("accept", "link", "reject", "skip")


def url(path: str, query: Mapping[str, Any] | None = None, **more: Any) -> str:
    """An address of ours. Values that are None or empty are left out."""
    values = {
        k: v for k, v in {**(query or {}), **more}.items() if v not in (None, "")
    }
    return f"{path}?{urlencode(values, quote_via=quote)}" if values else path


class Pages:
    """Answers requests. Templates take what they show from the review and the links."""

    def __init__(
        self, review: Review, rules: Rules, links: LinkReview | None, windows: Windows
    ) -> None:
        self.review = review
        self.rules = rules
        self.links = links
        self.windows = windows
        folder = FileSystemLoader(HERE / "templates")
        self.env = Environment(loader=folder, autoescape=True, trim_blocks=True)
        self.env.globals.update(
            review=review,
            kb=review.linker.kb,
            links=links,
            near_now=self._near,
            hidden=self._hidden,
            why=self._why,
            cluster=lambda i: review.new[i or ""],
            url=self._url,
            explained=partial(part, "explanation"),
            version_of=version_of,
            counted=counted,
            choices=CHOICES,
            Filters=Filters,
            sure_of=sure_of,
            exports=EXPORTS,
            gold=GOLD,
        )
        self.env.filters.update(
            p=shown_probability, blanks=partial(re.sub, r"\s+", " ")
        )

    @pass_context
    def _url(
        self,
        context: Context,
        path: str,
        query: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> str:
        """An address of ours, in the window of the page."""
        return context["root"] + url(path, query, **more)

    @pass_context
    def _hidden(self, context: Context, **more: Any) -> Markup:
        window = context["window"]
        back = urlencode(context["back"])
        values = {"csrf": window.form if window else "", "back": back, **more}
        field = Markup('<input type="hidden" name="{}" value="{}">')
        return Markup("").join(
            field.format(*pair) for pair in values.items() if pair[1] != ""
        )

    def _near(self, entity: Any) -> list[Any]:
        """The nearest entities of a new one now.

        Each with why no mention was linked to it.
        """
        threshold = self.review.new.threshold
        below = f"below the threshold of {threshold:g}"
        return [
            (
                nearest,
                "would be linked by now"
                if nearest.probability >= threshold
                else below,
            )
            for nearest in self.review.near.of(entity)
        ]

    def _why(self, entity: Any, kb_id: str) -> Markup:
        member = entity.members[entity.medoid]
        span = self.links.span(member.key) if self.links is not None else None
        span = span or span_in(
            self.review.nlp, {**vars(member), "document": member.document}
        )
        return Markup(part("explanation", self.review.linker.explain(span, kb_id)))

    def show(
        self, name: str, request: Request, status: int = 200, **values: Any
    ) -> Response:
        """A page, or a part of one. Raises KeyError if it does not exist."""
        query: Any = request.query_params if not values else {}
        filters = Filters.of(query)
        window = request.scope["window"]
        if name in ("links", "link") and self.links is None:
            raise HTTPException(
                404, "Give documents to review links: --texts corpus.spacy."
            )
        root = request.scope.get("root_path", "")
        back = filters.query()
        if query.get("next"):
            back["next"] = query["next"]
        values = {
            "query": query,
            "filters": filters,
            "back": back,
            "root": root,
            "window": window,
            "path": request.url.path.removeprefix(root),
            "reconciliation": address(self.rules),
            **values,
        }
        with self.review.alone:
            page = self.env.get_template(f"{name}.html").render(values)
        return HTMLResponse(page, status)

    def fail(self, request: Request, error: Exception) -> Response:
        """An error page; for a program, a text. What could not be written did not happen."""
        status = 404 if request.method in ("GET", "HEAD") else 422
        text = message_of(error)
        headers: Any = None
        if isinstance(error, HTTPException):
            status = error.status_code
            text = error.detail
            headers = error.headers
        elif isinstance(error, OSError):
            status = 507
            text = f"Nothing has changed: {error}."
        if request.scope.get("window") is None:
            return refusal(request, status, text, headers)
        return self.show("message", request, status, text=text)

    def download(self, request: Request) -> Response:
        """A file of what was decided."""
        name = request.path_params["name"]
        if name not in EXPORTS or (name == GOLD and self.links is None):
            raise HTTPException(
                404, f"There is no file {name!r}. The page History has all."
            )
        with self.review.alone:
            content = exported(name, self.review, self.links)
        return Response(content, media_type="application/octet-stream")

    def decide(self, request: Request) -> Response:
        """Make a decision, then show the next page."""
        action = request.path_params["action"]
        review = self.review
        if action not in FORMS:
            raise HTTPException(404, f"There is no decision {action!r}.")
        form = Form.read(action, request.scope["form"])
        filters = Filters.of(form.back)
        more = form.values
        if action == "learn":
            if self.links is None:
                raise HTTPException(
                    404, "Give documents to decide on links: --texts corpus.spacy."
                )
            with self.review.alone:
                more = self.links.entry_of(self.links.row(form.row), more["kb_id"])
        typed = more.get("kb_id") if action == "accept" else None
        if typed and typed in review.linker.kb:
            exists = {
                "known": review.linker.kb.get(typed),
                "given": more,
                "seen": form.seen,
            }
            return self.show("exists", request, 409, **exists)
        before = review.queue.rows.get(more.get("id", ""))
        following = (
            next_id(review.select(filters), before, filters.sort) if before else ""
        )
        after = form.back.get("next", following)
        entry = review.decide(action, self.by(request), form.seen, **more)
        query = {**filters.query(), "done": entry["n"]}
        if action == "learn" and self.links is not None:
            for row in self.links.select(filters, review):
                return self._to(request, url("/link", query, n=row.number))
            return self._to(request, url("/links", query))
        if action in MOVES_ON:
            open_ids = [
                entity_id
                for entity_id in (after, following)
                if entity_id in review.queue.rows
            ]
            after = (
                open_ids or [next_id(review.select(filters), before, filters.sort)]
            )[0]
            place = (
                url("/cluster", query, id=after)
                if after
                else self._place(entry, query)
            )
        elif form.at in review.queue.rows:
            place = url("/cluster", query, id=form.at)
        else:
            place = self._place(entry, {**query, "next": after} if before else query)
        return self._to(request, place)

    def by(self, request: Request) -> str:
        """The name that decisions are recorded under."""
        window: Window | None = request.scope["window"]
        return window.name if window is not None else self.windows.name

    def undo(self, request: Request) -> Response:
        """Undo a decision, and show its page."""
        form = request.scope["form"]
        digits = form.get("n", [""])[0]
        number = int(digits) if digits.isdecimal() and len(digits) < 10 else None
        back = Filters.of(dict(parse_qsl(form.get("back", [""])[0]))).query()
        entry = self.review.undo(self.by(request), number)
        return self._to(request, self._place(entry, {**back, "undone": entry["n"]}))

    def _to(self, request: Request, place: str) -> Response:
        return RedirectResponse(request.scope.get("root_path", "") + place, 303)

    def _place(self, entry: dict[str, Any], query: Mapping[str, Any]) -> str:
        if entry["action"] == "learn":
            return url("/links", query)
        if "changed" in entry:
            for entity_id in reversed(entry["changed"]):
                if entity_id in self.review.linker.kb:
                    return url("/kb/entity", query, id=entity_id)
            return url("/kb", query)
        if entry.get("id") in self.review.queue.rows:
            return url("/cluster", query, id=entry["id"])
        return url("/", query)

    def save(self, request: Request) -> Response:
        self.review.save()
        return self._to(request, "/history")

    def name(self, request: Request) -> Response:
        """Name who decides in this window."""
        window: Window | None = request.scope["window"]
        if window is not None:
            window.name = " ".join(request.scope["form"].get("name", [""])[0].split())[
                :100
            ]
        return self._to(request, "/history")

    def leave(self, request: Request) -> Response:
        """Log out of a window."""
        window: Window | None = request.scope["window"]
        answer = PlainTextResponse(
            "Logged out. The address that the command has printed logs in."
        )
        if window is not None:
            self.windows.close(window)
            answer.delete_cookie(COOKIE, path=request.scope["root_path"])
        return answer


def create_app(
    review: Review,
    rules: Rules,
    links: LinkReview | None = None,
    by: str = "",
    space: str = "",
) -> FastAPI:
    """The application over a review.

    by: Who decides in windows without another name.
    space: What the ids of entities belong to, see ``Reconciliation``.
    """
    windows = Windows(by)
    pages = Pages(review, rules, links, windows)
    shown = {
        "/": "queue",
        "/kb/entity": "entity",
        **{f"/{name}": name for name in PAGES},
    }
    shown.update({f"/{name}": f"_{name}" for name in PARTS})
    routes: list[BaseRoute] = [
        Route(p, partial(pages.show, name)) for p, name in shown.items()
    ]
    changing: dict[str, Any] = {
        "/decide/{action}": pages.decide,
        "/undo": pages.undo,
        "/save": pages.save,
        "/name": pages.name,
        "/logout": pages.leave,
    }
    routes += [
        Route("/export/{name}", pages.download),
        *(Route(path, answer, methods=["POST"]) for path, answer in changing.items()),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    failures: Any = dict.fromkeys(
        (HTTPException, ValueError, KeyError, OSError), pages.fail
    )
    decide = partial(review.decide, by="service")
    edit = None if review.read_only else decide
    service = Service(review.nlp, edit, rules.patience, review.alone)
    service.warm()
    app = service.app(routes=routes, exception_handlers=failures)
    name = review.model.resolve().name
    app.add_middleware(
        Reconciliation, service=service, name=name, rules=rules, space=space
    )
    return guarded(app, service, rules, windows)
