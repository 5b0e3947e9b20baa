"""The HTTP service for programs, and its answers."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from fastapi import APIRouter, FastAPI, Security
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import filter_spans
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from .... import __version__
from ....base.errors import code_of
from ....base.log import log
from ....encoders.protocol import Text
from ....kb.entity import NIL, Entity
from ....kb.texts import keys_of
from ....kb.vectors import NAMES
from ....linker import ArboLinker, find_linker
from ....mentions.annotations import Link, annotate, links_of
from ....mentions.getters import GroupSpans, find_mentions, place_of, set_mentions
from ....retrieval.entity_texts import encode_texts, vector_cache
from ....retrieval.snapshot import Revision
from . import schema
from .batching import SharedCall
from .cells import candidates
from .metrics import MEDIA_TYPE, Counts, Metrics
from .schema import Json
from .security import Gate, Rules, Windows, refusal

# Changes a knowledge base, as ``Review.decide`` does: "kb_upsert" with entities, "kb_remove" with
# ids, or "kb_merge" with id and into.
Edit = Callable[..., Any]
# The group of mentions that overlap, which doc.ents can't hold.
GIVEN = GroupSpans("arbo_given")
# A document, and how many candidates of each mention are wanted.
_Item = tuple[schema.Document, int]


class Service:
    """Answers programs. Threads may call all methods.

    edit: What changes entities; None where that is not allowed.
    patience: Seconds that a request may wait for its links.
    alone: Held by whoever makes or reads documents, where nobody else uses the pipeline. Words of
        requests are forgotten then (``nlp.memory_zone``), so that memory stays level.
    """

    def __init__(
        self,
        nlp: Language,
        edit: Edit | None,
        patience: float,
        alone: AbstractContextManager | None = None,
    ) -> None:
        self.nlp = nlp
        self.edit = edit
        self.linker = find_linker(nlp)
        self.alone = alone
        self.counts = Counts()
        # One thread encodes, for all that are asked: torch starts more for each that calls it.
        thread = ThreadPoolExecutor(1, "batches")
        self.documents: SharedCall[list[Json]] = SharedCall(
            self._zoned(self._linked),
            thread,
            weigh=_weight,
            patience=patience,
            state=self._revision,
        )
        linked = self._zoned(partial(candidates, self.linker))
        self.cells: SharedCall[list[Json]] = SharedCall(
            linked, thread, patience=patience, state=self._revision
        )
        self.texts: SharedCall[Any] = SharedCall(self._encoded, thread)

    def link(self, body: schema.LinkRequest) -> Json:
        """The links of documents, in order."""
        answers = self.documents(
            [(document, body.candidates) for document in body.documents]
        )
        kb_ids = [mention["kb_id"] for answer in answers for mention in answer]
        self.counts.add_mentions(len(kb_ids) - kb_ids.count(NIL), kb_ids.count(NIL))
        return {"documents": [{"mentions": answer} for answer in answers]}

    def entities(self, body: schema.EntityRequest) -> Json:
        """Add entities while others link. All or none are added."""
        edit = self._allowed()
        entities = [entity.model_dump(exclude_unset=True) for entity in body.entities]
        # The old state answers until they are encoded, and the next link has not to wait.
        self.encode_ahead(Entity(**values) for values in entities)
        edit("kb_upsert", entities=entities)
        return self._state()

    def encode_ahead(self, entities: Iterable[Entity]) -> None:
        """Encode the texts of entities for the refresh after they were added."""
        datastore = self.linker.datastore
        texts = dict.fromkeys(
            t for entity in entities for t in datastore.settings.verbalization(entity)
        )
        new = dict(zip(keys_of(texts), texts))
        keys = np.array(list(new), dtype=np.int64)
        cache = vector_cache(datastore.kb, datastore.encoder, NAMES, keys)
        missing = keys[~cache.has(keys)]
        if len(missing):
            cache.put(
                missing, np.stack(self.texts([new[key] for key in missing.tolist()]))
            )

    def remove(self, body: schema.RemovalRequest) -> Json:
        """Remove entities. All or none are removed."""
        self._allowed()("kb_remove", ids=body.ids)
        return self._state()

    def merge(self, body: schema.MergeRequest) -> Json:
        """Merge an entity into another."""
        edit = self._allowed()
        if body.id == body.into:
            raise HTTPException(422, "id and into are the same.")
        edit("kb_merge", id=body.id, into=body.into)
        return self._state()

    def _allowed(self) -> Edit:
        if self.edit is None:
            raise HTTPException(403, "This server is read-only.")
        return self.edit

    def _state(self) -> Json:
        return {"entities": len(self.linker.kb)}

    def _revision(self) -> Revision:
        """The state that links depend on."""
        return self.linker.datastore.revision

    def warm(self) -> None:
        """Load and compile what the first link needs."""
        doc = Doc(self.nlp.vocab, ["Hello"])
        set_mentions(doc, [Span(doc, 0, 1, "MENTION")], self.linker.mentions.getter)
        self.linker.refresh()
        self.linker.predict([doc])

    def _zoned(
        self, function: Callable[[list[Any]], Any]
    ) -> Callable[[list[Any]], Any]:
        """The function, which sees one state, and within which new words are not kept."""

        def run(items: list[Any]) -> Any:
            zone = nullcontext() if self.alone is None else self.nlp.memory_zone()
            with self.alone or nullcontext(), zone, self.linker.datastore.snapshot():
                return function(items)

        return run

    def _linked(self, items: Sequence[_Item]) -> list[list[Json]]:
        """The mentions of documents. Where some are given, only linkers see the document."""
        docs = [self._doc(document) for document, _ in items]
        are_given = [document.mentions is not None for document, _ in items]
        piped = self.nlp.pipe(
            doc for doc, is_given in zip(docs, are_given) if not is_given
        )
        self._link_given([doc for doc, is_given in zip(docs, are_given) if is_given])
        linked = [
            doc if is_given else next(piped) for doc, is_given in zip(docs, are_given)
        ]
        return [
            [
                _mention(span, link, count, document.tokens is not None)
                for span, link in self._links(doc, document)
            ]
            for (document, count), doc in zip(items, linked)
        ]

    def _link_given(self, docs: Sequence[Doc]) -> None:
        """Link given mentions. Those that overlap are in a group of spans."""
        overlapping = [doc for doc in docs if GIVEN.spans_key in doc.spans]
        piped: Iterable[Doc] = [
            doc for doc in docs if GIVEN.spans_key not in doc.spans
        ]
        for _, pipe in self.nlp.pipeline:
            if isinstance(pipe, ArboLinker):
                piped = list(pipe.pipe(piped))
                if overlapping:
                    _link_overlapping(pipe, overlapping)

    def _encoded(self, texts: list[Text]) -> list[np.ndarray]:
        return list(encode_texts(self.linker.encoder, texts))

    def _doc(self, document: schema.Document) -> Doc:
        if document.tokens is None:
            doc = self.nlp.make_doc(document.text or "")
        else:
            doc = Doc(self.nlp.vocab, document.tokens)
        if document.mentions is not None:
            spans = list(
                {place_of(span): span for span in _spans(doc, document)}.values()
            )
            getter = self.linker.mentions.getter
            is_apart = getter.spans_key is not None or len(filter_spans(spans)) == len(
                spans
            )
            set_mentions(doc, spans, getter if is_apart else GIVEN)
        return doc

    def _links(self, doc: Doc, document: schema.Document) -> list[tuple[Span, Link]]:
        """The mentions with their links: all that were given, as they were, or those found."""
        is_apart = GIVEN.spans_key not in doc.spans
        spans = find_mentions(doc, self.linker.mentions.getter if is_apart else GIVEN)
        if document.mentions is not None:
            linked = {place_of(span): span for span in spans}
            spans = [
                linked.get(place_of(span), span) for span in _spans(doc, document)
            ]
        links = links_of(doc, spans, self.linker.cfg["extension"])
        return [(span, link or Link(NIL, 0.0)) for span, link in zip(spans, links)]

    def health(self) -> Response:
        """Answer while the process runs."""
        return PlainTextResponse("ok\n")

    def ready(self) -> Response:
        """Answer where documents can be linked."""
        try:
            return PlainTextResponse(f"{len(self.linker.kb)} entities\n")
        except (ValueError, OSError) as error:
            return PlainTextResponse(f"{error}\n", 503)

    def metrics(self) -> Response:
        """The counts of requests and mentions."""
        return PlainTextResponse(
            self.counts.text(len(self.linker.kb)), media_type=MEDIA_TYPE
        )

    def router(self) -> APIRouter:
        """The routes of all operations, whose paths are counted."""
        problems: Any = {
            "default": {"model": schema.ErrorBody, "description": "The error"}
        }
        router = APIRouter(route_class=_Operation, responses=problems)
        token: Any = {"dependencies": [Security(HTTPBearer(auto_error=False))]}
        for path, function, answer, summary in (
            ("/link", self.link, schema.LinkAnswer, "Link mentions"),
            ("/entities", self.entities, schema.State, "Add or replace entities"),
            ("/entities/remove", self.remove, schema.State, "Remove entities"),
            ("/entities/merge", self.merge, schema.State, "Merge two entities"),
        ):
            route: Any = {"response_model": answer, "summary": summary, **token}
            router.add_api_route(path, function, methods=["POST"], **route)
        for path, read, summary, security in (
            ("/health", self.health, "Answers while the process runs", {}),
            ("/ready", self.ready, "Answers where documents can be linked", {}),
            (
                "/metrics",
                self.metrics,
                "Counts in the text format of Prometheus",
                token,
            ),
        ):
            route = {
                "response_class": PlainTextResponse,
                "summary": summary,
                **security,
            }
            router.add_api_route(path, read, methods=["GET"], **route)
            router.add_api_route(path, read, methods=["HEAD"], include_in_schema=False)
        return router

    def app(self, **settings: Any) -> FastAPI:
        """An application with all operations and their description in OpenAPI."""
        app = FastAPI(
            title="spacy_arbo_el",
            version=__version__,
            docs_url=None,
            redoc_url=None,
            **settings,
        )
        router = self.router()
        paths = (route.path for route in router.routes if isinstance(route, APIRoute))
        self.counts.paths = frozenset(paths)
        app.include_router(router)
        app.state.service = self
        return app


class _Operation(APIRoute):
    """A route whose errors are answered as JSON, each with one message."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            # Whatever it is called, a body is JSON: curl calls all bodies forms.
            MutableHeaders(scope=request.scope)["content-type"] = "application/json"
            try:
                return await handler(request)
            except RequestValidationError as error:
                status = 422
                text = schema.first_problem(error)
            except HTTPException as error:
                status = error.status_code
                text = error.detail
            except TimeoutError:
                status = 503
                text = "It was not linked in time. Ask for less at once, or later."
            except OSError as error:
                status = 507
                text = f"Nothing has changed: {error}."
            except Exception as error:
                status = 422
                text = str(error)
                if not code_of(error):
                    log.exception("%s has failed", request.url.path)
                    status = 500
                    text = "The service has failed. Its log says why."
            return JSONResponse({"error": text}, status)

        return answered


def guarded(app: FastAPI, service: Service, rules: Rules, windows: Windows) -> FastAPI:
    """The application behind the gate, with all answers counted."""
    app.add_middleware(Gate, rules=rules, windows=windows)
    app.add_middleware(Metrics, counts=service.counts)
    return app


def create_service(nlp: Language, rules: Rules, *, read_only: bool = False) -> FastAPI:
    """The service without pages, to be mounted in another application.

    Entities that are added stay in memory until the pipeline is saved.
    """
    kb = find_linker(nlp).kb

    def edit(action: str, **values: Any) -> None:
        getattr(kb, action.removeprefix("kb_"))(*values.values())

    service = Service(nlp, None if read_only else edit, rules.patience)
    service.warm()
    failures: Any = {HTTPException: fail}
    return guarded(service.app(exception_handlers=failures), service, rules, Windows())


def fail(request: Request, error: Exception) -> Response:
    """The answer to a request that no route takes."""
    assert isinstance(error, HTTPException)
    return refusal(request, error.status_code, error.detail, dict(error.headers or {}))


def _weight(item: _Item) -> int:
    """Work of a document, as a number of mentions."""
    document, _ = item
    if document.mentions is not None:
        return 1 + len(document.mentions)
    return 1 + len(document.text or document.tokens or ()) // (
        100 if document.text else 20
    )


def _link_overlapping(linker: ArboLinker, docs: Sequence[Doc]) -> None:
    """Link the mentions in the group of those that overlap."""
    settings = replace(linker.stages.reader.settings, getter=GIVEN)
    stages = replace(
        linker.stages, reader=replace(linker.stages.reader, settings=settings)
    )
    for doc, links in zip(docs, linker.predict(docs, stages)):
        annotate(doc, links, GIVEN, linker.cfg["extension"], linker.cfg["overwrite"])


def _spans(doc: Doc, document: schema.Document) -> list[Span]:
    places = [(m.start, m.end, m.label) for m in document.mentions or ()]
    if document.tokens is not None:
        return [Span(doc, *place) for place in places]
    # A mention that ends within a token is widened to the whole token.
    spans = [doc.char_span(*place, alignment_mode="expand") for place in places]
    # There is one wherever start and end are within the text.
    return cast(list[Span], spans)


def _mention(span: Span, link: Link, n_candidates: int, in_tokens: bool) -> Json:
    start, end = (
        (span.start, span.end) if in_tokens else (span.start_char, span.end_char)
    )
    return {
        "start": start,
        "end": end,
        "text": span.text,
        "label": span.label_,
        "kb_id": link.kb_id,
        "title": link.title,
        "score": link.score,
        "presence": link.presence,
        "undecided": [candidate.kb_id for candidate in link.undecided],
        "new_entity": link.cluster,
        "candidates": link.to_dict()["candidates"][:n_candidates],
    }
