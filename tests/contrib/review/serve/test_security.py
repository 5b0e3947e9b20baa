"""Who may reach the pages."""

import re
from contextlib import nullcontext
from itertools import product

import pytest
from starlette.testclient import TestClient

from spacy_arbo_el.contrib.review.serve.security import COOKIE, Rules

from ....cases import cases
from ....commands import run
from ....expecting import raises


def test_only_who_has_the_token_sees_a_page(browser):
    client = TestClient(browser.app, base_url="http://127.0.0.1")
    for path in ("/", "/kb", "/static/review.js", "/export/decisions.jsonl"):
        assert client.get(path).status_code == 401
        assert client.get(browser.root + path).status_code == 401
    assert client.get("/?token=wrong").status_code == 401
    answer = client.get("/?token=secret", follow_redirects=False)
    window = answer.headers["location"]
    assert answer.status_code == 303
    assert re.fullmatch(r"/w/[\w-]{32}/", window)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secret" not in cookie
    assert f"path={window.rstrip('/')}".lower() in cookie
    assert client.get(window).status_code == 200
    # The address alone is not enough, nor the cookie with the address of another window.
    value = client.cookies[COOKIE]
    other = client.get("/?token=secret", follow_redirects=False).headers["location"]
    client.cookies.clear()
    assert client.get(window).status_code == 401
    assert client.get(other, headers={"cookie": f"{COOKIE}={value}"}).status_code == 401
    assert client.get(window, headers={"cookie": f"{COOKIE}={value}"}).status_code == 200


def test_a_log_out_ends_a_window_and_no_other(browser):
    root, csrf = browser.root, browser.csrf
    cookie = {"cookie": f"{COOKIE}={browser.client.cookies[COOKIE]}"}
    browser.log_in()
    client = TestClient(browser.app, base_url="http://127.0.0.1")
    assert client.get(f"{root}/kb", headers=cookie).status_code == 200
    answer = client.post(f"{root}/logout", data={"csrf": csrf}, headers=cookie)
    assert "Logged out" in answer.text
    assert f"{COOKIE}=" in answer.headers["set-cookie"]
    assert client.get(f"{root}/kb", headers=cookie).status_code == 401
    assert "entities" in browser.get("/kb")


def test_open_paths_answer_in_plain_words_whatever_the_method(browser):
    browser.decide("accept", "Quorn", title="Hidden title")
    client = TestClient(browser.app, base_url="http://evil.example")
    methods = ("PUT", "POST", "OPTIONS", "DELETE", "PATCH", "TRACE", "NONE")
    for path, method, accept in product(("/health", "/ready"), methods, ("*/*", "text/html")):
        answer = client.request(method, path, headers={"accept": accept}, content=b"x=1")
        assert answer.status_code == 405, method
        assert answer.headers["allow"] == "GET, HEAD", method
        for secret in ("<", "Hidden", "ann", browser.csrf, browser.root):
            assert secret not in answer.text, (path, method, accept)
    for path in ("/health", "/ready"):
        assert client.get(path).status_code == 200
        assert client.head(path).status_code == 200


def test_the_way_in_leads_nowhere_else(start):
    client = start().client
    for path in ("//evil.test/..", "/\\evil.test", "/w/x/kb"):
        answer = client.get(f"http://127.0.0.1{path}?token=secret", follow_redirects=False)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/w/")


def test_forms_of_other_pages_decide_nothing(browser):
    root, fields = browser.root, {"id": browser.ids["Quorn"], "csrf": browser.csrf}
    post = browser.client.post
    assert post(f"{root}/decide/reject", data={**fields, "csrf": "x"}).status_code == 403
    assert post(f"{root}/decide/reject", data={"id": fields["id"]}).status_code == 403
    evil = {"origin": "http://evil.example"}
    assert post(f"{root}/decide/reject", data=fields, headers=evil).status_code == 403
    assert browser.client.get(f"{root}/decide/reject", params=fields).status_code == 405
    old = dict(fields)
    browser.log_in()  # the form of one window is not for another
    assert post(f"{browser.root}/decide/reject", data=old).status_code == 403
    assert len(browser.rows) == 6
    browser.post("/decide/reject", id=fields["id"])
    assert len(browser.rows) == 5


def test_other_names_methods_and_large_bodies_are_refused(browser):
    client, root = browser.client, browser.root
    assert client.get(f"{root}/", headers={"host": "evil.example"}).status_code == 421
    assert client.delete(f"{root}/").status_code == 405
    assert client.post(f"{root}/undo", content=b"x" * 2_000_001).status_code == 413
    assert client.post(f"{root}/undo", content=b"\xff").status_code == 400


def test_answers_forbid_scripts_frames_and_other_hosts(browser):
    headers = browser.client.get(f"{browser.root}/").headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_the_names_of_a_server_are_those_of_its_address():
    assert Rules("localhost", 80).origins[0] == "http://localhost"
    assert set(Rules(port=80).origins) == {"http://127.0.0.1", "http://localhost", "http://[::1]"}
    assert Rules("::1", 8000).origins[0] == "http://[::1]:8000"
    assert Rules("::", 8000).origins[0] == "http://[::1]:8000"
    assert Rules("192.168.1.5", 8000).origins == ["http://192.168.1.5:8000"]
    public = Rules("0.0.0.0", url="https://linker.example/").origins
    assert public[:2] == ["https://linker.example", "http://127.0.0.1:8765"]


def test_the_secret_of_tables_changes_with_the_token_alone():
    mine = Rules(token=16 * "a").reconciliation
    assert Rules("0.0.0.0", 80, token=16 * "a").reconciliation == mine
    assert Rules(token=16 * "b").reconciliation != mine
    assert 16 * "a" not in mine


@pytest.mark.parametrize("url, origin", cases("server_addresses"))
def test_an_address_is_as_browsers_send_it_or_refused(url, origin):
    with nullcontext() if origin else raises("E923"):
        assert Rules(url=url).origins[0] == origin


def test_the_command_refuses_what_it_cannot_serve(model, tmp_path):
    assert "E919" in run("serve", model, "--token", "short", code=1)
    assert "--read-only" in run("serve", model, "--kb", tmp_path / "kb", code=1)
    assert "meta.json" in run("serve", tmp_path / "nothing", code=1)
    assert "E923" in run("serve", model, "--port", 0, "--url", "linker.example", code=1)
    assert "65535" in run("serve", model, "--port", 99999, code=2)
