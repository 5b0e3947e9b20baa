"""Annotations of Prodigy, as ``prodigy db-out`` writes them: JSONL.

    {"text": "Ada met Bo.", "spans": [{"start": 0, "end": 3, "label": "PERSON", "kb_id": "Q7259"}],
     "answer": "accept"}

Where a task is about the entity of one span, its id is what was chosen in ``accept``. Tasks with
the same text are one document. Only tasks whose answer is "accept" are read.
"""

from collections import Counter
from dataclasses import replace
from typing import Any, Dict, Iterator, Optional, Tuple

from ..formats import corpus_formats
from ..storage.lines import PathLike, throw
from .annotated import AnnotatedMention, AnnotatedText, split_ids
from .fields import Problem, string
from .records import OnBad, id_in, read_each
from .spans import mentions_in

# How recipes for entity linking begin the ids of choices that are no entity.
NIL_CHOICE = "NIL_"


@corpus_formats("prodigy")
def read_prodigy(
    path: PathLike, bad: OnBad = throw, counts: Optional[Counter] = None
) -> Iterator[AnnotatedText]:
    """Yield the documents of a file.

    path: The file.
    bad: Takes the errors of invalid lines; by default they are raised.
    counts: Counts tasks that were rejected or ignored, under "excluded".
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
            by_text[text.text] = replace(earlier, mentions=_joined(earlier, text))
            return None
        by_text[text.text] = text
        return text

    for _ in read_each(path, parse, bad):
        pass
    yield from by_text.values()


def _joined(earlier: AnnotatedText, later: AnnotatedText) -> Tuple[AnnotatedMention, ...]:
    """The mentions of two tasks about a text. A span of one may have its entity in the other."""
    by_span = {(m.start, m.end, m.label): m for m in earlier.mentions}
    for mention in later.mentions:
        known = by_span.setdefault((mention.start, mention.end, mention.label), mention)
        if known.kb_ids and mention.kb_ids and known.kb_ids != mention.kb_ids:
            words = earlier.text[mention.start : mention.end]
            raise Problem(
                f"the mention {words!r} from {mention.start} to {mention.end} is {mention.kb_id}, "
                f"and {known.kb_id} in an earlier task. Leave out one of the two tasks."
            )
        if not known.kb_ids:
            by_span[mention.start, mention.end, mention.label] = mention
    return tuple(by_span.values())


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
