"""Processes that are forked from one that has encoded texts."""

import os

import catalogue
import numpy as np
import pytest
import srsly
import threadpoolctl

from spacy_arbo_el.encoders.dual import PARALLELISM, one_thread_after_fork, resolve_entry_points


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize(("own", "in_child"), [(None, "false"), ("true", "true")])
def test_children_tokenize_with_one_thread_without_a_warning(monkeypatch, own, in_child):
    monkeypatch.delenv(PARALLELISM, raising=False)
    if own is not None:
        monkeypatch.setenv(PARALLELISM, own)
    child = os.fork()
    if not child:
        os._exit(os.environ.get(PARALLELISM) != in_child)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert os.environ.get(PARALLELISM) == own, "as it was"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_children_compute_with_one_thread_each():
    np.ones((2, 2)) @ np.ones((2, 2))
    before = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    child = os.fork()
    if not child:
        one_thread_after_fork()
        pools = threadpoolctl.threadpool_info()
        os._exit(not pools or any(pool["num_threads"] != 1 for pool in pools))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [pool["num_threads"] for pool in threadpoolctl.threadpool_info()] == before


def test_entry_points_are_looked_up_once(monkeypatch):
    """What other packages register still counts, and so does what is registered later."""
    registry = catalogue.create("arbo_tests", "encoders", entry_points=True)
    points = {"theirs": len}
    monkeypatch.setattr(registry, "get_entry_points", lambda: points)
    registry.register("ours", func=max)
    resolve_entry_points(registry)
    points.clear()
    registry.register("later", func=min)
    assert registry.get_all() == {"theirs": len, "ours": max, "later": min}
    assert not srsly.msgpack_encoders.entry_points and not srsly.msgpack_decoders.entry_points
    array = np.arange(3)
    assert (srsly.msgpack_loads(srsly.msgpack_dumps(array)) == array).all()
