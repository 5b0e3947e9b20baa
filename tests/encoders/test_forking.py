"""Processes that are forked from one that has encoded texts."""

import os

import numpy as np
import pytest
import threadpoolctl

from spacy_arbo_el.encoders.dual import PARALLELISM, one_thread_after_fork


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
