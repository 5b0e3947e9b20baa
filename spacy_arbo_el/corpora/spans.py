"""Mentions in the JSON of annotation tools: objects with offsets, a label and perhaps an id."""

from typing import Any, Dict, List, Optional, Tuple

from .annotated import AnnotatedMention, offsets_problem, split_ids
from .fields import Problem, check_object, check_text, integer

# Label of a mention that has none.
LABEL = "ENTITY"


def mentions_in(
    values: Any, key: str, text: str, names: Tuple[str, str] = ("start", "end")
) -> Tuple[AnnotatedMention, ...]:
    """The mentions of a list of objects such as ``{"start": 0, "end": 3, "label": "PERSON"}``.

    Instead of an object there may be a list: start, end, label.

    values: The list; None for no mentions.
    key: Its name, for messages.
    text: The text of the document.
    names: The keys of the offsets.
    """
    if values is None:
        return ()
    if not isinstance(values, list):
        raise Problem(f"{key!r} must be a list.")
    mentions: List[AnnotatedMention] = []
    for position, value in enumerate(values, 1):
        try:
            mentions.append(_mention(value, len(text), names))
        except Problem as problem:
            raise Problem(f"mention {position} in {key!r}: {problem}") from None
    return tuple(mentions)


def _mention(value: Any, length: int, names: Tuple[str, str]) -> AnnotatedMention:
    if isinstance(value, list) and len(value) in (2, 3, 4):
        value = dict(zip((*names, "label", "kb_id"), value))
    check_object(value)
    start, end = integer(value, names[0]), integer(value, names[1])
    if not 0 <= start < end <= length:
        raise Problem(offsets_problem(start, end, length))
    label = optional_text(value, "label") or LABEL
    return AnnotatedMention(start, end, label, split_ids(optional_text(value, "kb_id")))


def optional_text(record: Dict[str, Any], key: str) -> str:
    """A string; "" where it is missing or null."""
    value: Optional[Any] = record.get(key)
    if value is None:
        return ""
    check_text(value, repr(key))
    return value.strip()
