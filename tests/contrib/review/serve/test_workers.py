"""``arbo serve --workers``: several processes at one address."""

import os
import signal
from pathlib import Path

import httpx
import pytest

from ....commands import run
from ....encoders import numpy_tower
from ....threads import PATIENCE, wait_until
from .processes import Served

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
CODE = str(Path(numpy_tower.__file__))
TEXT = "They met Quorn at the fair."
PLACE = {"start": 9, "end": 14}


def children_of(process):
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(number) for number in path.read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_workers_answer_at_one_address_and_one_that_ends_is_replaced(model, monkeypatch):
    monkeypatch.setattr("spacy_arbo_el.contrib.review.serve.workers.LEAST", 0.0)
    served = Served(model, "--read-only", "--workers", "2", "--code", CODE)
    try:
        assert served.client.get("/").status_code == 404, "there are no pages"
        first, second = children_of(served.process.pid)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: first not in children_of(served.process.pid), "the end of a worker")
        wait_until(lambda: len(children_of(served.process.pid)) == 2, "another worker")
        body = {"documents": [{"text": TEXT, "mentions": [PLACE]}]}
        for _ in range(4):
            # Each connection may be another worker's.
            with served.new_client() as client:
                assert client.post("/link", json=body).status_code == 200
        counts = served.client.get("/metrics").text
        assert 'arbo_requests_total{path="/link",status="200"} 4.0' in counts
    finally:
        workers = children_of(served.process.pid)
        printed, status = served.stop()
    assert "2 workers" not in printed and status == 0
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_workers_end_with_a_first_process_that_was_killed(model):
    served = Served(model, "--read-only", "--workers", "2", "--code", CODE)
    workers = children_of(served.process.pid)
    assert served.stop(signal.SIGKILL)[1] == -signal.SIGKILL
    wait_until(lambda: not any(_runs(worker) for worker in workers), "the end of the workers")
    with pytest.raises(httpx.ConnectError):
        httpx.get(served.address, timeout=PATIENCE)


def _runs(process):
    status = Path(f"/proc/{process}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def test_workers_change_nothing(tmp_path):
    said = run("serve", tmp_path, "--workers", "2", code=1)
    assert "E896" in said and "--workers needs --read-only" in said


def test_workers_have_no_pages(model, tmp_path):
    options = ("--read-only", "--workers", "2", "--texts", tmp_path / "texts.jsonl")
    said = run("serve", model, *options, "--code", CODE, code=1)
    assert "E925" in said and "--texts" in said
