"""Work in threads."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from spacy_arbo_el.base.threads import map_in_threads


@pytest.mark.parametrize("n_items", [0, 1, 2, 7])
def test_results_are_in_order_and_threads_share_the_cores(n_threads, n_items):
    def work(item):
        return item, torch.get_num_threads()

    results = map_in_threads(work, range(n_items))
    n_workers = max(min(n_threads, n_items), 1)
    assert results == [(item, n_threads // n_workers) for item in range(n_items)]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == n_threads
    assert torch.get_num_threads() == n_threads


def test_errors_of_a_thread_are_raised(n_threads):
    with pytest.raises(ZeroDivisionError):
        map_in_threads(lambda item: 1 // item, [1, 0, 1])
    assert torch.get_num_threads() == n_threads


@pytest.mark.parametrize("n_threads", [2], indirect=True)
def test_where_no_thread_can_start_nothing_waits(n_threads, monkeypatch):
    started = []
    submit = ThreadPoolExecutor.submit

    def submit_one(pool, *args):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(args)
        return submit(pool, *args)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit_one)
    with pytest.raises(RuntimeError, match="start new thread"):
        map_in_threads(abs, [1, 2])
