"""Who may reach the pages."""

import warnings

import pytest

from spacy_arbo_el.serve.journal import Journal, journal_path, read_journal
from spacy_arbo_el.serve.security import Rules

from ..commands import run
from .world import ids_by_name


def test_only_who_has_the_token_sees_a_page(start):
    browser = start()
    client = browser.client
    client.cookies.clear()
    for path in ("/", "/kb", "/static/review.js", "/export/decisions.jsonl"):
        assert client.get(path).status_code == 401
    assert client.get("/?token=wrong").status_code == 401
    answer = client.get("/?token=secret", follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie and "secret" not in cookie
    assert client.get("/").status_code == 200


def test_forms_of_other_pages_decide_nothing(start):
    browser = start()
    fields = {"id": ids_by_name(browser.review)["Quorn"], "csrf": browser.rules.secret("form")}
    post = browser.client.post
    assert post("/decide/reject", data={**fields, "csrf": "x"}).status_code == 403
    assert post("/decide/reject", data={"id": fields["id"]}).status_code == 403
    evil = {"origin": "http://evil.example"}
    assert post("/decide/reject", data=fields, headers=evil).status_code == 403
    assert browser.client.get("/decide/reject", params=fields).status_code == 405
    assert len(browser.review.queue.rows) == 6
    assert post("/decide/reject", data=fields).status_code == 200


def test_other_names_methods_and_large_bodies_are_refused(start):
    browser = start()
    client = browser.client
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    assert client.delete("/").status_code == 405
    for path in ("/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"):
        assert client.get(path).status_code == 404
    assert client.post("/undo", content=b"x" * 2_000_001).status_code == 413
    assert client.post("/undo", content=b"\xff").status_code == 400


def test_answers_forbid_scripts_frames_and_other_hosts(start):
    headers = start().client.get("/").headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert "frame-ancestors 'none'" in policy and headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_the_names_of_a_server_are_those_of_its_address():
    assert Rules("localhost", 80).origins[0] == "http://localhost"
    assert set(Rules(port=80).origins) == {"http://127.0.0.1", "http://localhost", "http://[::1]"}
    assert Rules("::1", 8000).origins[0] == "http://[::1]:8000"
    assert Rules("192.168.1.5", 8000).origins == ["http://192.168.1.5:8000"]
    public = Rules("0.0.0.0", url="https://linker.example/").origins
    assert public[:2] == ["https://linker.example", "http://127.0.0.1:8765"]


def test_the_command_refuses_what_it_cannot_serve(model, tmp_path):
    assert "E919" in run("serve", model, "--token", "short", code=1)
    assert "--texts" in run("serve", model, "--import", tmp_path / "tasks.jsonl", code=1)
    assert "meta.json" in run("serve", tmp_path / "nothing", code=1)


def test_a_line_that_a_kill_cut_off_is_dropped_with_a_warning(start, model):
    browser = start()
    ids = ids_by_name(browser.review)
    browser.post("/decide/reject", id=ids["Quorn"])
    path = journal_path(model)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"n": 1, "action": "rej')
    with pytest.warns(UserWarning, match="W910"):
        again = start()
    assert len(again.review.queue.rows) == 5
    again.post("/decide/reject", id=ids["Vexil"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, entries, size = read_journal(path)
    assert len(entries) == 2 and size == path.stat().st_size


def test_a_journal_that_is_none_is_an_error_with_its_line(model):
    path = journal_path(model)
    path.write_text('{"action": "begin", "journal": "x"}\nnonsense\n', encoding="utf8")
    with pytest.raises(ValueError, match=r"E911.*line 2"):
        Journal(path)


def test_what_could_not_be_written_is_not_decided(start, monkeypatch):
    browser = start()
    ids = ids_by_name(browser.review)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(browser.review.journal, "_write", full)
    assert "No space left" in browser.post("/decide/accept", 422, id=ids["Quorn"], title="Q")
    assert ids_by_name(browser.review) == ids and len(browser.review.linker.kb) == 8
