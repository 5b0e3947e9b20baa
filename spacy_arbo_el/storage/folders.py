"""Replacing folders whole, and the right to change them.

A folder is written beside the old one, with hard links to what does not change, and then the two
exchange their names. Its ``write.lock`` is linked too, so that who has locked it keeps it locked.
"""

import contextlib
import ctypes
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ..base.errors import ArboError, Errors
from .files import (
    CAN_LOCK,
    PathLike,
    abandoned,
    is_temporary,
    leftovers,
    make_folder,
    sync_folder,
    sync_tree,
)
from .files import temporary as temporary_beside

LOCK = "write.lock"
# The folder that is being replaced, within the temporary one.
OLD = "old"
# Seconds to wait for a program that is replacing a folder at this moment.
PATIENCE = 10.0


@dataclass(frozen=True)
class FolderKind:
    """Contents of a kind of folder. Only a folder that holds nothing else is replaced.

    noun: What messages call such a folder, such as "a pipeline".
    names: Function from an existing folder to a regular expression of all names that may be in it
        beside ``write.lock``; None where the folder is not of this kind.
    nested: Whether it may hold folders. Their content is not checked.
    """

    noun: str
    names: Callable[[Path], str | None]
    nested: bool = False

    def strangers(self, folder: Path) -> list[str]:
        """The names in a folder that don't belong there: links, and all where it is of no kind."""
        pattern = re.compile(f"{self.names(folder) or '(?!)'}|{re.escape(LOCK)}")
        return [
            entry.name
            for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)
            if not self._belongs(entry, pattern)
        ]

    def _belongs(self, entry: "os.DirEntry[str]", pattern: "re.Pattern[str]") -> bool:
        if entry.is_symlink():
            return False
        if is_temporary(entry.name):
            return True
        is_known = pattern.fullmatch(entry.name) is not None
        return is_known and (entry.is_file() or (self.nested and entry.is_dir()))


def check_replaceable(path: PathLike, kind: FolderKind) -> Path:
    """The real path of a folder that is missing, empty or of the kind. Else ValueError."""
    # A link stays a link: the folder it points to is replaced.
    target = Path(os.path.realpath(path))
    if not os.path.lexists(target):
        return target
    if not target.is_dir():
        raise Errors.E031(path=path, noun=kind.noun)
    strangers = kind.strangers(target)
    if strangers:
        more = f" and {len(strangers) - 3} more" if len(strangers) > 3 else ""
        names = ", ".join(strangers[:3]) + more
        raise Errors.E030(path=path, noun=kind.noun, names=names)
    if os.path.ismount(target) or _is_working_directory(target):
        raise Errors.E032(path=path, inner=Path(path, "new"))
    return target


def _is_working_directory(folder: Path) -> bool:
    try:
        working = Path.cwd()
    except OSError:  # it was removed
        return False
    return folder == working or folder in working.parents


@contextlib.contextmanager
def replacing_folder(path: PathLike, kind: FolderKind) -> Iterator[Path]:
    """Write to a folder that replaces ``path`` once the block ends without an error.

    Nothing is replaced but a folder of the same kind or an empty one, see ``check_replaceable``.
    After a kill, ``path`` is the old folder or the new one. Where the system can't exchange two
    folders in one step, it may be missing: ``restore`` brings it back, as the next
    ``replacing_folder`` does, which also removes what was left.

    kind: What a folder holds that may be replaced, such as ``PIPELINE``.
    """
    target = check_replaceable(path, kind)
    target.parent.mkdir(parents=True, exist_ok=True)
    restore(target)
    with temporary_beside(target, make_folder) as place:
        folder = place / "new"
        folder.mkdir()
        yield folder
        if (target / LOCK).is_file() and not (folder / LOCK).exists():
            link(target / LOCK, folder / LOCK)
        sync_tree(folder)
        # Files may have been put into the old one in the meantime.
        check_replaceable(path, kind)
        _swap(folder, target)


def _swap(folder: Path, target: Path) -> None:
    """Rename a folder to ``target``, moving the present one aside."""
    if not target.exists():
        os.rename(folder, target)
    else:
        folder.chmod(stat.S_IMODE(target.stat().st_mode))
        if not exchange(folder, target):
            old = folder.with_name(OLD)
            os.rename(target, old)
            try:
                os.rename(folder, target)
            except BaseException:
                os.rename(old, target)
                raise
    sync_folder(target.parent)


def exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two folders atomically; return False where the system can't."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    at_fdcwd = -100
    rename_exchange = 2
    return (
        rename(
            at_fdcwd,
            os.fsencode(first),
            at_fdcwd,
            os.fsencode(second),
            rename_exchange,
        )
        == 0
    )


def restore(target: Path) -> None:
    """Restore a folder that a killed replacement left without a name, or wait for one at work."""
    end = time.monotonic() + PATIENCE
    while not os.path.lexists(target):
        halfway = [path for path in leftovers(target) if (path / OLD).is_dir()]
        if not halfway or time.monotonic() > end:
            return
        with abandoned(halfway[0]) as is_abandoned:
            if is_abandoned or not CAN_LOCK:
                with contextlib.suppress(OSError):
                    os.rename(halfway[0] / OLD, target)
                continue
        time.sleep(0.05)


def link(source: Path, target: Path) -> None:
    """Hard-link a file or a folder's files, or copy. They are copied where links fail."""
    if source.is_dir():
        target.mkdir()
        for entry in sorted(source.iterdir()):
            if not is_temporary(entry.name):
                link(entry, target / entry.name)
        return
    try:
        os.link(source, target)
    except OSError:  # not every file system can
        shutil.copy2(source, target)


@contextlib.contextmanager
def locked_folder(
    path: PathLike, refusal: ArboError, wait: float = 0.0
) -> Iterator[None]:
    """Hold the right to change a folder. ``refusal`` is raised where another holds it.

    The lock is on its ``write.lock``, and ends with the process. A thread may take it again. A
    folder that does not exist is not locked, nor one on Windows, which could not be renamed then.

    wait: Seconds to wait for the other program.
    """
    folder = Path(os.path.realpath(path))
    if not folder.is_dir() or not CAN_LOCK:
        yield
        return
    lock = FileLock(str(folder / LOCK), is_singleton=True)
    acquire(lock, refusal, wait)
    try:
        yield
    finally:
        lock.release()


def acquire(lock: FileLock, refusal: ArboError, wait: float = 0.0) -> None:
    """Take the lock of a folder. ValueError where another has it, or where it is no plain file."""
    try:
        if os.path.lexists(lock.lock_file) and not stat.S_ISREG(
            os.lstat(lock.lock_file).st_mode
        ):
            raise refusal
        lock.acquire(timeout=wait)
    except Timeout:
        raise refusal from None
