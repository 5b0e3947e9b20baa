"""What an entity in a file can't have, named with file and line."""

from contextlib import contextmanager
from typing import Iterator

from ...storage.lines import PathLike, line_error


@contextmanager
def at_line(path: PathLike, number: int) -> Iterator[None]:
    """Name file and line in the errors of entities that are made within the block."""
    try:
        yield
    except ValueError as error:
        _, _, problem = str(error).rpartition("[arbo-")
        raise line_error(path, number, problem.partition("] ")[2] or str(error)) from None
