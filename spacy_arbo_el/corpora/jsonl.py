"""The format of this project: JSONL, one document per line.

    {"id": "d1", "text": "Ada met Lovelace.", "mentions": [
        {"start": 0, "end": 3, "label": "PERSON", "kb_id": "ada_l"},
        {"start": 8, "end": 16, "label": "PERSON", "kb_id": null, "cluster": "new-1"}]}

A document is on one line. An id is made up where it is missing. Offsets count characters; the end
is exclusive. ``kb_id`` is the id of an entity. The ids of a composite mention are joined by ``|``.
A NIL mention has null or "NIL". ``cluster`` is optional and names a new entity. So is ``label``.
Other keys are ignored.
"""

from typing import Any, Dict, Iterator, Tuple

from ..formats import corpus_formats
from ..storage.lines import PathLike, throw
from .annotated import AnnotatedMention, AnnotatedText, offsets_problem, split_ids
from .fields import Problem, check_object, get, integer, list_in, string
from .records import OnBad, id_in, read_each
from .spans import LABEL


@corpus_formats("jsonl")
def read_jsonl(path: PathLike, bad: OnBad = throw) -> Iterator[AnnotatedText]:
    """Yield the documents of a JSONL file. Empty lines are skipped.

    Raises ValueError with file, line and problem at the first invalid line.

    bad: Takes the errors of invalid lines, which are then left out; by default they are raised.
    """
    return read_each(path, _annotated_text, bad)


def _annotated_text(record: Dict[str, Any], id_: str) -> AnnotatedText:
    doc_id = id_in(record, "id", id_)
    text = string(record, "text", empty=True)
    return AnnotatedText(doc_id, text, mentions_of(record, text))


def mentions_of(record: Dict[str, Any], text: str) -> Tuple[AnnotatedMention, ...]:
    """The mentions of a document. Raises Problem where one is invalid."""
    mentions = list_in(record, "mentions")
    return tuple(_mention(mention, i, len(text)) for i, mention in enumerate(mentions, 1))


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
            label=LABEL if record.get("label") in (None, "") else string(record, "label"),
            kb_ids=split_ids(kb_id),
            cluster=cluster,
        )
    except Problem as problem:
        raise Problem(f"mention {position}: {problem}") from None
