"""The right to change a folder that is replaced as a whole, such as a pipeline."""

import contextlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional

from .io import PathLike

if sys.platform != "win32":
    import fcntl

# Seconds between two tries.
PAUSE = 0.05


class _Held(NamedTuple):
    """A folder that a thread of this process has locked.

    descriptors: Of the folder, and of those that are to take its place.
    """

    thread: int
    descriptors: List[int]


_held: Dict[str, _Held] = {}
_guard = threading.Lock()


@contextlib.contextmanager
def locked_folder(path: PathLike, refusal: str, wait: float = 0.0) -> Iterator[None]:
    """Have the right to change a folder; ValueError where another thread or program has it.

    The lock is on the folder itself: it leaves no file and ends with the process. A thread may take
    it again. A folder that does not exist is not locked.

    refusal: The message of the error.
    wait: Seconds to wait for the other program.
    """
    real = os.path.realpath(path)
    end = time.monotonic() + wait
    while not (is_own := _has(real)):
        with _guard:
            descriptor = None if real in _held else _lock_present(real)
            if descriptor is not None:
                _held[real] = _Held(threading.get_ident(), [descriptor])
                break
        if not os.path.isdir(real):
            break
        if time.monotonic() >= end:
            raise ValueError(refusal)
        time.sleep(PAUSE)
    try:
        yield
    finally:
        if not is_own:
            _release(real)


def lock_successor(path: PathLike, folder: Path) -> None:
    """Extend the lock of a folder to the one that is about to take its name."""
    real = os.path.realpath(path)
    if _has(real):
        descriptor = _open_and_lock(str(folder))
        if descriptor is not None:
            _held[real].descriptors.append(descriptor)


def has_lock(path: PathLike) -> bool:
    """Whether this thread has the right to change a folder."""
    return _has(os.path.realpath(path))


def _has(real: str) -> bool:
    held = _held.get(real)
    return held is not None and held.thread == threading.get_ident()


def _release(real: str) -> None:
    with _guard:
        held = _held.pop(real, None)
    for descriptor in held.descriptors if held is not None else ():
        with contextlib.suppress(OSError):
            _unlock(descriptor)
        os.close(descriptor)


def _lock_present(real: str) -> Optional[int]:
    """A descriptor of the locked folder that has this name; None where it can't be locked."""
    descriptor = _open_and_lock(real)
    if descriptor is None:
        return None
    try:
        # Another program may have put another folder in its place before it was locked.
        if sys.platform == "win32" or os.path.samestat(os.fstat(descriptor), os.stat(real)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _open_and_lock(name: str) -> Optional[int]:
    try:
        # Windows can't open folders: there, only the threads of a process keep each other out.
        descriptor = os.open(name if sys.platform != "win32" else os.devnull, os.O_RDONLY)
    except OSError:
        return None
    try:
        if sys.platform != "win32":
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _unlock(descriptor: int) -> None:
    # A forked process shares the lock; closing the descriptor alone would leave it locked there.
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_UN)


if hasattr(os, "register_at_fork"):
    # A forked process has no right to what its parent has locked.
    os.register_at_fork(after_in_child=_held.clear)
