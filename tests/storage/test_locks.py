"""SharedLock: readers together, a writer alone."""

import pickle
import threading
import time

import pytest

from spacy_arbo_el.storage.locks import ForkableLock, RevisionCache, SharedLock

from ..threads import forked, run_in_threads, wait_for, wait_until


def can_enter(block):
    with block:
        return True


def test_writers_are_alone_and_nothing_is_lost():
    lock, state = SharedLock(), {"inside": 0, "total": 0}

    def write():
        for _ in range(300):
            with lock.writing(), lock.writing(), lock.reading():
                state["inside"] += 1
                assert state["inside"] == 1
                before = state["total"]
                time.sleep(0)
                state["total"] = before + 1
                state["inside"] -= 1

    def read():
        for _ in range(300):
            with lock.reading(), lock.reading():
                before = state["total"]
                time.sleep(0)
                assert state["total"] == before
                assert state["inside"] == 0

    run_in_threads(write, write, read, read, read)
    assert state["total"] == 600


def test_a_writer_goes_before_new_readers():
    lock, order = SharedLock(), []
    has_read, asks = threading.Event(), threading.Event()

    def wait_for_writer():
        wait_until(lambda: lock._waiting, "the writer that waits for the first reader")

    def first_reader():
        with lock.reading():
            has_read.set()
            wait_for_writer()
            wait_for(asks, "the second reader")
            # It may read again, although a writer waits.
            with lock.reading():
                order.append("first reader")

    def writer():
        wait_for(has_read, "the first reader")
        with lock.writing():
            order.append("writer")

    def second_reader():
        wait_for_writer()
        asks.set()
        with lock.reading():
            order.append("second reader")

    run_in_threads(first_reader, writer, second_reader)
    assert order == ["first reader", "writer", "second reader"]


def test_a_reader_that_wants_to_write_is_an_error():
    lock = SharedLock()
    with lock.reading(), pytest.raises(RuntimeError, match="E770"), lock.writing():
        pass
    with lock.writing():
        assert lock.is_writing
    assert not lock.is_reading


def test_a_writer_becomes_a_reader_without_a_gap():
    lock, state = SharedLock(), []
    reads, other_read = threading.Event(), threading.Event()

    def writer():
        with lock.reading_after(lambda: state.append("written")):
            reads.set()
            wait_for(other_read, "the other reader")
            assert state == ["written"]

    def other_reader():
        wait_for(reads, "the writer that becomes a reader")
        with lock.reading():
            other_read.set()

    def other_writer():
        wait_for(reads, "the writer that becomes a reader")
        with lock.writing():
            state.append("other")

    run_in_threads(writer, other_reader, other_writer)
    assert state == ["written", "other"]


def test_an_outer_block_goes_on_writing():
    lock = SharedLock()
    with lock.writing():
        with lock.reading_after(lambda: None):
            assert lock.is_writing
        assert lock.is_writing
    with lock.writing():
        pass


def test_an_error_gives_the_lock_back():
    lock = SharedLock()
    for block in (lock.reading(), lock.writing(), lock.reading_after(lambda: None)):
        with pytest.raises(KeyError), block:
            raise KeyError
    with pytest.raises(KeyError), lock.reading_after(lambda: {}["x"]):
        pass
    run_in_threads(lambda: can_enter(lock.writing()))


@pytest.mark.parametrize("lock", [SharedLock(), ForkableLock()], ids=["shared", "forkable"])
def test_a_forked_process_does_not_wait_for_threads_it_does_not_have(lock):
    writing = lock.writing if isinstance(lock, SharedLock) else lambda: lock
    held, done = threading.Event(), threading.Event()

    def hold():
        with writing(), writing():
            held.set()
            wait_for(done, "the forked process")

    thread = threading.Thread(target=hold)
    thread.start()
    wait_for(held, "the thread that takes the lock")
    is_free = forked(lambda: can_enter(writing()))
    done.set()
    thread.join()
    assert is_free


def test_a_copy_is_free():
    lock = SharedLock()
    with lock.writing():
        copy = pickle.loads(pickle.dumps(lock))
        assert not copy.is_reading


def test_a_value_is_built_anew_where_any_part_of_its_revision_changes():
    """Each name has its own value, and None is a value too."""
    cache, built = RevisionCache(), []
    revisions = [(1, 1, "a"), (2, 1, "a"), (2, 2, "a"), (2, 2, "b"), (1, 1, "a")]
    for number, revision in enumerate(revisions):
        value = None if number == 3 else number
        for _ in range(2):
            found = cache.get("index", revision, lambda v=value: built.append(v) or v)
            assert found == value
    assert built == [0, 1, 2, None, 4]
    assert cache.get(("strings", 1, 3), 1, lambda: "two") == "two"
    assert cache.get("index", (1, 1, "a"), lambda: "three") == 4
