"""Files that are whole or not there: arrays without pickle, folders replaced in one step."""

import ctypes
import io
import os
import shutil
import tempfile
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Callable, Dict, Iterator, List, Union

import numpy as np

from .errors import Errors


def pack_arrays(arrays: Dict[str, np.ndarray]) -> bytes:
    """Arrays as the bytes of an uncompressed .npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack_arrays(data: bytes) -> Dict[str, np.ndarray]:
    """The arrays ``pack_arrays`` packed. Never unpickles."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


@contextmanager
def replacing(path: Union[str, Path]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the path's place only when all went well.

    What is written goes to a temporary name in the same folder (made if need be),
    so that nobody ever sees half a file; on any error the old file stays as it was.
    """
    # A link stays a link: what it points to is replaced.
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_file(path: Path, data: bytes) -> None:
    """Write a file, all or nothing."""
    with replacing(path) as file:
        file.write(data)


def write_folder(path: Path, files: Dict[str, Callable[[], bytes]]) -> None:
    """Write ``files`` into a folder under a temporary name, then put it in place of ``path``."""
    with replacing_folder(path) as folder:
        for name, make in files.items():
            (folder / name).write_bytes(make())


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A folder under a temporary name that takes the path's place only when all went well."""
    # A link stays a link: what it points to is replaced.
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        yield folder
        folder.chmod(0o755)
        if not path.exists():
            os.replace(folder, path)
        elif not _exchange(folder, path):
            old = folder.with_name(folder.name + "-old")
            os.replace(path, old)
            try:
                os.replace(folder, path)
            except BaseException:
                os.replace(old, path)
                raise
            shutil.rmtree(old)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _exchange(left: Path, right: Path) -> bool:
    """Give two folders each other's names, in one step; False where the system has none for it."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return rename(here, os.fsencode(left), here, os.fsencode(right), exchange) == 0


def read_folder(path: Path, names: List[str]) -> Dict[str, bytes]:
    """The named files of a folder, all of them or an error that says which is missing."""
    missing = [name for name in names if not (path / name).is_file()]
    if missing:
        raise ValueError(Errors.E010.format(path=path, missing=", ".join(missing)))
    return {name: (path / name).read_bytes() for name in names}
