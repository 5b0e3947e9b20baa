"""Runs on a real local Ray: the same links by any number of workers, also when one is killed."""

import os
import signal
import sys
from dataclasses import replace

import pytest

pytest.importorskip("ray", reason="the extra ray is not installed: pip install '.[ray]'")
import ray  # noqa: E402
import ray.data  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from spacy_arbo_el import link_dataset, link_in_shards  # noqa: E402
from spacy_arbo_el.cli import arbo_cli  # noqa: E402
from spacy_arbo_el.distributed.graph_files import new_entities_of  # noqa: E402
from spacy_arbo_el.distributed.on_ray import RaySettings, coded_line  # noqa: E402

from .conftest import GRAPH_THRESHOLD, N_DOCUMENTS, THRESHOLD, ordered, rows_in  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Ray on Windows is beta"),
]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Ray with two CPUs; whoever finds it running uses it."""
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


def test_a_worker_with_another_pipeline_is_an_error_with_a_message(make_job):
    job = make_job()
    with pytest.raises(ValueError, match="E891.*pipeline"):
        list(link_in_shards(replace(job, pipeline="0" * 32), ray=RaySettings()))
    assert not job.done()


def test_links_of_a_dataset(model, records, expected):
    bad = {"id": "bad", "text": "x", "mentions": [{"start": 0, "end": 99, "label": "T"}]}
    items = [{"body": one.pop("text"), "n": 1, **one} for one in map(dict, [*records, bad])]
    dataset = ray.data.from_items(items, override_num_blocks=5)
    settings = {"workers": 2, "batch_size": 4, "threshold": THRESHOLD}
    linked = link_dataset(dataset, model, text="body", **settings)
    rows = linked.take_all()
    errors = [row for row in rows if row["error"] is not None]
    assert [row["document"] for row in errors] == ["bad"] and "99" in errors[0]["error"]
    found = [{k: v for k, v in row.items() if k != "error"} for row in rows if row not in errors]
    for row in found:
        row["evidence"] = list(row["evidence"])
    assert ordered(found) == expected


def test_one_graph_by_two_workers_has_the_links_and_ids_of_one_process(
    make_job, model, corpus, tmp_path
):
    job = make_job(one_graph=True, threshold=GRAPH_THRESHOLD)
    list(link_in_shards(job))
    arguments = ["link", model, corpus, "--output", tmp_path / "ray", "--format", "jsonl"]
    arguments += ["--shard", 3, "--threshold", GRAPH_THRESHOLD, "--ray", "local", "--workers", 2]
    result = CliRunner().invoke(arbo_cli, list(map(str, arguments)))
    assert result.exit_code == 0, (result.output, result.exception)
    assert f"{N_DOCUMENTS} documents" in " ".join(result.output.split())
    parallel = make_job("ray", one_graph=True, threshold=GRAPH_THRESHOLD)
    rows = rows_in(job.folder)
    assert rows_in(parallel.folder) == rows and any(row["new_entity"] for row in rows)
    assert new_entities_of(parallel).to_bytes() == new_entities_of(job).to_bytes()


def test_settings_are_checked():
    for settings in ({"workers": 0}, {"cpus": 0}, {"gpus": -1.0}):
        with pytest.raises(ValueError, match="E900"):
            RaySettings(**settings)


def test_the_last_message_of_a_traceback_is_shown():
    text = "Traceback\nValueError: [arbo-E100] first\nValueError: [arbo-E891] last\n"
    assert coded_line(text) == "[arbo-E891] last" and coded_line("no message") == ""
