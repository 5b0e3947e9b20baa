"""The format of this project: JSONL, one document per line.

    {"id": "d1", "text": "Ada met Lovelace.", "mentions": [
        {"start": 0, "end": 3, "label": "PERSON", "kb_id": "ada_l"},
        {"start": 8, "end": 16, "label": "PERSON", "kb_id": null, "cluster": "new-1"}]}

A document is on one line. Offsets count characters; the end is exclusive. ``kb_id`` is the id of an
entity. The ids of a composite mention are joined by ``|``. A NIL mention has null or "NIL".
``cluster`` is optional and names a new entity. Other keys are ignored.
"""

import json
from typing import Any, Dict, Iterable, Iterator

from ..io import PathLike, line_error, read_records, replacing
from .annotated import AnnotatedMention, AnnotatedText, offsets_problem, split_ids
from .fields import Problem, check_object, get, integer, list_in, string


def read_jsonl(path: PathLike) -> Iterator[AnnotatedText]:
    """Yield the documents of a JSONL file. Empty lines are skipped.

    Raises ValueError with file, line and problem at the first invalid line.
    """
    lines_of: Dict[str, int] = {}
    for number, record in read_records(path):
        try:
            text = _annotated_text(record)
        except Problem as problem:
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
    """Write documents in the format that ``read_jsonl`` reads.

    If writing fails, the previous file stays.

    RETURNS: The number of documents.
    """
    count = 0
    with replacing(path) as file:
        for text in texts:
            file.write(json.dumps(_record(text), ensure_ascii=False).encode("utf8") + b"\n")
            count += 1
    return count


def _annotated_text(record: Dict[str, Any]) -> AnnotatedText:
    id_ = string(record, "id")
    text = string(record, "text", empty=True)
    mentions = list_in(record, "mentions")
    return AnnotatedText(
        id_, text, tuple(_mention(m, i, len(text)) for i, m in enumerate(mentions, 1))
    )


def _mention(record: Any, position: int, length: int) -> AnnotatedMention:
    try:
        check_object(record)
        start, end = integer(record, "start"), integer(record, "end")
        if not 0 <= start < end <= length:
            raise Problem(offsets_problem(start, end, length))
        kb_id = "" if get(record, "kb_id") is None else string(record, "kb_id", empty=True)
        cluster = "" if record.get("cluster") is None else string(record, "cluster", empty=True)
        return AnnotatedMention(
            start=start,
            end=end,
            label=string(record, "label"),
            kb_ids=split_ids(kb_id),
            cluster=cluster,
        )
    except Problem as problem:
        raise Problem(f"mention {position}: {problem}") from None


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
