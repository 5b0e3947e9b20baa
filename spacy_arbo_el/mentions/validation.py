"""Validation of mention records that were read from bytes."""

from dataclasses import fields
from typing import Any, Iterable, Sequence

from .record import MentionRecord

# The fields behind the key and the ids.
TEXTS = tuple(field.name for field in fields(MentionRecord))[2:]


def check_records(records: Sequence[MentionRecord]) -> None:
    """ValueError where a field has another type than it should."""
    for record in records:
        check_key(record.key)
        texts = [*record.kb_ids, *(getattr(record, name) for name in TEXTS)]
        if not isinstance(record.kb_ids, tuple) or not are_texts(texts):
            raise ValueError(f"a mention has something else than texts: {record!r:.80}")


def check_key(key: Any) -> None:
    """ValueError where this identifies no mention."""
    is_key = isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], str)
    if not is_key or not all(type(place) is int for place in key[1:]) or not 0 <= key[1] <= key[2]:
        raise ValueError(f"this identifies no mention: {key!r:.80}")


def are_texts(values: Iterable[Any]) -> bool:
    """Whether all values are strings."""
    return all(isinstance(value, str) for value in values)
