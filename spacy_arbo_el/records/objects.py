"""Records as JSON objects, and the checks of their values."""

import json
from collections.abc import Iterator
from typing import Any

from .lines import is_text, read_lines, read_text
from .source import Source


def read_records(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line numbers from 1 and JSON objects, without empty lines. ValueError for others."""
    for number, line in read_lines(
        source.path, source.on_error, source.lines, source.encoding
    ):
        if not line.strip():
            continue
        try:
            record = json.loads(line, parse_constant=_no_number)
        except json.JSONDecodeError as err:
            problem = f"no valid JSON: {err.msg} at column {err.colno}. Write one object per line."
            if line.strip() in ("{", "["):
                problem = (
                    "JSON over several lines. Write one object per line: jq -c . FILE."
                )
            source.report(number, ValueError(problem))
            continue
        except (ValueError, RecursionError) as err:
            source.report(number, ValueError(f"no valid JSON: {err}."))
            continue
        if not isinstance(record, dict):
            problem = f"expected a JSON object, got {json_kind(record)}."
            source.report(number, ValueError(problem))
            continue
        yield number, record


def _no_number(name: str) -> None:
    """Python would read NaN and Infinity, which are no JSON."""
    raise ValueError(f"{name} is no number")


def json_kind(value: Any) -> str:
    """The kind of a JSON value, for messages."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return names.get(
        type(value), "null" if value is None else f"the number {value!r:.20}"
    )


def json_values(source: Source) -> Iterator[tuple[int, Any]]:
    """The documents of a JSON file with their numbers.

    Numbers begin with 1: places in a list, or lines.

    A document may be a list of its text and its annotations.
    """
    content = read_text(source.path)
    try:
        content_value = json.loads(content)
    except (ValueError, RecursionError):
        for number, line in enumerate(content.split("\n"), 1):
            if line.strip():
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError) as error:
                    source.report(number, ValueError(f"no valid JSON: {error}."))
                    continue
                yield number, value
        return
    is_pair = (
        isinstance(content_value, list)
        and len(content_value) == 2
        and isinstance(content_value[0], str)
    )
    yield from enumerate(
        [content_value]
        if is_pair or not isinstance(content_value, list)
        else content_value,
        1,
    )


def check_object(value: Any) -> None:
    """Raise ValueError for a value that is no object."""
    if not isinstance(value, dict):
        raise ValueError(f"must be an object, got {json_kind(value)}.")


def items(value: Any, key: str) -> list[Any]:
    """Return a value that must be a list.

    key: Its name, for messages.
    """
    if not isinstance(value, list):
        raise ValueError(f"{key!r} must be a list, got {json_kind(value)}.")
    return value


def get(record: dict[str, Any], key: str) -> Any:
    """The value of a key that must be there."""
    if key not in record:
        raise ValueError(f"the key {key!r} is missing.")
    return record[key]


def string(record: dict[str, Any], key: str, empty: bool = False) -> str:
    """A string. empty: Whether it may be empty."""
    value = get(record, key)
    if not isinstance(value, str):
        raise ValueError(f"{key!r} must be a string, got {json_kind(value)}.")
    if not is_text(value):
        raise ValueError(
            f"{key!r} holds half a character (a lone surrogate). Write it in full."
        )
    if not (value.strip() or empty):
        raise ValueError(f"{key!r} must not be empty.")
    return value


def optional(record: dict[str, Any], key: str) -> str:
    return "" if record.get(key) is None else string(record, key, empty=True).strip()


def integer(record: dict[str, Any], key: str) -> int:
    """A whole number."""
    value = get(record, key)
    # JSON's true is an int in Python, but not a valid offset.
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{key!r} must be a whole number, got {json_kind(value)}.")
    return value


def id_in(record: dict[str, Any], key: str, otherwise: str) -> str:
    """The id of a document; ``otherwise`` where it has none. A number counts as its digits."""
    value = record.get(key)
    if value is None:
        return otherwise
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return string(record, key)
