"""The project's own format: JSONL, one document a line.

    {"id": "d1", "text": "Ada met Lovelace.", "mentions": [
        {"start": 0, "end": 3, "label": "PERSON", "kb_id": "ada_l"},
        {"start": 8, "end": 16, "label": "PERSON", "kb_id": null, "cluster": "new-1"}]}

(on one line). Offsets count characters, the end is exclusive. ``kb_id`` is an entity's id, several
joined by ``|``, or null or "NIL" where no entity is meant; ``cluster`` may name the new entity.
Other keys are ignored.
"""

import json
from typing import Any, Dict, Iterable, Iterator

from ..io import replacing
from .annotated import AnnotatedMention, AnnotatedText, offsets_problem, split_ids
from .files import PathLike, is_text, line_error, read_lines


def read_jsonl(path: PathLike) -> Iterator[AnnotatedText]:
    """Yield the documents of a JSONL file, one at a time; empty lines are skipped.

    Raises ValueError with file, line and problem at the first line that isn't right.
    """
    lines_of: Dict[str, int] = {}
    for number, record in read_records(path):
        try:
            text = _annotated_text(record)
        except _Problem as problem:
            raise line_error(path, number, str(problem)) from None
        if text.id in lines_of:
            raise line_error(
                path,
                number,
                f"the document id {text.id!r} was used before, in line {lines_of[text.id]}. "
                "Give each document an id of its own.",
            )
        lines_of[text.id] = number
        yield text


def write_jsonl(texts: Iterable[AnnotatedText], path: PathLike) -> int:
    """Write documents in the format ``read_jsonl`` reads, all or nothing; returns how many."""
    count = 0
    with replacing(path) as file:
        for text in texts:
            file.write(json.dumps(_record(text), ensure_ascii=False).encode("utf8") + b"\n")
            count += 1
    return count


def read_records(path: PathLike) -> Iterator[Any]:
    """Yield (line number, JSON object) for each line that isn't empty.

    Raises ValueError with file and line where a line is no JSON object.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as err:
            problem = f"no valid JSON: {err.msg} at column {err.colno}. One object a line."
            raise line_error(path, number, problem) from None
        except (ValueError, RecursionError) as err:
            raise line_error(path, number, f"no valid JSON: {err}.") from None
        if not isinstance(record, dict):
            problem = f"expected a JSON object, got {_kind(record)}."
            raise line_error(path, number, problem)
        yield number, record


class _Problem(Exception):
    """What is wrong with a record; the caller adds where."""


def _annotated_text(record: Dict[str, Any]) -> AnnotatedText:
    id_ = _string(record, "id")
    text = _string(record, "text", empty=True)
    mentions = _get(record, "mentions")
    if not isinstance(mentions, list):
        raise _Problem(f"'mentions' must be a list, got {_kind(mentions)}.")
    return AnnotatedText(
        id_, text, tuple(_mention(m, i, len(text)) for i, m in enumerate(mentions, 1))
    )


def _mention(record: Any, position: int, length: int) -> AnnotatedMention:
    try:
        if not isinstance(record, dict):
            raise _Problem(f"must be an object, got {_kind(record)}.")
        start, end = _integer(record, "start"), _integer(record, "end")
        if not 0 <= start < end <= length:
            raise _Problem(offsets_problem(start, end, length))
        kb_id = "" if _get(record, "kb_id") is None else _string(record, "kb_id", empty=True)
        cluster = "" if record.get("cluster") is None else _string(record, "cluster", empty=True)
        return AnnotatedMention(
            start=start,
            end=end,
            label=_string(record, "label"),
            kb_ids=split_ids(kb_id),
            cluster=cluster,
        )
    except _Problem as problem:
        raise _Problem(f"mention {position}: {problem}") from None


def _get(record: Dict[str, Any], key: str) -> Any:
    if key not in record:
        raise _Problem(f"the key {key!r} is missing.")
    return record[key]


def _string(record: Dict[str, Any], key: str, empty: bool = False) -> str:
    value = _get(record, key)
    if not isinstance(value, str):
        raise _Problem(f"{key!r} must be a string, got {_kind(value)}.")
    if not is_text(value):
        raise _Problem(f"{key!r} holds half a character (a lone surrogate). Write it in full.")
    if not (value.strip() or empty):
        raise _Problem(f"{key!r} must not be empty.")
    return value


def _integer(record: Dict[str, Any], key: str) -> int:
    value = _get(record, key)
    # JSON's true is an int to Python, but not an offset to anyone.
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Problem(f"{key!r} must be a whole number, got {_kind(value)}.")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return names.get(type(value), "null" if value is None else f"the number {value!r:.20}")


def _record(text: AnnotatedText) -> Dict[str, Any]:
    mentions = []
    for mention in text.mentions:
        record: Dict[str, Any] = {
            "start": mention.start,
            "end": mention.end,
            "label": mention.label,
            "kb_id": mention.kb_id if mention.kb_ids else None,
        }
        if mention.cluster:
            record["cluster"] = mention.cluster
        mentions.append(record)
    return {"id": text.id, "text": text.text, "mentions": mentions}
