"""Whatever is asked, the server does not fail: requests are made from its own description.

Programs' requests are described by the service itself, those of pages, forms and OpenRefine here.
"""

import json

import pytest
from hypothesis import given, settings

from spacy_arbo_el import load_pipeline, save_pipeline
from spacy_arbo_el.contrib.review.forms import FORMS
from spacy_arbo_el.contrib.review.links import EXPORTS
from spacy_arbo_el.contrib.review.serve.app import PAGES, PARTS

from . import world

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
pytestmark = [pytest.mark.attack, pytest.mark.filterwarnings("ignore")]
HEADERS = {"Authorization": "Bearer secret"}
FIELDS = "id ids others mentions kb_id title description types aliases comment into key version n"
QUERY = (
    "id kb_id q text f n next done undone state sort low high least page sure start near version"
)
RECONCILE = "queries extend callback prefix cursor limit id type"
TEXT = {"type": "string"}


def parameters(names, known):
    """Query parameters that are anything, or what there is."""
    text = {"anyOf": [TEXT, {"enum": known}]}
    return [{"name": name, "in": "query", "schema": text} for name in names.split()]


def form(names, known):
    text = {"anyOf": [TEXT, {"enum": known}, {"type": "array", "items": {"enum": known}}]}
    schema = {"type": "object", "properties": dict.fromkeys(names.split(), text)}
    content = {"application/x-www-form-urlencoded": {"schema": schema}}
    return {"required": True, "content": content}


def described(browser):
    """All that the server answers, as OpenAPI."""
    spec = browser.client.get("/openapi.json", headers=HEADERS).json()
    ids = [*browser.ids.values(), "cat", "ENT-1"]
    answers = {"responses": {"default": {"description": "any"}}}
    pages = ["/", "/kb/entity", *(f"/{name}" for name in (*PAGES, *PARTS))]
    pages += [f"/export/{name}" for name in EXPORTS]
    for path in pages:
        spec["paths"][path] = {"get": {"parameters": parameters(QUERY, ids), **answers}}
    for path in [*(f"/decide/{action}" for action in FORMS), "/undo", "/name"]:
        spec["paths"][path] = {"post": {"requestBody": form(FIELDS, [*ids, "0"]), **answers}}
    address = browser.rules.reconciliation
    for end in ("", "/suggest/entity", "/suggest/type", "/preview", "/properties"):
        asked = parameters(RECONCILE, ["cat", "3", '{"q": {"query": "jaguar"}}'])
        spec["paths"][address + end] = {"get": {"parameters": asked, **answers}}
    return spec


@pytest.fixture(scope="module")
def schema(data, tmp_path_factory):
    """The description of a server with new entities and links, and the server behind it."""
    model = tmp_path_factory.mktemp("fuzzed") / "model"
    save_pipeline(data, model)
    browser = world.Browser(load_pipeline(model), model, texts=True)
    spec = json.dumps(described(browser)).encode()

    async def app(scope, receive, send):
        if scope.get("path") != "/described.json":
            return await browser.app(scope, receive, send)
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": spec})

    return schemathesis.openapi.from_asgi("/described.json", app)


def test_no_request_makes_it_fail(schema):
    answered = 0

    def ask(case):
        nonlocal answered
        answer = case.call(headers=HEADERS)
        assert answer.status_code < 500, (case.as_curl_command(), answer.text)
        answered += 1

    # A share in CI, since there are some 50 operations.
    few = settings(max_examples=8)
    examples = few if settings.default.max_examples < 100 else settings.default
    for operation in schema.get_all_operations():
        examples(given(operation.ok().as_strategy())(ask))()
    print(f"{answered} requests, none failed")
