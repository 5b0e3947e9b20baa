"""A nightly job beside a running service: removal, merges, and a folder that another edits."""

import threading

import pytest
from starlette.testclient import TestClient

from spacy_arbo_el import ArboKB, Entity, find_linker, load_pipeline, save_pipeline
from spacy_arbo_el.contrib.review.review import Review
from spacy_arbo_el.contrib.review.serve.app import create_app
from spacy_arbo_el.contrib.review.serve.running import Following
from spacy_arbo_el.contrib.review.serve.security import Rules
from spacy_arbo_el.contrib.review.serve.service import create_service

from ....linker.conftest import build
from ....linker.world import ENTITIES
from ....threads import forked, wait_for, wait_until
from .processes import Served

TOKEN = {"Authorization": "Bearer secret"}
PROBE = {"text": "Boats on the Amazon.", "mentions": [{"start": 13, "end": 19}]}


def linked(client, *documents):
    answer = client.post("/link", json={"documents": list(documents)})
    assert answer.status_code == 200, answer.text
    return [mention["kb_id"] for doc in answer.json()["documents"] for mention in doc["mentions"]]


def edit(client, what, **body):
    answer = client.post(f"/entities/{what}", json=body)
    return answer.status_code, answer.json()


def test_programs_remove_and_merge_entities(nlp):
    client = TestClient(create_service(nlp, Rules(token="secret")), headers=TOKEN)
    kb = find_linker(nlp).kb
    assert edit(client, "remove", ids=["fruit", "maker"]) == (200, {"entities": 6})
    status, answer = edit(client, "remove", ids=["cat", "unknown"])
    assert status == 422, "all or none"
    assert "unknown" in answer["error"]
    assert "cat" in kb
    before = linked(client, PROBE)[0]
    other = {"river": "shop", "shop": "river"}[before]
    assert edit(client, "merge", id=before, into=other) == (200, {"entities": 5})
    assert linked(client, PROBE) == [other]
    assert kb.get(before).id == other
    assert edit(client, "merge", id=other, into=other)[0] == 422
    assert edit(client, "merge", id="unknown", into=other)[0] == 422
    read_only = TestClient(create_service(nlp, Rules(token="s"), read_only=True))
    read_only.headers["Authorization"] = "Bearer s"
    assert edit(read_only, "remove", ids=["cat"])[0] == 403
    assert edit(read_only, "merge", id="cat", into="car")[0] == 403
    assert "cat" in kb


def test_removals_and_merges_are_in_the_journal_and_can_be_undone(model):
    review = Review(load_pipeline(model), model)
    client = TestClient(create_app(review, Rules(port=80, token="secret")), headers=TOKEN)
    client.base_url = "http://127.0.0.1"
    kb, before = review.linker.kb, len(review.linker.kb)
    assert edit(client, "remove", ids=["cat", "unknown"])[0] == 422
    assert "cat" in kb, "what was done is taken back"
    assert len(kb) == before
    assert edit(client, "remove", ids=["cat", "fruit"])[0] == 200
    assert edit(client, "merge", id="shop", into="river")[0] == 200
    assert len(kb) == before - 3
    again = find_linker(load_pipeline(model)).kb
    assert len(again) == before - 3, "from the journal"
    assert again.get("shop").id == "river"
    review.undo("service", None)
    assert kb.get("shop").id == "shop"
    # A kill leaves all of a removal or nothing, since its journal has one entry.
    (removal,) = review.standing
    assert removal["ids"] == ["cat", "fruit"]
    review.undo("service", None)
    assert len(kb) == before


@pytest.fixture
def followed(tmp_path):
    """A service over a folder, and what follows it."""
    nlp = build()
    ArboKB(nlp.vocab, ENTITIES).to_disk(tmp_path / "kb")
    find_linker(nlp).set_kb(tmp_path / "kb")
    app = create_service(nlp, Rules(token="secret"), read_only=True)
    return TestClient(app, headers=TOKEN), Following(app.state.service, tmp_path / "kb")


def test_each_state_of_a_folder_is_linked_with(followed):
    client, following = followed
    bird = {"text": "A zorblat sang.", "mentions": [{"start": 2, "end": 9}]}
    assert not following.look()
    assert "bird" not in linked(client, bird)
    with ArboKB.open(following.path) as kb:
        kb.add(Entity("bird", "zorblat"))
    assert following.look()
    assert linked(client, bird) == ["bird"]
    assert not following.look()
    with ArboKB.open(following.path) as kb:
        kb.remove("bird")
    assert linked(client, bird) != ["bird"], "a request need not wait for the next look"
    assert not following.look()


def test_a_folder_that_cannot_be_read_leaves_the_old_state(followed, monkeypatch, caplog):
    client, following = followed
    tried = threading.Event()

    def fail():
        tried.set()
        raise OSError("half written")

    monkeypatch.setattr(following, "look", fail)
    with following.running(seconds=0.01):
        wait_for(tried, "a look at the folder")
    assert linked(client, PROBE)[0] in ("river", "shop")


def test_a_server_follows_a_folder_that_another_process_edits(tmp_path, nlp):
    """As a nightly job beside a service: the ids of the next day are those of a fresh program."""
    nlp.add_pipe("arbo_names", before="arbo_linker")
    save_pipeline(nlp, tmp_path / "model")
    folder = tmp_path / "kb"
    ArboKB(nlp.vocab, ENTITIES).to_disk(folder)

    def night():
        with ArboKB.open(folder) as kb:
            kb.remove("fruit")
            kb.merge("shop", "river")
            kb.add({"id": "bird", "title": "zorblat"})
        return True

    texts = ["Boats on the Amazon.", "A zorblat ate an apple.", "The jaguar ran."]
    code = tmp_path / "towers.py"
    code.write_text("import tests.encoders.numpy_tower\n")
    options = ("--read-only", "--kb", folder, "--code", code)
    server = Served(tmp_path / "model", *map(str, options))
    try:
        evening = server.link(texts)
        assert "fruit" in evening[1]
        assert "bird" not in evening[1]
        assert forked(night)
        find_linker(nlp).set_kb(folder)
        morning = [[ent.kb_id_ for ent in doc.ents] for doc in nlp.pipe(texts)]
        assert morning[0] == ["river"]
        assert "bird" in morning[1]
        assert "fruit" not in morning[1]
        wait_until(lambda: server.link(texts) == morning, "the links after the edits of the night")
        assert server.client.post("/entities", json={"entities": [{"id": "x"}]}).status_code == 403
    finally:
        server.stop()
