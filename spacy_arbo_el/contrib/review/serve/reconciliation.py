"""The Reconciliation API 0.2 of the W3C's community group. OpenRefine and others link tables.

The endpoint is ``/reconcile/SECRET``. Clients can't send headers, and so the secret is in the
address; it allows to ask and nothing else.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .... import __version__
from ....base.display import counted
from ....kb.entity import Entity
from ..errors import ReviewMessages
from .cells import DESCRIPTION, FREQUENCY, NAME, TYPE, Query, values_of
from .schema import Json
from .security import RECONCILE, Rules, at_start
from .service import Service

HERE = Path(__file__).parent
# Cells of a batch, suggestions at a time, default types, entities whose ``meta`` is looked at.
BATCH = 100
SUGGESTED = 10
DEFAULT_TYPES = 20
SAMPLE = 1000
PROPERTIES = {
    NAME: "Other names",
    TYPE: "Types",
    DESCRIPTION: "Description",
    FREQUENCY: "Frequency",
}
# The type of all entities, where the knowledge base has no types.
ANY = {"id": "entity", "name": "entity"}
# Pages of other places may read the answers, and show the preview in a frame.
HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; "
    "form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
METHODS = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "*",
}


class AskedProperty(BaseModel):
    """A property that is asked for."""

    id: str


class Extension(BaseModel):
    """A question for properties of entities."""

    ids: list[str]
    properties: list[AskedProperty]


_QUERIES = TypeAdapter(Json)
_EXTENSION = TypeAdapter(Extension)


def address(rules: Rules) -> str:
    """Address to paste into OpenRefine."""
    return rules.origins[0] + rules.reconciliation


class Reconciliation:
    """ASGI middleware that answers requests below the address. All others are passed on.

    name: What clients call the service.
    space: The URI that the ids of the knowledge base belong to, such as
        ``http://www.wikidata.org/entity/``; "" for one of this server.
    """

    def __init__(
        self,
        app: Callable,
        *,
        service: Service,
        name: str,
        rules: Rules,
        space: str = "",
    ) -> None:
        self.app = app
        self.service = service
        self.linker = service.linker
        self.name = name
        self.rules = rules
        self.space = space
        self.path = rules.reconciliation
        self.env = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            trim_blocks=True,
        )
        shown = {
            "suggest/{kind}": self.suggest,
            "preview": self.preview,
            "properties": self.propose,
        }
        endpoints = [
            Route(self.path + end, self.answer, methods=["GET", "POST"])
            for end in ("", "/")
        ]
        routes = [Route(f"{self.path}/{end}", shows) for end, shows in shown.items()]
        static = Mount(f"{self.path}/static", StaticFiles(directory=HERE / "static"))
        failures: Any = {HTTPException: self.fail}
        self.own = Starlette(
            routes=[*endpoints, *routes, static], exception_handlers=failures
        )

    async def __call__(self, scope: Json, receive: Callable, send: Callable) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(RECONCILE):
            return await self.app(scope, receive, send)
        request = Request(scope, receive)
        if self.rules.origin_of(request) is None:
            answer: Any = JSONResponse({"error": "This server has another name."}, 421)
        elif not self.rules.has_secret(scope["path"]):
            text = "Take the address that the command has printed: it has the secret."
            answer = JSONResponse({"error": text}, 401)
        elif request.method == "OPTIONS":
            answer = Response(status_code=204, headers=METHODS)
        else:
            answer = self.own
        add_headers = at_start(
            send, lambda start: MutableHeaders(scope=start).update(HEADERS)
        )
        await answer(scope, receive, add_headers)

    # Answers

    def fail(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return JSONResponse({"error": error.detail}, error.status_code)

    async def answer(self, request: Request) -> Response:
        """Answer the endpoint: candidates, properties or the manifest."""
        fields: Mapping[str, str] = request.query_params
        if request.method == "POST":
            fields = {
                name: values[0] for name, values in request.scope["form"].items()
            }
        for name, reply in (("queries", self.reconcile), ("extend", self.extend)):
            if name in fields:
                return JSONResponse(await run_in_threadpool(reply, fields[name]))
        if request.method == "POST":
            raise refused("queries", "It is missing")
        return JSONResponse(await run_in_threadpool(self.manifest, request))

    def reconcile(self, text: str) -> Json:
        """The candidates of a batch of cells. One that can't be linked has none.

        One that is no cell has none either, unless no other one is right: its error says why.
        """
        queries = read(_QUERIES, "queries", text)
        if len(queries) > BATCH:
            raise refused("queries", f"There are more than {BATCH}", 413)
        cells: dict[str, Query | None] = {}
        wrong: list[HTTPException] = []
        for name, value in queries.items():
            try:
                cells[name] = _cell(name, value)
            except HTTPException as error:
                wrong.append(error)
        if wrong and not cells:
            raise wrong[0]
        linkable = {name: cell for name, cell in cells.items() if cell is not None}
        try:
            answers = self.service.cells(list(linkable.values()))
        except TimeoutError:
            problem = "They were not linked in time; ask for less at once, or later"
            raise refused("queries", problem, 503) from None
        candidates_of = dict(zip(linkable, answers))
        return {name: {"result": candidates_of.get(name, [])} for name in queries}

    def extend(self, text: str) -> Json:
        """Values of properties of entities."""
        extension = read(_EXTENSION, "extend", text)
        kb = self.linker.kb
        names = self.properties()
        ids = [item.id for item in extension.properties]
        entities = {
            entity_id: kb.get(entity_id) if entity_id in kb else None
            for entity_id in extension.ids
        }
        rows = {
            entity_id: {
                pid: [_value(v) for v in values_of(entity, pid)] if entity else []
                for pid in ids
            }
            for entity_id, entity in entities.items()
        }
        return {
            "meta": [{"id": pid, "name": names.get(pid, pid)} for pid in ids],
            "rows": rows,
        }

    def manifest(self, request: Request) -> Json:
        """Describe the service's offers and addresses."""
        origin = str(self.rules.origin_of(request))
        service_address = {"service_url": origin + self.path}
        kinds = ("entity", "type", "property")
        shown = f"{origin}{self.path}/preview?id={{{{id}}}}"
        types = [{"id": name, "name": name} for name in self.types()]
        return {
            "versions": ["0.2"],
            "name": self.name,
            "identifierSpace": self.space or f"{origin}/kb/entity?id=",
            "schemaSpace": "https://schema.org/Thing",
            "serviceVersion": __version__,
            "defaultTypes": types[:DEFAULT_TYPES] or [ANY],
            "view": {"url": shown},
            "preview": {"url": shown, "width": 400, "height": 180},
            "suggest": {
                kind: {**service_address, "service_path": f"/suggest/{kind}"}
                for kind in kinds
            },
            "extend": {
                "propose_properties": {
                    **service_address,
                    "service_path": "/properties",
                }
            },
            "batchSize": BATCH // 2,
        }

    def suggest(self, request: Request) -> Response:
        """Suggest values that begin with, or resemble, a prefix."""
        prefix = request.query_params.get("prefix", "").strip()
        skipped = request.query_params.get("cursor", "0")
        if not skipped.isdecimal() or len(skipped) > 4:
            raise refused("cursor", "It is no number")
        start = int(skipped)
        kind = request.path_params["kind"]
        suggestions = self._suggestions(kind, prefix, start + SUGGESTED)
        return JSONResponse({"result": suggestions[start : start + SUGGESTED]})

    def _suggestions(self, kind: str, prefix: str, count: int) -> list[Json]:
        if kind == "entity":
            return [
                {
                    "id": e.id,
                    "name": e.title,
                    "description": e.description,
                    "notable": list(e.types),
                }
                for e in self._entities(prefix, count)
            ]
        return [
            {"id": value_id, "name": name, "description": description}
            for value_id, (name, description) in self._listed(kind).items()
            if any(
                text.casefold().startswith(prefix.casefold())
                for text in (value_id, name)
            )
        ]

    def _entities(self, prefix: str, count: int) -> list[Entity]:
        """Entities of this id, name prefix or similar name. They come in this order."""
        kb = self.linker.kb
        if not prefix:
            return list(islice(kb, count))
        positions = kb.entities.with_prefix(prefix, count)
        begin = kb.entities.at_all(positions)
        same_id = [kb.get(prefix)] if prefix in kb else []
        matching = (*same_id, *map(begin.__getitem__, positions))
        entities = {e.id: e for e in (*matching, *kb.search(prefix, count))}
        return list(entities.values())

    def preview(self, request: Request) -> Response:
        """A page about an entity, for a frame."""
        name = request.query_params.get("id", "")
        if name not in self.linker.kb:
            raise refused("id", f"There is no {name!r}", 404)
        template = self.env.get_template("preview.html")
        return HTMLResponse(
            template.render(path=self.path, entity=self.linker.kb.get(name))
        )

    def propose(self, request: Request) -> Response:
        """The properties that can be asked for, whatever the type."""
        limit = request.query_params.get("limit", "")
        properties = [
            {"id": name, "name": label} for name, label in self.properties().items()
        ]
        properties = properties[
            : int(limit) if limit.isdecimal() and len(limit) < 9 else None
        ]
        of_type = request.query_params.get("type", "")
        return JSONResponse({"type": of_type, "properties": properties})

    # What the knowledge base has

    def _listed(self, kind: str) -> dict[str, tuple[str, str]]:
        if kind == "type":
            counts = {
                name: counted(n, "entity", "entities")
                for name, n in self.types().items()
            }
            return {name: (name, count_text) for name, count_text in counts.items()}
        if kind != "property":
            raise refused("kind", f"It is {kind!r}", 404)
        return {name: (label, "") for name, label in self.properties().items()}

    def types(self) -> dict[str, int]:
        """Types with numbers of entities, the most frequent first."""
        counts = self.linker.kb.entities.type_counts()
        return {name: count for name, count in counts.items() if name}

    def properties(self) -> dict[str, str]:
        """The properties of entities with their names. Also what ``meta`` of some of them has."""

        def build() -> dict[str, str]:
            sampled = islice(self.linker.kb, SAMPLE)
            keys = {
                key: key
                for entity in sampled
                for key in entity.meta
                if values_of(entity, key)
            }
            return {**PROPERTIES, **dict(sorted(keys.items()))}

        return self.linker.datastore.derived("reconciliation_properties", build)


def _value(value: Any) -> Json:
    """A value as a cell: a text, or a number."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not abs(value) < 2**53
    ):
        return {"str": str(value)}
    return {"int": value} if isinstance(value, int) else {"float": value}


def read(adapter: TypeAdapter, name: str, text: str) -> Any:
    """Validate a request's field; raise 400 if it is wrong."""
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        raise _wrong(name, error) from None


def _cell(name: str, value: Any) -> Query | None:
    """A cell. None where its texts can't be linked: others are linked all the same."""
    try:
        return Query.model_validate(value)
    except ValidationError as error:
        if all(problem["type"] == "value_error" for problem in error.errors()):
            return None
        raise _wrong(f"queries.{name}", error) from None


def _wrong(name: str, error: ValidationError) -> HTTPException:
    first = error.errors()[0]
    where = ".".join(map(str, (name, *first["loc"])))
    return refused(where, first["msg"].removeprefix("Value error, "))


def refused(where: str, problem: str, status: int = 400) -> HTTPException:
    """The answer to a wrong request: where it is wrong, and how."""
    return HTTPException(
        status, ReviewMessages.E930.format(where=where, problem=problem)
    )
