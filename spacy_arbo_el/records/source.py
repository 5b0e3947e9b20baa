"""A file, and how its numbered records become values or errors that name file and line."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ..base.errors import code_of
from .lines import WHOLE, Lines, OnBad, PathLike, line_error, throw

Record = TypeVar("Record")
Value = TypeVar("Value")


class LineProblem(ValueError):
    """An invalid line of a record that has several."""

    def __init__(self, number: int, problem: object) -> None:
        super().__init__(str(problem))
        self.number = number


@dataclass(frozen=True)
class Source:
    """A file, and how it is read.

    on_error: Takes the errors of invalid records, which are left out; by default they are raised.
    name: Begins the ids of documents that have none; "" for the file's name without its suffix.
    lines: The part of the file to read; files of other kinds than .txt, .jsonl, .parquet and
        .spacy are read whole.
    offsets: How its offsets count, one of ``READINGS``; "" to find it out.
    id_key: The name of the field that has the ids of mentions; "" to know it by its name.
    """

    path: PathLike
    on_error: OnBad = throw
    name: str = ""
    lines: Lines = WHOLE
    encoding: str = "utf8"
    offsets: str = ""
    id_key: str = ""

    def made_up_id(self, number: int) -> str:
        """Make an id from a line or row number, the same in each run."""
        return (
            f"{self.name}:{number}"
            if self.name
            else f"{Path(self.path).stem}-{number}"
        )

    def report(self, number: int, error: ValueError) -> None:
        """Pass the error of a line to ``on_error``, with file and line."""
        self.on_error(located(self.path, number, error))

    def read(
        self,
        records: Iterable[tuple[int, Record]],
        read: Callable[[int, Record], Value | None],
    ) -> Iterator[Value]:
        """Yield the value of each record. One that is invalid is left out and reported.

        records: With the numbers of their lines.
        read: Returns None for a record that is left out; raises ValueError for an invalid one.
        """
        for number, record in records:
            try:
                value = read(number, record)
            except ValueError as error:
                self.report(number, error)
                continue
            if value is not None:
                yield value


def located(path: PathLike, number: int, error: ValueError) -> ValueError:
    """An error with file and line, unless it has them."""
    if code_of(error) == "E100":
        return error
    return line_error(path, getattr(error, "number", number), problem_in(error))


def problem_in(error: ValueError) -> str:
    """The message of an error, without its code."""
    return str(error).removeprefix(f"[arbo-{code_of(error)}] ")


@contextmanager
def at_line(path: PathLike, number: int) -> Iterator[None]:
    """Add file and line to the errors in the block."""
    try:
        yield
    except ValueError as error:
        raise located(path, number, error) from None


def check_unique(kind: str, id_: str, number: int, lines_of: dict[str, int]) -> None:
    """Note the line of an id. ValueError where it occurred in another one before.

    kind: What has the id, such as "entity".
    lines_of: The lines of the ids so far.
    """
    first = lines_of.setdefault(id_, number)
    if first != number:
        raise ValueError(
            f"the {kind} id {id_!r} was used before, in line {first}. Merge the two entries, or "
            "give one of them another id."
        )
