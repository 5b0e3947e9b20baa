"""What tests of threads share."""

import os
import threading


def run_in_threads(*calls, seconds=300):
    """Run functions at the same time; raise the first error of any.

    seconds: After so long, a thread counts as one that waits for ever.
    """
    errors = []

    def run(call):
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), "a thread waits for ever"
    if errors:
        raise errors[0]


def forked(check):
    """Whether a function is true in a forked process, which ends with it."""
    child = os.fork()
    if not child:  # pragma: no cover - another process
        os._exit(7 if check() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
