"""Processes that are forked from one that has encoded texts."""

import os

import pytest

from spacy_arbo_el.encoders.forking import PARALLELISM


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
