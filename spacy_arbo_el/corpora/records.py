"""Documents of a file of JSON objects, one per line, whatever their format."""

from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Optional

from ..storage.lines import WHOLE, Lines, OnBad, PathLike, line_error, read_records, throw
from .annotated import AnnotatedText
from .fields import Problem, string


def read_each(
    path: PathLike,
    parse: Callable[[Dict[str, Any], str], Optional[AnnotatedText]],
    bad: OnBad = throw,
    lines: Lines = WHOLE,
    encoding: str = "utf8",
) -> Iterator[AnnotatedText]:
    """Yield the documents of a JSONL file. Empty lines are skipped.

    Raises ValueError with file, line and problem at an invalid line, and where an id occurs twice.

    path: The file.
    parse: Makes a document of an object and of an id for where it has none; None leaves it out. It
        raises ``Problem`` for an invalid one.
    bad: Takes the errors; by default they are raised.
    lines: The part of the file to read. Ids are compared within it.
    encoding: That of the file.
    """
    lines_of: Dict[str, int] = {}
    for number, record in read_records(path, bad, lines, encoding):
        try:
            text = parse(record, made_up_id(path, number))
        except Problem as problem:
            bad(line_error(path, number, str(problem)))
            continue
        if text is None:
            continue
        if text.id in lines_of:
            problem_text = (
                f"the document id {text.id!r} was used before, in line {lines_of[text.id]}. "
                "Give each document an id of its own."
            )
            bad(line_error(path, number, problem_text))
            continue
        lines_of[text.id] = number
        yield text


def made_up_id(path: PathLike, number: int) -> str:
    """An id for the document in this line of a file: the same in each run."""
    return f"{Path(path).stem}-{number}"


def id_in(record: Dict[str, Any], key: str, otherwise: str) -> str:
    """The id of a document; ``otherwise`` where it has none. A number counts as its digits."""
    value = record.get(key)
    if value is None:
        return otherwise
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return string(record, key)
