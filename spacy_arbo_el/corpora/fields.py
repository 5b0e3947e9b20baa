"""The fields of JSON records, each checked: any other value is a problem that names the key."""

from typing import Any, Dict, List

from ..storage.lines import is_text, json_kind


class Problem(Exception):
    """What is wrong with a record. The caller adds file and line."""


def check_object(value: Any) -> None:
    """Raise Problem for a value that is no object."""
    if not isinstance(value, dict):
        raise Problem(f"must be an object, got {json_kind(value)}.")


def get(record: Dict[str, Any], key: str) -> Any:
    if key not in record:
        raise Problem(f"the key {key!r} is missing.")
    return record[key]


def list_in(record: Dict[str, Any], key: str) -> List[Any]:
    value = get(record, key)
    if not isinstance(value, list):
        raise Problem(f"{key!r} must be a list, got {json_kind(value)}.")
    return value


def string(record: Dict[str, Any], key: str, empty: bool = False) -> str:
    """A string. empty: Whether it may be empty."""
    value = get(record, key)
    check_text(value, repr(key))
    if not (value.strip() or empty):
        raise Problem(f"{key!r} must not be empty.")
    return value


def check_text(value: Any, name: str) -> None:
    """Raise Problem for a value that is no string, or no valid one."""
    if not isinstance(value, str):
        raise Problem(f"{name} must be a string, got {json_kind(value)}.")
    if not is_text(value):
        raise Problem(f"{name} holds half a character (a lone surrogate). Write it in full.")


def integer(record: Dict[str, Any], key: str) -> int:
    value = get(record, key)
    check_integer(value, repr(key))
    return value


def check_integer(value: Any, name: str) -> None:
    """Raise Problem for a value that is no whole number."""
    # JSON's true is an int in Python, but not a valid offset.
    if not isinstance(value, int) or isinstance(value, bool):
        raise Problem(f"{name} must be a whole number, got {json_kind(value)}.")
