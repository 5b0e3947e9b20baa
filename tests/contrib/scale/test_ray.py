"""Runs on a real local Ray: what one process gives, by any number of workers, and with one killed.

All tests with Ray are here, since they share one cluster: starting one takes seconds.
"""

import os
import signal
import sys
from dataclasses import replace

import pytest

pytest.importorskip("ray", reason="the extra ray is not installed: pip install '.[ray]'")
import ray  # noqa: E402
import ray.data  # noqa: E402

from spacy_arbo_el import NewEntities  # noqa: E402
from spacy_arbo_el.contrib.scale.on_ray import RaySettings, coded_line  # noqa: E402
from spacy_arbo_el.contrib.scale.runs import link_in_shards  # noqa: E402

from ...commands import run  # noqa: E402
from ...expecting import raises  # noqa: E402
from .conftest import (  # noqa: E402
    N_DOCUMENTS,
    THRESHOLD,
    rows_in,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Ray on Windows is beta"),
]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Ray with two CPUs; whoever finds it running uses it.

    Its workers would have the priority 15, and get little done beside another test.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        yield from started()


def started():
    ray.init(
        num_cpus=2,
        object_store_memory=200 << 20,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
    )
    yield
    ray.shutdown()


@pytest.fixture
def expected(make_job):
    job = make_job("serial")
    list(link_in_shards(job))
    return rows_in(job.folder)


def test_two_workers_of_which_one_is_killed_give_the_links_of_one_process(make_job, expected):
    job, killed = make_job(size=1), []
    for report in link_in_shards(job, ray=RaySettings(workers=2)):
        if not killed:
            killed.append(int(report.worker.split(":")[-1]))
            os.kill(killed[0], signal.SIGKILL)
    assert rows_in(job.folder) == expected
    assert len(job.done()) == N_DOCUMENTS


@pytest.mark.nightly
def test_a_worker_with_another_pipeline_is_an_error_with_a_message(make_job):
    job = make_job()
    with raises("E891.*pipeline"):
        list(link_in_shards(replace(job, pipeline="0" * 32), ray=RaySettings()))
    assert not job.done()


@pytest.mark.nightly
def test_one_graph_by_two_workers_has_the_links_and_ids_of_one_process(
    make_job, model, corpus, tmp_path
):
    job = make_job(one_graph=True)
    list(link_in_shards(job))
    arguments = ["scale", "link", model, corpus, "--output", tmp_path / "ray", "--format", "jsonl"]
    arguments += ["--one-graph", "--shard", 3, "--ray", "local", "--workers", 2]
    arguments += ["--components.arbo_linker.threshold", THRESHOLD]
    assert f"{N_DOCUMENTS} documents" in run(*arguments)
    parallel = make_job("ray", one_graph=True)
    rows = rows_in(job.folder)
    assert rows_in(parallel.folder) == rows
    assert any(row["new_entity"] for row in rows)
    ours, theirs = (
        NewEntities.from_disk(one.folder / "new_entities").to_bytes() for one in (parallel, job)
    )
    assert ours == theirs


REGISTERING = """
import os
from pathlib import Path

Path(__file__).with_suffix(f".{os.getpid()}").touch()
"""


@pytest.mark.nightly
def test_workers_import_the_code_of_the_command(tmp_path, model, corpus):
    code = tmp_path / "code.py"
    code.write_text(REGISTERING)
    out = tmp_path / "out"
    options = ("--shard", 3, "--one-graph", "--ray", "local", "--code", code)
    run("scale", "link", model, corpus, "--output", out, *options)
    processes = {int(path.suffix[1:]) for path in tmp_path.glob("code.*") if path != code}
    assert processes - {os.getpid()}


def test_settings_are_checked():
    for settings in ({"workers": 0}, {"cpus": 0}, {"gpus": -1.0}):
        with raises("E900"):
            RaySettings(**settings)


def test_the_last_message_of_a_traceback_is_shown():
    text = "Traceback\nValueError: [arbo-E100] first\nValueError: [arbo-E891] last\n"
    assert coded_line(text) == "[arbo-E891] last"
    assert coded_line("no message") == ""
