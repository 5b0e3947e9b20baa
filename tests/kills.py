"""Actions in forked processes that are killed at a point, or after a time."""

import os
import select
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass

import torch
from thinc.api import require_cpu
from tqdm import tqdm

from spacy_arbo_el.storage import folders

from .threads import PATIENCE

# Calls that read or write files.
CALLS = {
    *("open", "write", "close", "flush", "fsync", "replace", "rename", "unlink", "remove"),
    *("mkdir", "rmdir", "chmod", "lstat", "stat", "scandir", "listdir", "flock", "execute"),
    *("executemany", "backup", "touch", "truncate", "tofile", "writelines"),
}
# Events of Python's audit that change files, and what tests raise themselves.
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"}
STEP = "arbo_tests.step"

# A lock of tqdm is shared with forked processes: killed while it holds the lock, one would leave
# this process waiting for ever. A lock of threads is not shared, and nothing holds it at a fork.
tqdm.monitor_interval = 0
tqdm.set_lock(threading.RLock())


@dataclass
class Points:
    """The points of a process, counted from 1, which is killed at one of them."""

    kill_at: int
    count: int = 0

    def reached(self):
        self.count += 1
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def at_calls(self):
        """Count each call that uses files, and both ends of the exchange of two folders."""
        exchange = folders.exchange

        def counted(*both):
            self.reached()
            done = exchange(*both)
            self.reached()
            return done

        def profile(frame, event, function):
            if event == "c_call" and function.__name__ in CALLS:
                self.reached()

        folders.exchange = counted
        sys.setprofile(profile)

    def at_changes(self):
        """Count changes of files alone, and steps: cheaper than each call."""

        def hook(event, args):
            is_point = event in CHANGES or event == STEP
            if event == "open" and isinstance(args[2], int):
                is_point = bool(args[2] & (os.O_WRONLY | os.O_RDWR))
            if is_point:
                self.reached()

        sys.addaudithook(hook)


@dataclass(frozen=True)
class Run:
    """What came of a process.

    killed: Whether it was killed before its end.
    said: The lines that it wrote before.
    points: How many points it had, if it was not killed.
    """

    killed: bool
    said: list[bytes]
    points: int


def in_process(action, kill_at=0, kill_after=None, wait=0, watch=Points.at_calls):
    """Run an action in a forked process, which may be killed.

    action: Function of a function that writes a line to this process.
    kill_at: The point at which the process is killed; 0 for none.
    kill_after: The seconds after which it is killed.
    wait: How many lines it says before these seconds begin.
    """
    reading, writing = os.pipe()
    process = os.fork()
    if not process:  # pragma: no cover - another process
        code = 1
        try:
            os.close(reading)
            # A forked process has no threads of torch, and no CUDA.
            require_cpu()
            torch.set_num_threads(1)
            points = Points(kill_at)
            if kill_after is None:
                watch(points)
            action(lambda line=b"": os.write(writing, line + b"\n"))
            sys.setprofile(None)
            os.write(writing, b"%d\n" % points.count)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    said = b""
    if kill_after is not None:
        said = _read_lines(reading, wait)
        time.sleep(kill_after)
        os.kill(process, signal.SIGKILL)
    with os.fdopen(reading, "rb") as file:
        said = (said + file.read()).split(b"\n")[:-1]
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code in (0, -signal.SIGKILL), "the action itself failed"
    return Run(True, said, 0) if code else Run(False, said[:-1], int(said[-1]))


def _read_lines(reading, count):
    """Read what a process says until there are so many lines, or until it ends."""
    said = b""
    while said.count(b"\n") < count:
        is_there = select.select([reading], [], [], PATIENCE)[0]
        assert is_there, f"waited for {PATIENCE:.0f} s: line {said.count(10) + 1} of {count}"
        new = os.read(reading, 1 << 16)
        if not new:
            break
        said += new
    return said
