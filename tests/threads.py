"""What tests of threads share."""

import os
import signal
import threading
import time

from thinc.api import require_cpu

# Seconds after which a test counts as one that waits for ever: more than any wait takes on a slow
# machine beside other work.
PATIENCE = 600.0


def wait_for(event, what):
    """Wait until an event is set, and say what is waited for where it never is."""
    assert event.wait(PATIENCE), f"waited for {PATIENCE:.0f} s: {what}"


def wait_until(is_so, what):
    """Wait until a function returns something true, which is returned too."""
    end = time.monotonic() + PATIENCE
    while not (found := is_so()):
        assert time.monotonic() < end, f"waited for {PATIENCE:.0f} s: {what}"
        time.sleep(0.01)
    return found


def run_in_threads(*calls, seconds=PATIENCE):
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
    for thread, call in zip(threads, calls):
        thread.join(seconds)
        # An error of another thread may be why this one waits.
        if errors:
            raise errors[0]
        assert not thread.is_alive(), f"{call} has not ended after {seconds:.0f} s"


def forked(*checks):
    """Whether functions are all true, each in a forked process of its own, at the same time."""
    children = []
    for check in checks:
        child = os.fork()
        if not child:  # pragma: no cover - another process
            signal.alarm(int(PATIENCE))
            # There is no CUDA in it.
            require_cpu()
            os._exit(7 if check() else 1)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return codes == [7] * len(checks)
