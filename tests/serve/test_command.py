"""``arbo serve`` as a process of its own: what a kill and a stop leave."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import pytest

from ..encoders import numpy_tower
from .processes import NOBODY, TOKEN, Served, can_confine

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
COMMAND = [sys.executable, "-m", "spacy", "arbo"]
CODE = str(Path(numpy_tower.__file__))


class Browsed:
    """A server of a pipeline, and a browser that has opened the printed address."""

    def __init__(self, model):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        command = [*COMMAND, "serve", str(model), "--port", port, "--code", CODE, "--name", "zoe"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        url = next(line.strip() for line in self.process.stdout if line.startswith("http"))
        transport = httpx.HTTPTransport(retries=10)
        self.client = httpx.Client(follow_redirects=True, transport=transport)
        self.reconcile = next(self.process.stdout).split(": ")[1].strip()
        self.page, self.base = self.client.get(url).text, url.split("/?")[0]
        self.csrf = re.search(r'name="csrf" value="(\w+)"', self.page).group(1)

    def decide(self, action, **fields):
        data = {"csrf": self.csrf, **fields}
        assert self.client.post(f"{self.base}/decide/{action}", data=data).status_code == 200

    def stop(self, how):
        self.process.send_signal(how)
        output = self.process.communicate(timeout=30)[0]
        return output, self.process.returncode


@pytest.mark.slow
def test_a_kill_loses_nothing_and_a_stop_saves(model):
    served = Browsed(model)
    first, second, third = re.findall(r"id=(NEW-\w+)", served.page)[:3]
    served.decide("reject", id=first)
    served.decide("accept", id=second, title="Accepted")
    assert served.stop(signal.SIGKILL)[1] == -signal.SIGKILL
    served = Browsed(model)
    assert "4 new entities" in served.page and first not in served.page
    served.decide("reject", id=third)
    output, code = served.stop(signal.SIGTERM)
    assert "saved with all decisions" in output and code == 0
    assert json.loads((model / "meta.json").read_text())["review"]["entries"] == 3
    served = Browsed(model)
    assert "3 new entities" in served.page
    assert served.client.get(served.reconcile).json()["name"] == "model"
    output, code = served.stop(signal.SIGINT)
    assert "saved" not in output and code == 0


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
        assert f"Uid:\t{NOBODY}\t{NOBODY}" in status and "CapEff:\t0000000000000004" in status
        document = {"text": "Mercury is a planet.", "mentions": [{"start": 0, "end": 7}]}
        answer = served.client.post("/link", json={"documents": [document]})
        assert answer.json()["documents"][0]["mentions"][0]["kb_id"] == "planet"
        refused = served.client.post("/entities", json={"entities": [{"id": "E900"}]})
        assert refused.status_code == 403 and served.stop()[1] == 0
