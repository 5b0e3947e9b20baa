"""The service: links, entities, counts, and one clear answer to whatever else is asked."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from spacy_arbo_el import find_linker
from spacy_arbo_el.contrib.review.serve import batching, schema, security
from spacy_arbo_el.contrib.review.serve.batching import SharedCall
from spacy_arbo_el.contrib.review.serve.security import Rules
from spacy_arbo_el.contrib.review.serve.service import create_service

from ....cases import cases
from ....linker.conftest import build
from ....threads import PATIENCE, wait_for, wait_until
from .world import free_port, running

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
TOKEN = {"Authorization": "Bearer secret"}
PROBE = {
    "text": "A spacecraft circles Mercury, the planet next to the sun.",
    "mentions": [{"start": 21, "end": 28}],
}
FISH = {
    "tokens": ["Fish", "with", "too", "much", "mercury", "make", "people", "ill", "."],
    "mentions": [{"start": 4, "end": 5, "label": "MATTER"}],
}


@pytest.fixture(scope="module")
def nlp():
    """A pipeline that finds Mercury by itself."""
    nlp = build()
    nlp.add_pipe("entity_ruler", first=True).add_patterns([{"label": "X", "pattern": "Mercury"}])
    return nlp


@pytest.fixture(scope="module")
def app(nlp):
    return create_service(nlp, Rules(token="secret", body=20_000, requests=8, seconds=PATIENCE))


def client_of(nlp, **rules):
    """A client of a service of its own, by programs."""
    return TestClient(create_service(nlp, Rules(token="secret", **rules)), headers=TOKEN)


@pytest.fixture
def client(app):
    return TestClient(app, headers=TOKEN)


@pytest.fixture
def server(app):
    """The service at a port, by Uvicorn, and its address."""
    port = free_port()
    with running(app, port) as server:
        server.port = port
        yield server


def link(client, *documents, **more):
    answer = client.post("/link", json={"documents": list(documents), **more})
    assert answer.status_code == 200, answer.text
    return [document["mentions"] for document in answer.json()["documents"]]


def test_it_links_what_is_given_and_what_the_pipeline_finds(client, nlp):
    texts = {"text": PROBE["text"]}, {"text": "Nothing is found here."}, {"text": ""}
    (planet,), (by_ruler,), nothing, empty, (metal,) = link(client, PROBE, *texts, FISH)
    ent = nlp(PROBE["text"]).ents[0]
    assert (planet["kb_id"], by_ruler["kb_id"], nothing, empty) == ("planet", ent.kb_id_, [], [])
    assert by_ruler["score"] == ent._.arbo.score
    assert by_ruler["label"] == "X"
    assert (planet["text"], planet["label"], planet["title"]) == ("Mercury", "MENTION", "Mercury")
    assert (metal["start"], metal["end"], metal["label"]) == (4, 5, "MATTER")
    assert metal["kb_id"] == "metal"
    part = {**PROBE, "mentions": [{"start": 23, "end": 25}]}
    assert link(client, part)[0] == [planet]
    assert metal["candidates"][0]["kb_id"] == "metal"
    assert link(client, PROBE, candidates=1)[0][0]["candidates"] == planet["candidates"][:1]


def test_mentions_that_overlap_are_linked(client):
    longer = {"start": 13, "end": 28}
    mentions = [*PROBE["mentions"], longer, *PROBE["mentions"], {"start": 12, "end": 13}]
    (answers,) = link(client, {**PROBE, "mentions": mentions})
    assert [answer["text"] for answer in answers] == ["Mercury", "circles Mercury", "Mercury", ""]
    assert [answers[number]["kb_id"] for number in (0, 2, 3)] == ["planet", "planet", "NIL"]


def test_the_texts_of_a_request_are_linked_in_one_batch(client, nlp, monkeypatch):
    sizes, linker = [], find_linker(nlp)
    predict = linker.predict

    def counted(docs):
        docs = list(docs)
        sizes.append(len(docs))
        return predict(docs)

    monkeypatch.setattr(linker, "predict", counted)
    answers = link(client, *({"text": f"{PROBE['text']} {i}"} for i in range(64)))
    assert len(answers) == 64
    assert all(answers)
    assert sizes == [64]


@pytest.mark.parametrize("body, message", [*cases("wrong_bodies"), ("[" * 4000, "")])
def test_a_wrong_body_has_one_message_with_its_place(client, body, message):
    answer = client.post("/link", content=body)
    assert answer.status_code in (400, 422)
    assert list(answer.json()) == ["error"]
    assert message in answer.json()["error"]


def test_programs_give_the_token_as_a_header(app):
    body = json.dumps({"documents": [PROBE]})
    for headers, status in (
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "secret"}, 401),
        ({"Authorization": "Bearer sécret".encode()}, 401),
        ({"Host": "evil.example"}, 421),
        ({**TOKEN, "Host": "linker.default.svc"}, 200),
    ):
        client = TestClient(app, base_url="http://127.0.0.1:8765", headers=headers)
        as_curl = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = client.post("/link", content=body, headers=as_curl)
        assert answer.status_code == status, headers
        assert ("error" in answer.json()) == (status != 200)
        assert client.get("/metrics").status_code == status
        assert client.get("/health").text == "ok\n"
        assert client.get("/ready").text == "8 entities\n"
    assert client.put("/link", content=body).status_code == 405


def test_a_session_of_a_browser_may_look_but_posts_forms_only(app):
    client = TestClient(app, base_url="http://127.0.0.1:8765")
    answer = client.get("/metrics?token=secret")
    assert answer.status_code == 200
    answer = client.post(answer.url.path.replace("metrics", "link"), json={"documents": [PROBE]})
    assert answer.status_code == 403
    assert "another page" in answer.json()["error"]


def test_entities_are_added_while_it_links():
    nlp = build()
    client = client_of(nlp)
    city = {"text": "Kathmandu has an airport.", "mentions": [{"start": 0, "end": 9}]}
    body = {"entities": [{"id": "E900", "title": "Kathmandu"}]}
    with ThreadPoolExecutor(4) as pool:
        before = [pool.submit(link, client, PROBE, city) for _ in range(8)]
        added = client.post("/entities", json=body)
        after = [pool.submit(link, client, PROBE, city) for _ in range(8)]
        links = [[mention["kb_id"] for (mention,) in ask.result()] for ask in before + after]
    assert added.json() == {"entities": 9}
    assert {planet for planet, _ in links} == {"planet"}
    assert {name for _, name in links[8:]} == {"E900"}
    assert client.post("/entities", json={"entities": []}).status_code == 422
    for entity, message in (
        ({"title": "x"}, "entities[0].id: "),
        ({"id": "a|b"}, "arbo-E012"),
        ({"id": "x", "meta": {"x": 2**70}}, "entities[0].meta: a number is too large"),
        ({"id": "x", "frequency": False}, "entities[0].frequency: "),
    ):
        answer = client.post("/entities", json={"entities": [entity]})
        assert answer.status_code == 422
        assert message in answer.json()["error"]
    closed = create_service(nlp, Rules(token="secret"), read_only=True)
    answer = TestClient(closed, headers=TOKEN).post("/entities", json=body)
    assert answer.status_code == 403
    assert "read-only" in answer.json()["error"]


def test_it_says_that_it_has_failed_and_keeps_details_in_its_log(monkeypatch, caplog):
    nlp = build()
    client = client_of(nlp)

    def fail(*_):
        raise ValueError("secret details")

    monkeypatch.setattr(find_linker(nlp), "pipe", fail)
    answer = client.post("/link", json={"documents": [PROBE]})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "secret details" in caplog.text


def test_calls_during_a_call_share_the_next_one_and_only_the_wrong_one_fails():
    sizes, entered = [], threading.Event()

    def invert(items):
        sizes.append(len(items))
        entered.set()
        if len(sizes) == 1:
            wait_until(lambda: len(batcher._waiting) == 3, "the other three calls")
        return [1 / item for item in items]

    batcher = SharedCall(invert)

    def call(items):
        try:
            return batcher(items)
        except ZeroDivisionError:
            return "failed"

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(call, [8])
        wait_for(entered, "the first call")
        answers = list(pool.map(call, ([2], [0, 1], [4, 5])))
    assert first.result() == [0.125]
    assert answers == [[0.5], "failed", [0.25, 0.2]]
    assert sizes[:2] == [1, 5]
    assert sorted(sizes[2:]) == [1, 2, 2]
    assert batcher([]) == []


def test_a_large_request_lets_others_through_and_is_given_up_in_time(monkeypatch):
    sizes, entered, clock = [], threading.Event(), [0]

    def slow(items):
        sizes.append(len(items))
        entered.set()
        if len(sizes) == 1:
            wait_until(lambda: len(batcher._waiting) == 2, "the small request")
        clock[0] += 1
        return items

    monkeypatch.setattr(batching, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    batcher = SharedCall(slow, weigh=lambda item: item, patience=4)
    with ThreadPoolExecutor(2) as pool:
        large = pool.submit(batcher, [400] * 8)
        wait_for(entered, "the first call")
        assert pool.submit(batcher, [1]).result(PATIENCE) == [1]
        with pytest.raises(TimeoutError):
            large.result(PATIENCE)
    assert sizes[:5] == [1, 2, 1, 1, 1], "given up after five calls"
    assert sum(sizes) == 6
    assert batcher([2]) == [2]


def test_a_large_request_is_answered_from_one_state():
    sizes, state = [], ["before"]

    def link(items):
        sizes.append(len(items))
        links = [state[0]] * len(items)
        state[0] = "after"
        return links

    batcher = SharedCall(link, weigh=lambda item: item, state=lambda: state[0])
    assert batcher([400] * 3) == ["after"] * 3
    assert sizes == [1, 1, 3]
    assert batcher([400] * 3) == ["after"] * 3
    assert sizes[3:] == [1, 1, 1]


def test_all_documents_of_a_call_are_linked_with_one_state(monkeypatch):
    nlp = build()
    linker = find_linker(nlp)
    client = client_of(nlp)
    predict = linker.predict
    edit = threading.Thread(target=linker.kb.remove, args=(["planet", "metal"],))

    def edited(docs):
        if edit.ident is None:
            edit.start()
            edit.join(0.2)
        return predict(docs)

    monkeypatch.setattr(linker, "predict", edited)
    nlp.batch_size = 1
    documents = [{"text": PROBE["text"]}, PROBE]
    nlp.add_pipe("entity_ruler", first=True).add_patterns([{"label": "X", "pattern": "Mercury"}])
    answers = link(client, *documents)
    edit.join(PATIENCE)
    assert [mention["kb_id"] for (mention,) in answers] == ["planet", "planet"]


@pytest.mark.parametrize("route", ["link", "reconcile"])
def test_edits_between_the_calls_of_a_request_are_noticed(route):
    nlp = build()
    service = create_service(nlp, Rules(token="secret")).state.service
    call = service.documents if route == "link" else service.cells
    linker = find_linker(nlp)
    doc = nlp("Mercury is near.")
    span = doc[:1]
    states = {call.state()}
    for change in (
        lambda: linker.kb.remove(["cat"]),
        lambda: linker.feedback.learn(span, "planet"),
        lambda: linker.feedback.reject_link(span, "metal"),
        lambda: linker.feedback.forget(span),
    ):
        change()
        assert call.state() not in states
        states.add(call.state())


def test_limits_are_said(client, nlp):
    mentions = [{"start": 2 * i, "end": 2 * i + 1} for i in range(999)]
    many = {"text": "a " * 1000, "mentions": mentions}
    for documents, message in (
        ([PROBE] * 65, "at most 64 items"),
        ([many] * 3, "more than 2,000 mentions"),
        ([{"text": "a" * 50_000}] * 11, "more than 500,000 characters"),
    ):
        answer = client_of(nlp).post("/link", json={"documents": documents})
        assert answer.status_code == 422
        assert message in answer.json()["error"]
    answer = client.post("/link", content=b" " * 20_001)
    problem = {"error": "The body has more than 20,000 bytes."}
    assert (answer.status_code, answer.json()) == (413, problem)
    hurried = client_of(nlp, patience=0.0)
    large = [{"text": "a " * 600, "mentions": mentions[:600]}] * 2
    answer = hurried.post("/link", json={"documents": large})
    assert answer.status_code == 503
    assert "not linked in time" in answer.json()["error"]
    full = client_of(nlp, requests=0)
    answer = full.post("/link", json={"documents": [PROBE]})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert full.get("/health").status_code == 200


def raw(server, *parts):
    """What the server answers to bytes: status and body. Functions are called between them."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as client:
        for part in parts:
            if callable(part):
                part()
            else:
                client.sendall(part)
        head, _, body = client.makefile("rb").read().partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def head(server, length):
    lines = ["POST /link HTTP/1.1", f"Host: 127.0.0.1:{server.port}", "Connection: close"]
    lines += ["Authorization: Bearer secret", f"Content-Length: {length}", "", ""]
    return "\r\n".join(lines).encode()


def arrived(server, count):
    """Wait until so many requests are there, of which the server has read the heads."""
    wait_until(lambda: len(server.server_state.tasks) >= count, f"{count} requests")


def test_slow_and_large_bodies_are_answered_and_hold_up_nobody(server, nlp, monkeypatch):
    body = json.dumps({"documents": [PROBE]}).encode()
    passed = [0.0]
    own_time = SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0])
    monkeypatch.setattr(security, "time", own_time)
    with ThreadPoolExecutor(10) as pool:
        # More of them than requests are answered at a time.
        slow = [pool.submit(raw, server, head(server, 1000), b"{") for _ in range(9)]
        arrived(server, 9)
        parts = (head(server, len(body)), body[:9], lambda: arrived(server, 10), body[9:])
        assert raw(server, *parts)[0] == 200
        passed[0] = PATIENCE
        for request in slow:
            status, answer = request.result(PATIENCE)
            assert status == 408
            assert b"within 600 seconds" in answer


@pytest.mark.parametrize("reads", [False, True])
def test_a_client_that_does_not_read_its_answer_is_left(reads):
    size = 20_000_000

    async def large(scope, receive, send):
        head = {"type": "http.response.start", "status": 200, "headers": []}
        await send(head)
        await send({"type": "http.response.body", "body": bytes(size)})

    port = free_port()
    rules = Rules(seconds=PATIENCE if reads else 0.2)
    with running(large, port, rules) as server, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 10_000)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        if not reads:
            wait_until(lambda: server.server_state.connections, "the connection")
            wait_until(lambda: not server.server_state.connections, "its end")
            return
        assert len(client.makefile("rb").read()) > size


def test_a_stop_answers_what_was_asked(server):
    body = json.dumps({"documents": [PROBE]}).encode()

    def stop():
        arrived(server, 1)
        listening = server.servers[0]
        server.should_exit = True
        wait_until(lambda: not listening.is_serving(), "the end of listening")

    status, answer = raw(server, head(server, len(body)), body[:9], stop, body[9:])
    assert status == 200
    assert json.loads(answer)["documents"][0]["mentions"][0]["kb_id"] == "planet"


def test_it_counts_what_it_has_done(nlp):
    client = client_of(nlp)
    link(client, PROBE, FISH)
    client.post("/link", content="{")
    client.get("/nothing")
    client.get("/reconcile/wrong")
    lines = client.get("/metrics").text.splitlines()
    for line in (
        'arbo_requests_total{path="/link",status="200"} 1.0',
        'arbo_requests_total{path="/link",status="422"} 1.0',
        'arbo_requests_total{path="pages",status="404"} 1.0',
        'arbo_requests_total{path="reconcile",status="404"} 1.0',
        'arbo_mentions_total{linked="true"} 2.0',
        'arbo_request_seconds_count{path="/link"} 2.0',
        "arbo_entities 8.0",
    ):
        assert line in lines


def test_openapi_describes_every_operation_and_its_answer(client):
    description = client.get("/openapi.json").json()
    paths = "health ready metrics link entities entities/remove entities/merge"
    assert description["paths"].keys() == {f"/{path}" for path in paths.split()}
    request = description["components"]["schemas"]["LinkRequest"]
    assert request["properties"]["documents"]["maxItems"] == 64
    answer = client.post("/link", json={"documents": [PROBE, FISH]}).json()
    assert schema.LinkAnswer.model_validate(answer).model_dump() == answer


def test_entities_of_programs_are_in_the_journal_of_the_review(start, browser, model):
    post, headers = browser.client.post, {**TOKEN, "Accept": "application/json"}
    entities = [{"id": "E900", "title": "Kathmandu"}, {"id": "cat", "title": "Panther"}]
    answer = post("/entities", json={"entities": entities}, headers=headers)
    assert answer.json() == {"entities": 9}
    again = start()
    assert again.kb.get("E900").title == "Kathmandu"
    assert "E900 and cat added or changed" in again.get("/history")
    assert again.client.post("/undo", headers=TOKEN, data={}, follow_redirects=False).is_redirect
    kb = again.kb
    assert "E900" not in kb
    assert kb.get("cat").title != "Panther"
    assert len(kb) == 8
    answer = again.client.get("/nothing", headers=TOKEN)
    assert answer.status_code == 404
    assert answer.json() == {"error": "Not Found"}
    closed = start(read_only=True).client
    assert closed.post("/entities", json={"entities": entities}, headers=TOKEN).status_code == 403


def test_it_can_be_mounted_in_another_application(app):
    client = TestClient(Starlette(routes=[Mount("/linker", app)]), headers=TOKEN)
    assert client.get("/linker/health").status_code == 200
    assert client.post("/linker/link", json={"documents": [PROBE]}).status_code == 200
    assert TestClient(client.app).get("/linker/metrics").status_code == 421


def test_memory_stays_level_under_a_stream_of_new_words(start):
    """And pages, decisions and tables go on beside it."""
    browser = start(texts=True)
    strings, link_page = browser.nlp.vocab.strings, browser.client.get
    ids = browser.ids
    before = len(strings)

    def ask(number):
        text = " ".join(f"w{number}x{i}" for i in range(50))
        mention = {"start": 0, "end": 4, "label": f"L{number}"}
        body = {"documents": [{"text": text, "mentions": [mention]}, {"text": text}]}
        answer = browser.client.post("/link", json=body, headers=TOKEN)
        (first,) = answer.json()["documents"][0]["mentions"]
        return first["text"].startswith("w") and first["label"] == f"L{number}"

    def look(number):
        page = link_page(f"{browser.root}/link", params={"n": number % 5})
        why = link_page(f"{browser.root}/why", params={"id": ids["Quorn"], "kb_id": "cat"})
        return page.status_code == why.status_code == 200

    with ThreadPoolExecutor(3) as pool:
        asked, looked = pool.map(ask, range(60)), pool.map(look, range(20))
        browser.decide("accept", "Vexil", title="Vexil")
        browser.post("/decide/learn", n=0, kb_id="cat")
        assert all(asked)
        assert all(looked)
    browser.post("/undo")
    browser.decide("reject", "Quorn")
    assert len(strings) < before + 60
    assert len(list(browser.nlp.vocab)) < 1500
    browser.post("/save")
    assert start().ids.keys() == ids.keys() - {"Vexil", "Quorn"}


def test_the_old_state_answers_while_new_entities_are_encoded(monkeypatch):
    nlp = build()
    client = client_of(nlp)
    encoder, asked, entered = find_linker(nlp).encoder, [], threading.Event()
    slow, gate = type(encoder).encode_texts, threading.Event()

    def encode(self, inputs):
        asked.append(1)
        entered.set()
        wait_for(gate, "the look at the old state")
        return slow(self, inputs)

    entities = [{"id": f"N{i}", "title": f"Newtown {i}"} for i in range(3)]
    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(type(encoder), "encode_texts", encode)
        added = pool.submit(client.post, "/entities", json={"entities": entities})
        wait_for(entered, "the encoding of new entities")
        assert len(find_linker(nlp).kb) == 8
        gate.set()
        assert added.result().json() == {"entities": 11}
    before = len(asked)
    city = {"text": "Newtown 1 is old.", "mentions": [{"start": 0, "end": 9}]}
    assert link(client, city)[0][0]["kb_id"] == "N1"
    assert len(asked) == before
