"""Temporary files and folders beside what they replace, and what killed writers left of them.

The temporary name of ``kb`` is ``.kb.<32 hexadecimal digits>.tmp``. Its writer holds a lock on it,
which ends with the process, so that what a killed program left can be told from what another
program is writing.
"""

import contextlib
import os
import re
import shutil
import sys
import time
import uuid
from pathlib import Path
from typing import Callable, Iterator, List, Optional

if sys.platform != "win32":
    import fcntl

# The folder that is being replaced, within the temporary one.
OLD = "old"
# Seconds to wait for a program that is replacing a folder at this moment.
PATIENCE = 10.0

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp", re.DOTALL)


def is_temporary(name: str) -> bool:
    """Whether a file or folder has one of our temporary names."""
    return _TEMPORARY.fullmatch(name) is not None


class Temporary:
    """A temporary file or folder of this process, until it is released.

    target: What it is to replace.
    make: Function that makes the file or folder and returns a descriptor of it.
    """

    def __init__(self, target: Path, make: Callable[[Path], int]):
        while True:
            self.path = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
            self._descriptor = make(self.path)
            _lock(self._descriptor)
            # Another program may have removed it before it was locked.
            if os.path.lexists(self.path):
                return
            os.close(self._descriptor)

    def release(self) -> None:
        """Give up the lock, after the file or folder was renamed or removed."""
        os.close(self._descriptor)


def make_file(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666)


def make_folder(path: Path) -> int:
    path.mkdir(mode=0o700)
    # Windows can't open folders. Any descriptor will do, since nothing is locked there.
    return os.open(path if sys.platform != "win32" else os.devnull, os.O_RDONLY)


def remove_abandoned(target: Path) -> None:
    """Remove what killed programs left of writing ``target``. ``restore`` comes first."""
    for path in leftovers(target):
        with _abandoned(path) as is_abandoned:
            if not is_abandoned:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()


def restore(target: Path) -> None:
    """Bring a folder back whose replacement was killed when it had no name for a moment.

    Where another program is replacing it at this moment, wait until it is there.
    """
    end = time.monotonic() + PATIENCE
    while not os.path.lexists(target):
        halfway = [path for path in leftovers(target) if (path / OLD).is_dir()]
        if not halfway or time.monotonic() > end:
            return
        with _abandoned(halfway[0]) as is_abandoned:
            if is_abandoned or sys.platform == "win32":
                with contextlib.suppress(OSError):
                    os.rename(halfway[0] / OLD, target)
                continue
        time.sleep(0.05)


def leftovers(target: Path) -> List[Path]:
    """The temporary files and folders beside ``target``, in use or abandoned."""
    name = re.compile(re.escape(f".{target.name}.") + r"[0-9a-f]{32}\.tmp")
    try:
        entries = os.listdir(target.parent)
    except OSError:
        return []
    return [target.with_name(entry) for entry in sorted(entries) if name.fullmatch(entry)]


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    with contextlib.suppress(OSError):  # not every file system can
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Wait until all files of a folder and of the folders in it are on the disk."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                _sync_file(path)
        sync_folder(Path(place))


def _sync_file(path: Path) -> None:
    # Windows can only flush what is open for writing.
    flags = os.O_RDWR if sys.platform == "win32" else os.O_RDONLY
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _abandoned(path: Path) -> Iterator[bool]:
    """Whether no process is writing a temporary file or folder. Locked within the block if so."""
    descriptor = _open(path)
    if descriptor is None:
        yield False
        return
    try:
        yield _lock(descriptor, wait=False)
    finally:
        os.close(descriptor)


def _open(path: Path) -> Optional[int]:
    if sys.platform == "win32":
        return None
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None


def _lock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file or folder; False where it is locked already, or can't be locked."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True
