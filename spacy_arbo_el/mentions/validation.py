"""Validation of mention records that were read from bytes."""

from collections.abc import Iterable, Sequence
from typing import Any

from .record import MentionRecord


def check_records(records: Sequence[MentionRecord]) -> None:
    """ValueError where a field has another type than it should."""
    for record in records:
        check_key(record.key)
        if not are_texts([*record.kb_ids, *record.values[2:]]):
            raise ValueError(f"a mention has something else than texts: {record!r:.80}")


def check_key(key: Any) -> None:
    """ValueError where this identifies no mention."""
    is_key = isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], str)
    if not is_key or not all(type(place) is int for place in key[1:]) or not 0 <= key[1] <= key[2]:
        raise ValueError(f"this identifies no mention: {key!r:.80}")


def are_texts(values: Iterable[Any]) -> bool:
    """Return whether all values are strings."""
    return all(isinstance(value, str) for value in values)
