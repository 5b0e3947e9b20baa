"""Reading text files line by line, and writing files and folders in full or not at all."""

import ctypes
import io
import json
import os
import shutil
import tempfile
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterator, Tuple, Union

import numpy as np

from .errors import Errors

PathLike = Union[str, Path]


def line_error(path: PathLike, line: int, problem: str) -> ValueError:
    """The error for an invalid line: it names the file, the line and the problem."""
    return ValueError(Errors.E100.format(path=path, line=line, problem=problem))


def check_exists(path: PathLike, hint: str = "Check the path.") -> Path:
    """The path as a ``Path``. Raises FileNotFoundError if there is no such file.

    hint: What the message advises.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(Errors.E101.format(path=path, hint=hint))
    return path


def read_lines(path: PathLike) -> Iterator[Tuple[int, str]]:
    """Yield (line number from 1, line without its end) of a UTF-8 file.

    Only a line feed ends a line, with or without a carriage return before it. Other characters at
    which ``str.splitlines`` splits are part of the text. Raises ValueError with file and line if
    the bytes are not valid UTF-8.
    """
    with check_exists(path).open("rb") as file:
        for number, raw in enumerate(file, 1):
            if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
                raw = raw[3:]
            try:
                yield number, raw.rstrip(b"\r\n").decode("utf8")
            except UnicodeDecodeError as err:
                problem = f"the file isn't UTF-8 here ({err.reason}). Save it as UTF-8."
                raise line_error(path, number, problem) from None


def read_records(path: PathLike) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """Yield (line number, JSON object) for each line that isn't empty.

    Raises ValueError with file and line if a line is not a JSON object.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as err:
            problem = f"no valid JSON: {err.msg} at column {err.colno}. Write one object per line."
            raise line_error(path, number, problem) from None
        except (ValueError, RecursionError) as err:
            raise line_error(path, number, f"no valid JSON: {err}.") from None
        if not isinstance(record, dict):
            problem = f"expected a JSON object, got {json_kind(record)}."
            raise line_error(path, number, problem)
        yield number, record


def json_kind(value: Any) -> str:
    """The kind of a JSON value, for messages."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return names.get(type(value), "null" if value is None else f"the number {value!r:.20}")


def is_text(value: object) -> bool:
    """Whether the value is a string that can be encoded.

    JSON can contain a lone surrogate (``"\\ud83d"``), which is half a character. spaCy fails on it
    later, with an unclear message.
    """
    if not isinstance(value, str):
        return False
    try:
        value.encode("utf8")
    except UnicodeEncodeError:
        return False
    return True


def pack_arrays(arrays: Dict[str, np.ndarray]) -> bytes:
    """Arrays as the bytes of an uncompressed .npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack_arrays(data: bytes) -> Dict[str, np.ndarray]:
    """The arrays that ``pack_arrays`` packed. Never unpickles."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


@contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """A file to write to, which replaces the one at ``path`` when the block ends without an error.

    It has a temporary name in the same folder until then, and the folder is created if necessary.
    On an error the old file stays as it was.
    """
    # A link stays a link: the file it points to is replaced.
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
    """Write a file in full or not at all."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A folder to write to, which replaces ``path`` when the block ends without an error.

    It has a temporary name until then. On an error the old folder stays as it was.
    """
    # A link stays a link: the folder it points to is replaced.
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
    """Exchange the names of two folders in one step; False where the system can't."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    at_fdcwd, rename_exchange = -100, 2
    return rename(at_fdcwd, os.fsencode(left), at_fdcwd, os.fsencode(right), rename_exchange) == 0
