"""``arbo serve`` as a process of its own: what a kill and a stop leave."""

import json
import re
import shutil
import signal
import socket
import tempfile
from pathlib import Path

import httpx
import pytest

from spacy_arbo_el.base.errors import Errors
from spacy_arbo_el.storage.folders import locked_folder

from ....commands import run
from ....encoders import numpy_tower
from ....threads import PATIENCE
from .processes import NOBODY, TOKEN, ForkedServe, Served, can_confine, stop

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
from spacy_arbo_el.contrib.review.serve import running  # noqa: E402

LOCKED = Errors.E050(path="model")
CODE = str(Path(numpy_tower.__file__))


def entries_in(model):
    """How many entries of the journal a saved pipeline has."""
    return json.loads((model / "meta.json").read_text())["review"]["entries"]


class Browsed:
    """A server of a pipeline, and a browser that has opened the printed address."""

    def __init__(self, model, *options):
        self.process = ForkedServe(model, "--port", "0", "--code", CODE, "--name", "zoe", *options)
        url = next(line.strip() for line in self.process.stdout if line.startswith("http"))
        self.address = url.split("/?")[0]
        # What is printed is true: it listens already.
        self.client = httpx.Client(follow_redirects=True, timeout=PATIENCE)
        self.reconcile = next(self.process.stdout).split(": ")[1].strip()
        answer = self.client.get(url)
        self.page, self.base = answer.text, str(answer.url).rstrip("/")
        self.csrf = re.search(r'name="csrf" value="([^"]+)"', self.page).group(1)

    def decide(self, action, **fields):
        data = {"csrf": self.csrf, **fields}
        assert self.client.post(f"{self.base}/decide/{action}", data=data).status_code == 200

    def post(self, path):
        return self.client.post(f"{self.base}{path}", data={"csrf": self.csrf})

    def stop(self, how):
        return stop(self.process, how)


@pytest.mark.slow
def test_a_kill_loses_nothing_and_a_stop_saves(model):
    served = Browsed(model)
    first, second, third = re.findall(r"id=(NEW-\w+)", served.page)[:3]
    served.decide("reject", id=first)
    served.decide("accept", id=second, title="Accepted")
    assert served.stop(signal.SIGKILL)[1] == -signal.SIGKILL
    served = Browsed(model)
    assert "4 new entities" in served.page
    assert first not in served.page
    served.decide("reject", id=third)
    output, code = served.stop(signal.SIGTERM)
    assert "saved with all decisions" in output
    assert code == 0
    assert entries_in(model) == 3
    served = Browsed(model)
    assert "3 new entities" in served.page
    assert served.client.get(served.reconcile).json()["name"] == "model"
    output, code = served.stop(signal.SIGINT)
    assert "saved" not in output
    assert code == 0


@pytest.mark.slow
def test_the_button_saves_and_the_server_keeps_the_pipeline(model):
    served = Browsed(model)
    first, second = re.findall(r"id=(NEW-\w+)", served.page)[:2]
    served.decide("reject", id=first)
    saved = served.post("/save")
    assert saved.status_code == 200
    assert "Everything is in the saved pipeline" in saved.text
    assert entries_in(model) == 1
    # The pipeline is still the server's, with its knowledge base, and can be saved again.
    for locked in (model, model / "arbo_linker" / "kb"):
        with pytest.raises(ValueError), locked_folder(locked, LOCKED):
            pass
    served.decide("reject", id=second)
    assert "Everything" in served.post("/save").text
    assert served.stop(signal.SIGTERM)[1] == 0
    assert entries_in(model) == 2
    with locked_folder(model / "arbo_linker" / "kb", LOCKED), locked_folder(model, LOCKED):
        pass


@pytest.mark.slow
def test_by_default_no_other_machine_reaches_it(model):
    served = Browsed(model)
    port = int(served.address.rpartition(":")[2])
    # All of 127.0.0.0/8 leads to this machine, and is no more than its other addresses are.
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=PATIENCE)
    assert served.stop(signal.SIGTERM)[1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("half", ["a header", "a body"])
def test_a_stop_waits_for_no_slow_client(model, half, monkeypatch):
    # Whoever waited for it would wait longer than this test does.
    monkeypatch.setattr(running, "GRACE", 100 * PATIENCE)
    served = Browsed(model)
    served.decide("reject", id=re.findall(r"id=(NEW-\w+)", served.page)[0])
    host, port = served.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as slow:
        head = f"POST /link HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 99\r\n"
        slow.sendall((head + ("\r\n{" if half == "a body" else "")).encode())
        # The server has seen the slow client, which came first.
        assert served.client.get(served.reconcile).status_code == 200
        output, code = served.stop(signal.SIGTERM)
        slow.settimeout(PATIENCE)
        answer = slow.makefile("rb").read()
    assert b"The server stops." in answer if half == "a body" else answer == b""
    assert "saved with all decisions" in output
    assert code == 0


@pytest.mark.slow
def test_what_is_printed_is_true_and_has_no_secret(model, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = run("serve", model, "--port", port, code=1)
    assert "E924" in said
    assert str(port) in said
    assert "Open this address" not in said
    monkeypatch.setenv("ARBO_TOKEN", TOKEN)
    options = ("--host", "0.0.0.0", "--port", "0", "--code", CODE)
    process = ForkedServe(model, *options)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("For OpenRefine"):
            break
    address = next(line for line in lines if line.startswith("http")).split("/?")[0]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    page = httpx.get(f"{address}/history", headers=headers, timeout=PATIENCE).text
    secret = re.search(r"/reconcile/(\w+)", page).group(1)
    answer = httpx.get(f"{address}/reconcile/{secret}", timeout=PATIENCE)
    assert answer.json()["name"] == "model"
    process.send_signal(signal.SIGTERM)
    printed = "".join(lines) + process.communicate(timeout=PATIENCE)[0]
    assert TOKEN not in printed
    assert secret not in printed
    assert address[-5:] in printed
    assert "Every machine that reaches 0.0.0.0" in " ".join(printed.split())


@pytest.mark.slow
@pytest.mark.skipif(not can_confine(), reason="needs root, unshare and setpriv")
def test_it_links_where_nothing_can_be_written_and_as_nobody(model):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # those of pytest are the user's own
        shutil.copytree(model, folder / "model")
        shutil.copy(CODE, folder / "code.py")
        (folder / "tmp").mkdir()
        options = ("--read-only", "--host", "0.0.0.0", "--code", str(folder / "code.py"))
        served = Served(folder / "model", *options, temporary=folder / "tmp")
        assert TOKEN not in served.printed
        status = Path(f"/proc/{served.process.pid}/status").read_text()
        assert f"Uid:\t{NOBODY}\t{NOBODY}" in status
        assert "CapEff:\t0000000000000004" in status
        document = {"text": "Mercury is a planet.", "mentions": [{"start": 0, "end": 7}]}
        answer = served.client.post("/link", json={"documents": [document]})
        assert answer.json()["documents"][0]["mentions"][0]["kb_id"] == "planet"
        refused = served.client.post("/entities", json={"entities": [{"id": "E900"}]})
        assert refused.status_code == 403
        assert served.stop()[1] == 0
