"""Atomic writing of files, under temporary names. They get their name once they are on the disk.

The temporary name of ``kb`` is ``.kb.<32 hexadecimal digits>.tmp``. Its writer holds a lock on it,
which ends with the process, so that what a killed program left can be told from what another
program is writing.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import srsly

from ..base.errors import Errors

PathLike = str | Path
# The name of a manifest in the folder whose files it lists.
MANIFEST = "manifest.json"
# Windows can't open folders: nothing is locked there, and nothing of a killed program is removed.
CAN_LOCK = sys.platform != "win32"
if sys.platform != "win32":
    import fcntl

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp", re.DOTALL)


def write_file(path: Path, data: bytes) -> None:
    """Write a file in full or not at all."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: Path, value: Any, indent: int | None = None) -> None:
    """Write a value as JSON, in full or not at all."""
    write_file(path, json.dumps(value, indent=indent).encode("utf8"))


def json_lines(rows: Iterable[Any]) -> bytes:
    """Rows as JSON, one per line."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    return "".join(lines).encode("utf8")


def pack_arrays(arrays: dict[str, np.ndarray]) -> bytes:
    """Arrays as the bytes of an uncompressed .npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack_arrays(data: bytes) -> dict[str, np.ndarray]:
    """The arrays that ``pack_arrays`` packed, read without unpickling.

    ValueError for compressed ones, which a few bytes may be gigabytes of.
    """
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        for member in arrays.zip.infolist():
            if member.compress_type:
                raise ValueError(
                    f"the arrays in {member.filename!r:.40} are compressed"
                )
        return {name: arrays[name] for name in arrays.files}


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """Write to a file that replaces ``path``, on the disk, once the block ends without an error.

    A device or a pipe, such as /dev/stdout, is written to. Folders are created if necessary.
    """
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        with open(path, "wb") as device:
            yield device
        return
    # A link stays a link: the file it points to is replaced.
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(Errors.E033.format(path=path))
    target.parent.mkdir(parents=True, exist_ok=True)
    with temporary(target, _make_file) as place:
        with place.open("r+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(place, target)
        sync_folder(target.parent)


@contextlib.contextmanager
def temporary(target: Path, make: Callable[[Path], int]) -> Iterator[Path]:
    """A temporary file or folder beside ``target``, removed at the end if it is still there.

    What killed programs have left is removed before. make: Returns a descriptor of what it made.
    """
    remove_abandoned(target)
    path, descriptor = _make_and_lock(target, make)
    try:
        yield path
    finally:
        _remove(path)
        os.close(descriptor)


def _make_and_lock(target: Path, make: Callable[[Path], int]) -> tuple[Path, int]:
    while True:
        path = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
        descriptor = make(path)
        _lock(descriptor)
        # Another program may have removed it before it was locked.
        if os.path.lexists(path):
            return path, descriptor
        os.close(descriptor)


def _make_file(path: Path) -> int:
    return os.open(
        path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666
    )


def make_folder(path: Path) -> int:
    path.mkdir(mode=0o700)
    return os.open(path if CAN_LOCK else os.devnull, os.O_RDONLY)


def is_temporary(name: str) -> bool:
    return _TEMPORARY.fullmatch(name) is not None


def remove_abandoned(target: Path) -> None:
    """Remove what killed programs left of writing ``target``. ``restore`` comes first."""
    for path in leftovers(target):
        with abandoned(path) as is_abandoned:
            if is_abandoned:
                _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def leftovers(target: Path) -> list[Path]:
    """Temporary files and folders beside ``target``. They may be in use."""
    name = re.compile(re.escape(f".{target.name}.") + r"[0-9a-f]{32}\.tmp")
    try:
        entries = os.listdir(target.parent)
    except OSError:
        return []
    return [
        target.with_name(entry) for entry in sorted(entries) if name.fullmatch(entry)
    ]


@contextlib.contextmanager
def abandoned(path: Path) -> Iterator[bool]:
    """Lock an abandoned temporary file or folder for the block; False if it is used."""
    descriptor: int | None = None
    if CAN_LOCK:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield descriptor is not None and _lock(descriptor, wait=False)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(descriptor: int, *, wait: bool = True) -> bool:
    """Lock an open file or folder. False where it is locked already, or can't be locked."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def sync_folder(path: Path) -> None:
    """Wait until a folder's names are on the disk."""
    with contextlib.suppress(OSError):  # not every file system can
        _sync(path, os.O_RDONLY)


def sync_tree(folder: Path) -> None:
    """Wait until a folder's whole tree is on the disk."""
    for place, _, names in os.walk(folder, topdown=False):
        for path in (Path(place, name) for name in names):
            if path.is_file() and not path.is_symlink():
                # Windows can only flush files open for writing.
                _sync(path, os.O_RDONLY if CAN_LOCK else os.O_RDWR)
        sync_folder(Path(place))


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Checksum:
    """The length and the hash of a file."""

    size: int
    hash: str

    @classmethod
    def of(cls, data: bytes) -> "Checksum":
        return cls(len(data), hashlib.blake2b(data, digest_size=16).hexdigest())

    def problem(self, data: bytes) -> str:
        """Error in the file's bytes; "" if unchanged."""
        actual = Checksum.of(data)
        if actual == self:
            return ""
        if actual.size != self.size:
            return f"it has {actual.size} bytes instead of {self.size}"
        return "its checksum is wrong"


@dataclass(frozen=True)
class Manifest:
    """List of what was written into a folder.

    files: The checksum of each file.
    about: What else is known of them, JSON-serialisable.
    """

    files: Mapping[str, Checksum]
    about: Mapping[str, Any]

    def to_bytes(self, format: str, version: int) -> bytes:
        """JSON with the name and the version of a format."""
        files = {name: [sum.size, sum.hash] for name, sum in self.files.items()}
        content = {"format": format, "version": version, "files": files, **self.about}
        return srsly.json_dumps({**content, "checksum": _checksum(content)}).encode(
            "utf8"
        )

    @classmethod
    def from_bytes(cls, data: bytes, format: str, version: int) -> "Manifest":
        """Load the result of ``to_bytes``; ValueError if it is invalid or something else."""
        try:
            content: dict[str, Any] = dict(srsly.json_loads(data.decode("utf8")))
            if (content.get("format"), content.get("version")) != (format, version):
                raise ValueError(f"format version {content.get('version')!r:.20}")
            if content.pop("checksum") != _checksum(content):
                raise ValueError("its checksum is wrong")
            del content["format"], content["version"]
            files = {
                str(name): Checksum(int(size), str(hash))
                for name, (size, hash) in content.pop("files").items()
            }
            return cls(files, content)
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None


def _checksum(content: Mapping[str, Any]) -> str:
    return Checksum.of(json.dumps(content, sort_keys=True).encode("utf8")).hash
