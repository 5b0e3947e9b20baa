"""Link documents over HTTP.

    pip install ".[serve]" fastapi
    ARBO_TOKEN=secret python examples/serve.py training/demo/model-best --port 8000

    POST /link      {"documents": [{"text": "…", "mentions": [{"start": 0, "end": 4}]}]}
    POST /entities  {"entities": [{"id": "E900", "title": "…"}]}   only with the token
    GET  /health

The pipeline finds the mentions of a document that gives none. The documents of a request are
linked in batches. Requests are linked in several threads. Each batch sees one state of the
knowledge base: that before an edit or that after it. Edits stay in memory; to keep them, save the
pipeline with ``spacy_arbo_el.save_pipeline``.
"""

import hmac
import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional

from fastapi import FastAPI, Header, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import filter_spans
from starlette.exceptions import HTTPException as StarletteHTTPException
from typing_extensions import Annotated

import spacy_arbo_el
from spacy_arbo_el.mentions.getters import find_mentions, set_mentions


@dataclass(frozen=True)
class Limits:
    """What one request may ask for.

    body: Bytes.
    documents: Documents of a request.
    length: Characters of a document.
    mentions: Mentions of a document.
    requests: Requests that are answered at a time. Others are told to come back.
    """

    body: int = 2_000_000
    documents: int = 64
    length: int = 50_000
    mentions: int = 1_000
    requests: int = 32


def _readable(text: str) -> str:
    if not text.isascii():
        try:
            text.encode("utf8")
        except UnicodeEncodeError:
            raise ValueError("it has half a character (a lone surrogate)") from None
    return text


Text = Annotated[StrictStr, AfterValidator(_readable)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Mention(_Body):
    start: StrictInt
    end: StrictInt
    # spaCy drops entities without a label.
    label: Text = Field("MENTION", min_length=1)


class Document(_Body):
    text: Text
    mentions: Optional[List[Mention]] = None


class LinkRequest(_Body):
    documents: List[Document]


class EntityRequest(_Body):
    entities: List[Dict[str, Any]]


class BodyLimit:
    """ASGI middleware: bodies of more than so many bytes are refused while they arrive."""

    def __init__(self, app: Callable, limit: int):
        self.app, self.limit = app, limit

    async def __call__(self, scope: Dict[str, Any], receive: Callable, send: Callable) -> None:
        received = 0

        async def counted() -> Dict[str, Any]:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.limit:
                raise HTTPException(413, f"The body has more than {self.limit} bytes.")
            return message

        await self.app(scope, counted if scope["type"] == "http" else receive, send)


def check(documents: List[Document], limits: Limits) -> None:
    """HTTPException for the first document that can't be linked."""
    if len(documents) > limits.documents:
        raise HTTPException(413, f"documents: at most {limits.documents}, not {len(documents)}.")
    for number, document in enumerate(documents):
        where, length = f"documents[{number}]", len(document.text)
        if length > limits.length:
            raise HTTPException(413, f"{where}.text: at most {limits.length} characters.")
        mentions = document.mentions or []
        if len(mentions) > limits.mentions:
            raise HTTPException(413, f"{where}.mentions: at most {limits.mentions}.")
        for i, mention in enumerate(mentions):
            if not 0 <= mention.start < mention.end <= length:
                problem = f"{mention.start} to {mention.end} is not within 0 to {length}."
                raise HTTPException(422, f"{where}.mentions[{i}]: {problem}")


@dataclass(frozen=True)
class Service:
    """Links the documents of requests.

    nlp: A pipeline with a linker.
    n_candidates: How many candidates of a mention are returned.
    """

    nlp: Language
    n_candidates: int = 5

    @property
    def linker(self) -> "spacy_arbo_el.ArboLinker":
        return spacy_arbo_el.find_linker(self.nlp)

    def link(self, documents: List[Document]) -> List[Dict[str, Any]]:
        """The links of each document, in order."""
        found = self.nlp.pipe(d.text for d in documents if d.mentions is None)
        given = self.linker.pipe(self._doc(d) for d in documents if d.mentions is not None)
        return [self._answer(next(found if d.mentions is None else given)) for d in documents]

    def _doc(self, document: Document) -> Doc:
        doc = self.nlp.make_doc(document.text)
        spans = [
            # A mention that ends within a token is widened to the whole token.
            doc.char_span(m.start, m.end, label=m.label, alignment_mode="expand")
            for m in document.mentions or []
        ]
        # Of mentions that overlap, the longest stays.
        set_mentions(doc, filter_spans(spans), self.linker.mentions.getter)
        return doc

    def _answer(self, doc: Doc) -> Dict[str, Any]:
        mentions = find_mentions(doc, self.linker.mentions.getter)
        return {"mentions": [self._mention(span) for span in mentions]}

    def _mention(self, span: Any) -> Dict[str, Any]:
        link = span._.get(self.linker.cfg["extension"])
        return {
            "start": span.start_char,
            "end": span.end_char,
            "text": span.text,
            "label": span.label_,
            "kb_id": link.kb_id,
            "score": link.score,
            "candidates": [c._asdict() for c in link.candidates[: self.n_candidates]],
        }


def create_app(nlp: Language, limits: Limits = Limits(), token: str = "") -> FastAPI:
    """The service over a pipeline.

    nlp: A pipeline with a linker.
    limits: What one request may ask for.
    token: The secret of those who may edit the knowledge base. Without one nobody may.
    """
    service = Service(nlp)
    # The first call loads the encoder and compiles the graph: before the first request.
    service.link([Document(text="Hello", mentions=[Mention(start=0, end=5)])])
    slots = threading.BoundedSemaphore(limits.requests)
    app = FastAPI(title="spacy_arbo_el", version=spacy_arbo_el.__version__)
    app.add_middleware(BodyLimit, limit=limits.body)

    @contextmanager
    def slot() -> Iterator[None]:
        if not slots.acquire(blocking=False):
            raise HTTPException(503, "Too many requests. Try again in a second.")
        try:
            yield
        finally:
            slots.release()

    @app.exception_handler(RequestValidationError)
    async def explain(request: Request, error: RequestValidationError) -> JSONResponse:
        """The first problem only, with its place."""
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return JSONResponse({"error": f"The body is no JSON: {first['ctx']['error']}."}, 422)
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"][1:]]
        place = "".join(steps).lstrip(".") or "The body"
        return JSONResponse({"error": f"{place}: {first['msg']}."}, 422)

    @app.exception_handler(StarletteHTTPException)
    async def refuse(request: Request, error: StarletteHTTPException) -> JSONResponse:
        headers = {"Retry-After": "1"} if error.status_code == 503 else None
        return JSONResponse({"error": error.detail}, error.status_code, headers)

    @app.exception_handler(Exception)
    async def fail(request: Request, error: Exception) -> JSONResponse:
        # The server writes the error to its log.
        return JSONResponse({"error": "The service has failed. Its log says why."}, 500)

    # Functions that are not `async` run in threads, several at a time.
    @app.get("/health")
    def health() -> Dict[str, Any]:
        return {"status": "ok", "entities": len(service.linker.kb)}

    @app.post("/link")
    def link(body: LinkRequest) -> Dict[str, Any]:
        check(body.documents, limits)
        with slot():
            return {"documents": service.link(body.documents)}

    @app.post("/entities")
    def add(body: EntityRequest, authorization: str = Header("")) -> Dict[str, Any]:
        expected = f"Bearer {token}".encode()
        if not token or not hmac.compare_digest(authorization.encode(), expected):
            raise HTTPException(403, "Give the token of the service: Authorization: Bearer …")
        try:
            service.linker.kb.upsert(body.entities)
        except ValueError as error:
            raise HTTPException(422, str(error)) from None
        return {"entities": len(service.linker.kb)}

    return app


if __name__ == "__main__":
    import argparse

    import uvicorn

    parser = argparse.ArgumentParser(description="Link documents over HTTP.")
    parser.add_argument("model", help="Folder of a pipeline, or the name of an installed one")
    parser.add_argument("--host", default="127.0.0.1", help="Address to listen on")
    parser.add_argument("--port", type=int, default=8000)
    args = parser.parse_args()
    pipeline = spacy_arbo_el.load_pipeline(args.model)
    app = create_app(pipeline, token=os.environ.get("ARBO_TOKEN", ""))
    uvicorn.run(app, host=args.host, port=args.port)
