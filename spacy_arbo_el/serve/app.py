"""Pages and forms of a review, and the service. A thin layer over ``Review``."""

import re
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional
from urllib.parse import parse_qsl, quote, urlencode

import srsly
from jinja2 import Environment, FileSystemLoader, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from ..display import counted, one_line, shown_probability
from ..kb.entity import Entity
from ..pages import part
from .decisions import said, span_in
from .exchange import as_label_studio, as_prodigy, as_spacy
from .links import Links, as_csv, gold_docs
from .queue import CHOICES, Filters, next_id
from .reconciliation import Reconciliation
from .review import Review, version_of
from .security import Rules, refusal
from .service import Service, guarded

HERE = Path(__file__).parent
# The templates of pages, and of the parts of pages that are fetched when they are needed.
PAGES = ("cluster", "bulk", "document", "links", "link", "kb", "history")
PARTS = ("similar", "search", "why", "effect")
# The fields of each form: "*" for several values, "," and "|" for parts between commas or lines.
FORMS = {
    "accept": "id title description kb_id types,",
    "link": "id kb_id",
    "flag": "id comment",
    "merge": "id others*",
    "split": "id mentions*",
    "accept_all": "ids*",
    "learn": "kb_id",
    "kb_merge": "id into",
    **dict.fromkeys(("reject", "skip", "kb_remove"), "id"),
    **dict.fromkeys(("kb_add", "kb_update"), "id title description aliases| types|"),
}
# What the documents with the mentions that were decided on are written as, by the file's name.
GOLD = {
    "gold.spacy": as_spacy,
    "prodigy.jsonl": as_prodigy,
    "label_studio.json": as_label_studio,
}
# After these, the page moves to the next cluster; after others it stays.
MOVES_ON = ("accept", "link", "reject", "skip")


def url(path: str, query: Optional[Mapping[str, Any]] = None, **more: Any) -> str:
    """An address of ours. Values that are None or empty are left out."""
    values = {k: v for k, v in {**(query or {}), **more}.items() if v not in (None, "")}
    return f"{path}?{urlencode(values, quote_via=quote)}" if values else path


class Pages:
    """Answers requests. Templates take what they show from the review and the links."""

    def __init__(self, review: Review, rules: Rules, links: Optional[Links], by: str) -> None:
        self.review, self.rules, self.links, self.by = review, rules, links, by
        folder = FileSystemLoader(HERE / "templates")
        self.env = Environment(loader=folder, autoescape=True, trim_blocks=True)
        parts = {"review": review, "kb": review.linker.kb, "links": links, "by": by, "url": url}
        made = {"hidden": self._hidden, "why": self._why, "cluster": lambda i: review.new[i or ""]}
        explained = partial(part, "explanation")
        about = {"explained": explained, "version_of": version_of, "counted": counted}
        self.env.globals.update(**parts, **made, **about, choices=CHOICES, Filters=Filters)
        self.env.filters.update(p=shown_probability, line=one_line)

    @pass_context
    def _hidden(self, context: Context, **more: str) -> Markup:
        """The fields of every form. They carry the form's secret and the filters."""
        values = {"csrf": self.rules.secret("form"), "back": urlencode(context["back"]), **more}
        field = Markup('<input type="hidden" name="{}" value="{}">')
        return Markup("").join(field.format(*pair) for pair in values.items() if pair[1])

    def _why(self, entity: Any, kb_id: str) -> Markup:
        """Explain why a new entity is not linked. Why its most central mention is not linked to
        an entity.
        """
        member = entity.members[entity.medoid]
        span = self.links.span(member.key) if self.links is not None else None
        span = span or span_in(self.review.nlp, {**vars(member), "document": member.document})
        return Markup(part("explanation", self.review.linker.explain(span, kb_id)))

    def show(self, name: str, request: Request, status: int = 200, **values: Any) -> Response:
        """A page, or a part of one. Raises KeyError if it does not exist."""
        query, filters = (
            request.query_params,
            Filters.of(request.query_params if not values else {}),
        )
        if name in ("links", "link") and self.links is None:
            raise HTTPException(404, "Give documents to review links: --texts corpus.spacy.")
        about = {"query": query, "filters": filters, "back": filters.query(), **values}
        page = self.env.get_template(f"{name}.html").render(path=request.url.path, **about)
        return HTMLResponse(page, status)

    def fail(self, request: Request, error: Exception) -> Response:
        """An error page."""
        status, text = 404 if request.method == "GET" else 422, said(error)
        if isinstance(error, HTTPException):
            status, text = error.status_code, error.detail
        if "authorization" in request.headers:
            return refusal(request, status, text)
        return self.show("message", request, status, text=text)

    def download(self, request: Request) -> Response:
        """A file of what was decided."""
        name, entries = request.path_params["name"], self.review.standing
        if name in GOLD and self.links is not None:
            docs = gold_docs(self.review.linker, self.links.docs, entries)
            content: Any = GOLD[name](docs, self.review.linker.mentions.getter)
        elif name == "decisions.csv":
            content = as_csv(entries)
        else:
            chosen = ("accept", "kb_") if name == "kb_changes.jsonl" else ""
            lines = (srsly.json_dumps(e) for e in entries if e["action"].startswith(chosen))
            content = "".join(f"{line}\n" for line in lines)
        return Response(content, media_type="application/octet-stream")

    def decide(self, request: Request) -> Response:
        """Make a decision, then show the next page."""
        action, form = request.path_params["action"], request.scope["form"]
        filters = Filters.of(dict(parse_qsl(form.get("back", [""])[0])))
        if action not in FORMS:
            raise HTTPException(404, f"There is no decision {action!r}.")
        more: Dict[str, Any] = dict(_read(field, form) for field in FORMS[action].split())
        if action == "learn" and self.links is not None:
            more = self.links.entry_of(self.links.row(_read("n", form)[1]), more["kb_id"])
        elif action in ("kb_add", "kb_update"):
            entity = Entity(**more)
            more = {"entity": {name: getattr(entity, name) for name in more}}
        before = self.review.queue.rows.get(more.get("id", ""))
        entry = self.review.decide(action, self.by, _read("version", form)[1], **more)
        query, following = {**filters.query(), "done": str(entry["n"])}, ""
        if action == "learn" and self.links is not None:
            rows = self.links.select(filters, self.review.standing)
            to = url("/link", query, n=rows[0].number) if rows else url("/links", query)
            return RedirectResponse(to, 303)
        if action in MOVES_ON:
            following = next_id(self.review.select(filters), before, filters.sort)
        to = url("/cluster", query, id=following) if following else self._place(entry, query)
        return RedirectResponse(to, 303)

    def undo(self, request: Request) -> Response:
        """Undo the last decision and show its page."""
        back = Filters.of(dict(parse_qsl(request.scope["form"].get("back", [""])[0]))).query()
        return RedirectResponse(self._place(self.review.undo(self.by), back), 303)

    def _place(self, entry: Dict[str, Any], query: Mapping[str, str]) -> str:
        """The page of what a decision was on."""
        if entry["action"] == "learn":
            return url("/links", query)
        if "changed" in entry:
            known = [one for one in entry["changed"][::-1] if one in self.review.linker.kb]
            return url("/kb/entity" if known else "/kb", query, id="".join(known[:1]))
        stays = entry["id"] if entry.get("id") in self.review.queue.rows else ""
        return url("/cluster" if stays else "/", query, id=stays)

    def save(self, request: Request) -> Response:
        self.review.save()
        return RedirectResponse("/history", 303)


def _read(field: str, form: Mapping[str, List[str]]) -> Any:
    """The name and the value of a field, see ``FORMS``."""
    name, kind = field.rstrip("*,|"), field[-1]
    values = form.get(name, [""])
    if kind == "*":
        return name, [value for value in values if value]
    parts = re.split(r"[,\n]" if kind == "," else r"\n", values[0])
    return name, [p.strip() for p in parts if p.strip()] if kind in ",|" else values[0].strip()


def create_app(
    review: Review, rules: Rules, links: Optional[Links] = None, by: str = "", space: str = ""
) -> Starlette:
    """The application over a review. The parameters are those of ``Pages``, and ``space``:
    what the ids of entities belong to, see ``Reconciliation``.
    """
    pages = Pages(review, rules, links, by)
    shown = {"/": "queue", "/kb/entity": "entity", **{f"/{name}": name for name in PAGES}}
    shown.update({f"/{name}": f"_{name}" for name in PARTS})
    routes: List[BaseRoute] = [Route(p, partial(pages.show, name)) for p, name in shown.items()]
    routes += [
        Route("/export/{name}", pages.download),
        Route("/decide/{action}", pages.decide, methods=["POST"]),
        Route("/undo", pages.undo, methods=["POST"]),
        Route("/save", pages.save, methods=["POST"]),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    failures: Any = dict.fromkeys((HTTPException, ValueError, KeyError, OSError), pages.fail)
    upsert = partial(review.decide, "kb_upsert", "service")
    service = Service(review.nlp, None if review.read_only else lambda new: upsert(entities=new))
    service.warm()
    routes += service.routes()
    app = Starlette(routes=routes, exception_handlers=failures)
    name = review.model.resolve().name
    app.add_middleware(Reconciliation, linker=review.linker, name=name, rules=rules, space=space)
    return guarded(app, service, rules)
