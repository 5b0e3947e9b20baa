"""Reading of text files line by line; storable text."""

import bz2
import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from ..base.errors import Errors
from ..storage.files import PathLike

# Takes the error of a line that can't be read: raises it, or keeps it and continues.
OnBad = Callable[[ValueError], None]
# Functions that open packed files, by their endings.
OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
# Characters of what an error says about a line.
MAX_PROBLEM = 500


def line_error(path: PathLike, line: int, problem: str) -> ValueError:
    """The error for an invalid line: file, line and problem, which is cut in the middle if long."""
    if len(problem) > MAX_PROBLEM:
        problem = f"{problem[: MAX_PROBLEM // 2]} … {problem[-MAX_PROBLEM // 2 :]}"
    return ValueError(Errors.E100.format(path=path, line=line, problem=problem))


def plain_name(path: PathLike) -> str:
    """The name of a file in small letters, without ".gz" and ".bz2"."""
    return Path(path).name.lower().removesuffix(".gz").removesuffix(".bz2")


def files_in(path: Path, suffix: str = "") -> list[Path]:
    """The files below a folder by name, without hidden ones, or the file itself.

    suffix: What their names end with, in any case and packed or not; "" for all.
    """
    if not path.is_dir():
        return [path]
    files = (
        f for f in path.rglob("*") if plain_name(f).endswith(suffix) and not f.is_dir()
    )
    return sorted(f for f in files if "/." not in f"/{f.relative_to(path).as_posix()}")


def check_exists(path: PathLike, hint: str = "Check the path.") -> Path:
    """The path. FileNotFoundError, which advises ``hint``, if there is no such file."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(Errors.E101.format(path=path, hint=hint))
    return path


def throw(error: ValueError) -> None:
    """Raise a bad line's error, the readers' default."""
    raise error from None


def ignore(error: ValueError) -> None:
    """Ignore a bad line's error on the first reading. A line that is read twice."""


class Lines(NamedTuple):
    """A part of a file.

    start: The number of its first line, from 0.
    stop: The number behind that of its last line; None for the end of the file.
    offset: The byte at which its first line begins.
    """

    start: int = 0
    stop: int | None = None
    offset: int = 0


WHOLE = Lines()
# The marks of UTF-16 at the beginning of a file.
WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
OTHER_ENCODING = (
    "Save it as UTF-8, or give --encoding cp1252, or another, if the command has it."
)


def read_lines(
    path: PathLike,
    bad: OnBad = throw,
    lines: Lines = WHOLE,
    encoding: str = "utf8",
    ends: bool = False,
) -> Iterator[tuple[int, str]]:
    """Yield numbered lines of a file. From 1, without the ends; packed or not (.gz, .bz2).

    Only a line feed ends a line, with or without a carriage return before it. Other characters at
    which ``str.splitlines`` splits are part of the text. Raises ValueError with file and line if
    the bytes are not of the encoding, or with the file if its packing is broken.

    bad: What to do with the error of such a line, which is then left out.
    lines: The part of the file to read.
    encoding: Such as "cp1252".
    ends: Whether lines keep their ends.
    """
    path = check_exists(path)
    encoding = encoding_of(path, encoding)
    cut = "" if ends else "\r\n"
    if not check_encoding(encoding):
        wide = islice(_wide_lines(path, encoding), lines.start, lines.stop)
        yield from ((number, line.rstrip(cut)) for number, line in wide)
        return
    number = lines.start
    count = None if lines.stop is None else lines.stop - lines.start
    with unpacking(path, lambda: number + 1) as file:
        file.seek(lines.offset)
        for number, raw in enumerate(islice(file, count), lines.start + 1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            try:
                yield number, raw.decode(encoding).rstrip(cut)
            except UnicodeDecodeError as err:
                bad(line_error(path, number, _wrong_encoding(encoding, err.reason)))


def encoding_of(path: Path, encoding: str) -> str:
    """The encoding of a file: UTF-16 where it begins with that byte order mark."""
    return "utf-16" if encoding == "utf8" and _start(path, 2) in WIDE else encoding


def read_text(path: PathLike, encoding: str = "utf8") -> str:
    """The text of a file. UTF-16 is known by its mark. ValueError for another encoding."""
    path = check_exists(path)
    try:
        with unpacking(path) as file:
            text = file.read().decode(encoding_of(path, encoding))
    except UnicodeError as error:
        raise line_error(path, 1, _wrong_encoding(encoding, error)) from None
    return text.removeprefix("\ufeff")


def _wrong_encoding(encoding: str, error: object) -> str:
    name = "UTF-8" if encoding == "utf8" else encoding
    return f"the file isn't {name} here ({error}). {OTHER_ENCODING}"


@contextmanager
def unpacking(
    path: Path, line: Callable[[], int] = lambda: 1
) -> Iterator[io.BufferedReader]:
    """The bytes of a file, unpacked. ValueError where it is packed and damaged.

    line: The line that the error names.
    """
    try:
        with _open(path) as file:
            yield file
    except (EOFError, zlib.error, OSError) as error:
        if path.suffix.lower() not in OPENERS:
            raise
        problem = f"the compressed file is damaged or cut off here ({error})."
        raise line_error(path, line(), problem) from None


def check_encoding(encoding: str) -> bool:
    """Return whether a line feed is one byte in an encoding. ValueError for an unknown one."""
    try:
        return "\n".encode(encoding) == b"\n"
    except LookupError:
        raise Errors.E108(encoding=encoding) from None


def _wide_lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Read lines of a wide encoding such as UTF-16. Excel writes in it."""
    number = 0
    with _open(path) as file:
        try:
            # Closed with the block, also where reading ends early.
            with io.TextIOWrapper(file, encoding, newline="\n") as text:
                for number, line in enumerate(text, 1):
                    yield number, line
        except UnicodeError as error:
            problem = f"the file isn't {encoding} behind this line ({error})."
            raise line_error(path, max(number, 1), problem) from None


def _open(path: Path) -> io.BufferedReader:
    return cast(io.BufferedReader, OPENERS.get(path.suffix.lower(), open)(path, "rb"))


def unpacked_start(path: Path, size: int) -> bytes:
    """Read the first bytes of a text, packed or not: UTF-8 also of UTF-16. None of a pipe."""
    start = _start(path, size)
    if start.startswith(WIDE):
        return start.decode("utf-16", "ignore").encode("utf8", "ignore")
    return start


def _start(path: Path, size: int) -> bytes:
    # To open a pipe would take its first bytes.
    if not path.is_file():
        return b""
    try:
        with _open(path) as file:
            # What there is of one that was cut off.
            return file.read1(size)
    except (EOFError, zlib.error, OSError):
        return b""


def read_start(path: Path, size: int) -> bytes:
    """Read up to the first ``size`` bytes of a file. None where there is no plain file."""
    # To open a pipe would wait for a writer.
    if path.is_symlink() or not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(size)


def is_text(value: object) -> bool:
    """Return whether the value is a string without half characters, on which spaCy fails later."""
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
    """Return whether a value is text without NUL. SQLite and C would end the text there."""
    return isinstance(value, str) and "\0" not in value and is_text(value)
