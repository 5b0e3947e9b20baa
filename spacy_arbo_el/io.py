"""Reading text files line by line, and writing files and folders in full or not at all."""

import ctypes
import gzip
import io
import json
import os
import re
import shutil
import stat
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import (
    Any,
    BinaryIO,
    Callable,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Tuple,
    Union,
    cast,
)

import numpy as np

from .errors import Errors
from .temporary import (
    OLD,
    Temporary,
    is_temporary,
    make_file,
    make_folder,
    remove_abandoned,
    restore,
    sync_folder,
    sync_tree,
)

PathLike = Union[str, Path]
# Takes the error of a line that can't be read: raises it, or keeps it and goes on.
OnBad = Callable[[ValueError], None]
# Characters of what an error says about a line.
MAX_PROBLEM = 500


def line_error(path: PathLike, line: int, problem: str) -> ValueError:
    """The error for an invalid line: it names the file, the line and the problem.

    A problem that quotes a long value is shortened in the middle.
    """
    if len(problem) > MAX_PROBLEM:
        problem = f"{problem[: MAX_PROBLEM // 2]} … {problem[-MAX_PROBLEM // 2 :]}"
    return ValueError(Errors.E100.format(path=path, line=line, problem=problem))


def check_exists(path: PathLike, hint: str = "Check the path.") -> Path:
    """The path as a ``Path``. Raises FileNotFoundError if there is no such file.

    hint: What the message advises.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(Errors.E101.format(path=path, hint=hint))
    return path


def throw(error: ValueError) -> None:
    """What readers do with a bad line, unless they are given something else to do."""
    raise error from None


def ignore(error: ValueError) -> None:
    """What to do with the error of a line that is read twice, the first time."""


class Lines(NamedTuple):
    """A part of a file.

    start: The number of its first line, from 0.
    stop: The number behind that of its last line; None for the end of the file.
    offset: The byte at which its first line begins.
    """

    start: int = 0
    stop: Optional[int] = None
    offset: int = 0


WHOLE = Lines()
OTHER_ENCODING = "Save it as UTF-8, or give --encoding cp1252, or another, if the command has it."


def read_lines(
    path: PathLike,
    bad: OnBad = throw,
    lines: Lines = WHOLE,
    encoding: str = "utf8",
) -> Iterator[Tuple[int, str]]:
    """Yield (line number from 1, line without its end) of a file, which may be packed (.gz).

    Only a line feed ends a line, with or without a carriage return before it. Other characters at
    which ``str.splitlines`` splits are part of the text. Raises ValueError with file and line if
    the bytes are not of the encoding, or with the file if its packing is broken.

    bad: What to do with the error of such a line, which is then left out.
    lines: The part of the file to read.
    encoding: Such as "cp1252".
    """
    count = None if lines.stop is None else lines.stop - lines.start
    if not check_encoding(encoding):
        yield from _read_wide_lines(path, encoding)
        return
    with _open(check_exists(path)) as file:
        file.seek(lines.offset)
        for number, raw in enumerate(_unpacked(file, path, count), lines.start + 1):
            if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
                raw = raw[3:]
            try:
                yield number, raw.rstrip(b"\r\n").decode(encoding)
            except UnicodeDecodeError as err:
                name = encoding_name(encoding)
                problem = f"the file isn't {name} here ({err.reason}). {OTHER_ENCODING}"
                bad(line_error(path, number, problem))


def encoding_name(encoding: str) -> str:
    """An encoding as people know it."""
    return "UTF-8" if encoding == "utf8" else encoding


def check_encoding(encoding: str) -> bool:
    """Whether a line feed is one byte, as in most encodings. ValueError for an unknown one."""
    try:
        return "\n".encode(encoding) == b"\n"
    except LookupError:
        raise ValueError(Errors.E108.format(encoding=encoding)) from None


def _read_wide_lines(path: PathLike, encoding: str) -> Iterator[Tuple[int, str]]:
    """All lines of a file in an encoding such as UTF-16, in which Excel writes."""
    number = 0
    with _open(check_exists(path)) as file:
        try:
            for number, line in enumerate(io.TextIOWrapper(file, encoding, newline="\n"), 1):
                yield number, line.rstrip("\r\n")
        except UnicodeError as error:
            problem = f"the file isn't {encoding} behind this line ({error})."
            raise line_error(path, max(number, 1), problem) from None


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _unpacked(file: BinaryIO, path: PathLike, count: Optional[int]) -> Iterator[bytes]:
    """The first lines of a file."""
    try:
        yield from islice(file, count)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise line_error(path, 1, f"no valid gzip: {error}.") from None


def read_start(path: Path, size: int) -> bytes:
    """At most the first ``size`` bytes of a file; none where there is no plain file."""
    # To open a pipe would wait for a writer.
    if path.is_symlink() or not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(size)


def read_records(
    path: PathLike,
    bad: OnBad = throw,
    lines: Lines = WHOLE,
    encoding: str = "utf8",
) -> Iterator[Tuple[int, Dict[str, Any]]]:
    """Yield (line number, JSON object) for each line that isn't empty.

    Raises ValueError with file and line if a line is not a JSON object.

    bad: What to do with the error of such a line, which is then left out.
    lines: The part of the file to read.
    encoding: See ``read_lines``.
    """
    for number, line in read_lines(path, bad, lines, encoding):
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_constant=_no_number)
        except json.JSONDecodeError as err:
            problem = f"no valid JSON: {err.msg} at column {err.colno}. Write one object per line."
            bad(line_error(path, number, problem))
            continue
        except (ValueError, RecursionError) as err:
            bad(line_error(path, number, f"no valid JSON: {err}."))
            continue
        if not isinstance(record, dict):
            problem = f"expected a JSON object, got {json_kind(record)}."
            bad(line_error(path, number, problem))
            continue
        yield number, record


def _no_number(name: str) -> None:
    """Python would read NaN and Infinity, which are no JSON."""
    raise ValueError(f"{name} is no number")


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
    if value.isascii():
        return True
    try:
        value.encode("utf8")
    except UnicodeEncodeError:
        return False
    return True


def is_storable(value: object) -> bool:
    """Whether the value is a text without NUL, at which SQLite and C would end it."""
    return isinstance(value, str) and "\0" not in value and is_text(value)


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
    On an error the old file stays as it was. The file is on the disk when the block has ended.
    A device or a pipe, such as /dev/stdout, is written to.
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
    remove_abandoned(target)
    temporary = Temporary(target, make_file)
    try:
        with temporary.path.open("r+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary.path, target)
        sync_folder(target.parent)
    except BaseException:
        temporary.path.unlink(missing_ok=True)
        raise
    finally:
        temporary.release()


def write_file(path: Path, data: bytes) -> None:
    """Write a file in full or not at all."""
    with replacing(path) as file:
        file.write(data)


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an array as a .npy file, which can be mapped, in full or not at all."""
    with replacing(path) as file:
        np.save(file, array, allow_pickle=False)


@dataclass(frozen=True)
class FolderKind:
    """What folders of a kind hold. Only a folder that holds nothing else is replaced.

    noun: What messages call such a folder, such as "a pipeline".
    names: Function from an existing folder to a regular expression of all names that may be in it;
        None where the folder is not of this kind.
    nested: Whether it may hold folders. What is in these is not checked.
    """

    noun: str
    names: Callable[[Path], Optional[str]]
    nested: bool = False

    def strangers(self, folder: Path) -> List[str]:
        """The names in a folder that don't belong there. Symbolic links never belong there.

        All names, where the folder is not of this kind.
        """
        pattern = re.compile(self.names(folder) or "(?!)")
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


def _names_in_pipeline(folder: Path) -> Optional[str]:
    """The pattern of names in a pipeline: spaCy's own, and the components that meta.json lists."""
    try:
        meta = json.loads(read_start(folder / "meta.json", 1 << 24))
        components = [*meta["components"], "config.cfg", "meta.json", "tokenizer", "vocab"]
        return "|".join(re.escape(name) for name in components)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


# A folder that ``nlp.to_disk`` wrote.
PIPELINE = FolderKind("a pipeline", _names_in_pipeline, nested=True)


def check_replaceable(path: PathLike, kind: FolderKind) -> Path:
    """The real path of a folder that may be written: there is none, or it is empty or of the kind.

    Otherwise ValueError. To be called before long work; ``replacing_folder`` calls it as well.
    """
    # A link stays a link: the folder it points to is replaced.
    target = Path(os.path.realpath(path))
    if not os.path.lexists(target):
        return target
    if not target.is_dir():
        raise ValueError(Errors.E031.format(path=path, noun=kind.noun))
    strangers = kind.strangers(target)
    if strangers:
        names = ", ".join(strangers[:3])
        if len(strangers) > 3:
            names += f" and {len(strangers) - 3} more"
        raise ValueError(Errors.E030.format(path=path, noun=kind.noun, names=names))
    if os.path.ismount(target) or _is_working_directory(target):
        raise ValueError(Errors.E032.format(path=path, inner=Path(path, "new")))
    return target


def _is_working_directory(folder: Path) -> bool:
    """Whether the process is in the folder or below it."""
    try:
        working = Path.cwd()
    except OSError:  # it was removed
        return False
    return folder == working or folder in working.parents


@contextmanager
def replacing_folder(path: PathLike, kind: FolderKind) -> Iterator[Path]:
    """A folder to write to, which replaces ``path`` when the block ends without an error.

    Nothing is replaced but a folder of the same kind or an empty one; see ``check_replaceable``.
    It has a temporary name until the end. On an error the old folder stays as it was. Everything
    is on the disk when the block has ended. After a kill, ``path`` is the old folder or the new
    one. Where the system can't exchange two folders in one step, ``path`` may be missing; then
    ``restore`` brings the old folder back. The next ``replacing_folder`` does so too, and removes
    temporary files that were left.

    path: The folder.
    kind: What a folder holds that may be replaced, such as ``PIPELINE``.
    """
    target = check_replaceable(path, kind)
    target.parent.mkdir(parents=True, exist_ok=True)
    restore(target)
    remove_abandoned(target)
    temporary = Temporary(target, make_folder)
    try:
        folder = temporary.path / "new"
        folder.mkdir()
        yield folder
        sync_tree(folder)
        # Files may have been put into the old one in the meantime.
        check_replaceable(path, kind)
        _swap(folder, target)
    finally:
        shutil.rmtree(temporary.path, ignore_errors=True)
        temporary.release()


def _swap(folder: Path, target: Path) -> None:
    """Give a folder the name ``target``, and move what has this name beside the folder."""
    if target.exists():
        folder.chmod(stat.S_IMODE(target.stat().st_mode))
    if not target.exists():
        os.rename(folder, target)
    elif not exchange(folder, target):
        old = folder.with_name(OLD)
        os.rename(target, old)
        try:
            os.rename(folder, target)
        except BaseException:
            os.rename(old, target)
            raise
    sync_folder(target.parent)


def exchange(left: Path, right: Path) -> bool:
    """Exchange the names of two folders in one step; False where the system can't."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    at_fdcwd, rename_exchange = -100, 2
    return rename(at_fdcwd, os.fsencode(left), at_fdcwd, os.fsencode(right), rename_exchange) == 0
