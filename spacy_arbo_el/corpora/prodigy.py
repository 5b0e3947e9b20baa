"""Annotations of Prodigy, as ``prodigy db-out`` writes them: JSONL.

    {"text": "Ada met Bo.", "spans": [{"start": 0, "end": 3, "label": "PERSON", "kb_id": "Q7259"}],
     "answer": "accept"}

Where a task is about the entity of one span, its id is what was chosen in ``accept``. Tasks with
the same text are one document. Only tasks whose answer is "accept" are read.
"""

from collections import Counter
from dataclasses import replace
from typing import Any, Dict, Iterator, Optional

from ..io import PathLike, throw
from .annotated import AnnotatedText, split_ids
from .fields import Problem, string
from .records import OnBad, id_in, read_each
from .spans import mentions_in

# How recipes for entity linking begin the ids of choices that are no entity.
NIL_CHOICE = "NIL_"


def read_prodigy(
    path: PathLike, counts: Optional[Counter] = None, bad: OnBad = throw
) -> Iterator[AnnotatedText]:
    """Yield the documents of a file.

    path: The file.
    counts: Counts tasks that were rejected or ignored, under "excluded".
    bad: Takes the errors of invalid lines; by default they are raised.
    """
    by_text: Dict[str, AnnotatedText] = {}

    def parse(record: Dict[str, Any], id_: str) -> Optional[AnnotatedText]:
        text = _annotated_text(record, id_)
        if text is None:
            if counts is not None:
                counts["excluded"] += 1
            return None
        earlier = by_text.get(text.text)
        if earlier is not None:
            mentions = dict.fromkeys((*earlier.mentions, *text.mentions))
            by_text[text.text] = replace(earlier, mentions=tuple(mentions))
            return None
        by_text[text.text] = text
        return text

    for _ in read_each(path, parse, bad):
        pass
    yield from by_text.values()


def _annotated_text(record: Dict[str, Any], id_: str) -> Optional[AnnotatedText]:
    if record.get("answer", "accept") != "accept":
        return None
    text = string(record, "text", empty=True)
    mentions = mentions_in(record.get("spans"), "spans", text)
    meta = record.get("meta")
    doc_id = id_in(meta, "id", id_) if isinstance(meta, dict) else id_
    chosen = record.get("accept")
    if chosen is not None and len(mentions) == 1:
        if not isinstance(chosen, list) or not all(isinstance(one, str) for one in chosen):
            raise Problem("'accept' must be a list of ids.")
        ids = [one for one in chosen if not one.startswith(NIL_CHOICE)]
        mentions = (replace(mentions[0], kb_ids=split_ids("|".join(ids))),)
    return AnnotatedText(doc_id, text, mentions)
