"""Files with care: lines that know their number."""

from pathlib import Path
from typing import FrozenSet, Iterator, Tuple, Union

from ..errors import Errors

PathLike = Union[str, Path]


def line_error(path: PathLike, line: int, problem: str) -> ValueError:
    """The error for a broken line: it names the file, the line and the problem."""
    return ValueError(Errors.E100.format(path=path, line=line, problem=problem))


def check_exists(path: PathLike, hint: str = "Check the path.") -> Path:
    """The path as a ``Path``, or a ``FileNotFoundError`` that says what to do."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(Errors.E101.format(path=path, hint=hint))
    return path


def read_lines(path: PathLike) -> Iterator[Tuple[int, str]]:
    """Yield (line number from 1, line without its end) of a UTF-8 file, one at a time.

    Only a line feed ends a line (a carriage return before it goes too): text may
    hold any other character that ``str.splitlines`` would break at. Raises
    ValueError with file and line where the bytes are no UTF-8.
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


def read_ids(path: PathLike) -> FrozenSet[str]:
    """The ids of a file that has one a line, such as documents never to train on."""
    return frozenset(line.strip() for _, line in read_lines(path) if line.strip())


def is_text(value: object) -> bool:
    """Whether the value is a string that can be stored.

    JSON can write half a character (``"\\ud83d"``, a lone surrogate). No encoding
    can hold that, and spaCy would fail on it much later and far less clearly.
    """
    if not isinstance(value, str):
        return False
    try:
        value.encode("utf8")
    except UnicodeEncodeError:
        return False
    return True
