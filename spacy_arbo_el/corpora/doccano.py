"""Annotations of doccano: JSONL, as its projects of sequence labelling are exported.

    {"id": 1, "text": "Ada met Bo.", "label": [[0, 3, "PERSON"]]}
    {"id": 1, "text": "Ada met Bo.", "entities": [{"start_offset": 0, "end_offset": 3,
        "label": "PERSON", "kb_id": "Q7259"}]}

doccano has no ids of entities. A label may hold one behind a colon: ``PERSON:Q7259``. Otherwise a
mention is NIL, unless a ``kb_id`` was added to the file.
"""

from dataclasses import replace
from typing import Any, Dict, Iterator

from ..formats import corpus_formats
from ..storage.lines import PathLike, throw
from .annotated import AnnotatedMention, AnnotatedText, split_ids
from .fields import Problem, string
from .records import OnBad, id_in, read_each
from .spans import LABEL, mentions_in


@corpus_formats("doccano")
def read_doccano(path: PathLike, bad: OnBad = throw) -> Iterator[AnnotatedText]:
    """Yield the documents of a file. bad: Takes the errors; by default they are raised."""
    return read_each(path, _annotated_text, bad)


def _annotated_text(record: Dict[str, Any], id_: str) -> AnnotatedText:
    key = next((key for key in ("text", "data") if key in record), None)
    if key is None:
        raise Problem("the key 'text' is missing.")
    text = string(record, key, empty=True)
    if "entities" in record:
        mentions = mentions_in(record["entities"], "entities", text, ("start_offset", "end_offset"))
    else:
        name = "label" if "label" in record else "labels"
        mentions = mentions_in(record.get(name), name, text)
    return AnnotatedText(id_in(record, "id", id_), text, tuple(map(_with_id, mentions)))


def _with_id(mention: AnnotatedMention) -> AnnotatedMention:
    """The mention, with the id that its label holds."""
    label, colon, kb_id = mention.label.partition(":")
    if mention.kb_ids or not colon:
        return mention
    return replace(mention, label=label.strip() or LABEL, kb_ids=split_ids(kb_id))
