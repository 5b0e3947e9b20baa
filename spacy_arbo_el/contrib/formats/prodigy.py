"""Annotations of Prodigy, as ``prodigy db-out`` writes them: JSONL.

Where a task is about the entity of one span, its id is what was chosen in ``accept``. A span may
have its id under another key than ``kb_id``. Tasks with the same text are one document. Only tasks
whose answer is "accept" are read. Of several texts with one id, such as the sentences of a
document, the later ones are numbered: d1, d1-2::

    {"text": "Ada met Bo.", "spans": [{"start": 0, "end": 3, "label": "PERSON", "kb_id": "Q7259"}],
     "answer": "accept"}
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...corpora.annotated import AnnotatedText, split_ids
from ...corpora.json_documents import mentions_in, read_each
from ...records.formats import certainty, check_readable
from ...records.id_fields import find_id
from ...records.lines import OnBad, PathLike, check_exists
from ...records.objects import id_in, string
from ...records.source import Source

# How Prodigy's recipes for entity linking begin the ids of choices that are no entity.
NIL_CHOICE = "NIL_"


START = re.compile(rb"\{[^\n]*\"(?:spans|_input_hash)\"\s*:")


@dataclass(frozen=True)
class ProdigyReader:
    """Reads annotations of Prodigy. Tasks that were rejected count as "excluded".

    offsets: How the file counts offsets, such as utf16; "" to find it out.
    id_key: The field that has the ids of mentions; "" to know it by its name.
    """

    offsets: str = ""
    id_key: str = ""

    sniff = staticmethod(partial(certainty, pattern=START))

    def read(
        self, path: PathLike, bad: OnBad, counts: Counter
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        check_readable(check_exists(path), self)
        by_text: dict[str, AnnotatedText] = {}
        ids: dict[str, int] = {}

        def parse(record: dict[str, Any], id_: str) -> AnnotatedText | None:
            if record.get("answer", "accept") != "accept":
                counts["excluded"] += 1
                return None
            text = self._of_task(record, id_)
            earlier = by_text.get(text.text)
            if earlier is None:
                by_text[text.text] = replace(text, id=_free(text.id, ids))
            else:
                by_text[text.text] = _joined(earlier, text)
            return None

        for _ in read_each(Source(path, bad), parse):
            pass
        yield from by_text.values()

    def _of_task(self, record: dict[str, Any], id_: str) -> AnnotatedText:
        text = string(record, "text", empty=True)
        spans, unread = _with_ids(record.get("spans"), self.id_key)
        mentions = mentions_in(spans, "spans", text, self.offsets)
        meta = record.get("meta")
        chosen = record.get("accept")
        if (
            chosen
            and len(mentions) > 1
            and not any(mention.kb_ids for mention in mentions)
        ):
            unread.append("accept")
        if chosen is not None and len(mentions) == 1:
            if not isinstance(chosen, list) or not all(
                isinstance(choice, str) for choice in chosen
            ):
                raise ValueError("'accept' must be a list of ids.")
            ids = "|".join(
                choice for choice in chosen if not choice.startswith(NIL_CHOICE)
            )
            mentions = (replace(mentions[0], kb_ids=split_ids(ids)),)
        name = id_in(meta, "id", id_) if isinstance(meta, dict) else id_
        return AnnotatedText(name, text, mentions, unread=tuple(unread))


def _free(id_: str, taken: dict[str, int]) -> str:
    """An id that no earlier text has. taken: How many texts were to have each id."""
    taken[id_] = taken.get(id_, 0) + 1
    return id_ if taken[id_] == 1 else _free(f"{id_}-{taken[id_]}", taken)


def _with_ids(spans: Any, id_key: str) -> tuple[Any, list[str]]:
    """Spans with their ids under ``kb_id``, and the keys that may have an id and were not read."""
    if not isinstance(spans, list):
        return spans, []
    found_spans: list[Any] = []
    unread: list[str] = []
    for span in spans:
        if isinstance(span, dict) and (id_key or "kb_id" not in span):
            # Prodigy numbers spans by "id".
            found_id = find_id(
                {key: value for key, value in span.items() if key != "id"}, id_key
            )
            unread += found_id.unread
            span = {**span, "kb_id": found_id.value}
        found_spans.append(span)
    return found_spans, unread


def _joined(earlier: AnnotatedText, later: AnnotatedText) -> AnnotatedText:
    """The mentions of two tasks about a text. A span of one may have its entity in the other."""
    by_span = {(m.start, m.end, m.label): m for m in earlier.mentions}
    for mention in later.mentions:
        key = (mention.start, mention.end, mention.label)
        earlier_mention = by_span.setdefault(key, mention)
        if (
            earlier_mention.kb_ids
            and mention.kb_ids
            and earlier_mention.kb_ids != mention.kb_ids
        ):
            raise ValueError(
                f"the mention {earlier.text[mention.start : mention.end]!r} from {mention.start} "
                f"to {mention.end} is {mention.kb_id}, and {earlier_mention.kb_id} in an earlier "
                "task. Leave out one of the two."
            )
        by_span[key] = earlier_mention if earlier_mention.kb_ids else mention
    unread = earlier.unread + later.unread
    return replace(earlier, mentions=tuple(by_span.values()), unread=unread)
