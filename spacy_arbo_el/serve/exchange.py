"""Exchange of decisions with spaCy, Prodigy and Label Studio."""

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

import srsly
from spacy.tokens import Doc, DocBin, Span

from ..corpora.read import read
from ..errors import Errors
from ..kb.entity import NIL
from ..mentions.getters import SpanGetter, find_mentions
from ..mentions.record import text_fingerprint
from .links import Links
from .review import Review

# The formats of files that annotators make, by the end of their names.
FORMATS = {".jsonl": "prodigy", ".json": "label-studio"}


def as_spacy(docs: Sequence[Doc], getter: SpanGetter) -> bytes:
    """Documents as a ``.spacy`` file."""
    return DocBin(docs=docs, store_user_data=True).to_bytes()


def as_prodigy(docs: Sequence[Doc], getter: SpanGetter) -> str:
    """Documents with their links as tasks of Prodigy, in JSONL."""
    return "".join(f"{srsly.json_dumps(task)}\n" for task in _tasks(docs, getter))


def as_label_studio(docs: Sequence[Doc], getter: SpanGetter) -> str:
    """Documents with links as tasks of Label Studio. Annotated, in JSON.

    The configuration of the project has ``<Labels name="label" toName="text">``, and ``<TextArea
    name="kb_id" toName="text" perRegion="true">`` for the ids of entities.
    """
    tasks = []
    for task in _tasks(docs, getter):
        results = chain.from_iterable(map(_results, task["spans"]))
        data = {"text": task["text"], "id": task["meta"]["id"]}
        tasks.append({"data": data, "annotations": [{"result": list(results)}]})
    return srsly.json_dumps(tasks)


def _tasks(docs: Sequence[Doc], getter: SpanGetter) -> Iterator[Dict[str, Any]]:
    for doc in docs:
        spans = [_span(span) for span in find_mentions(doc, getter)]
        meta = {"id": str(doc.user_data.get("doc_id") or text_fingerprint(doc.text))}
        yield {"text": doc.text, "spans": spans, "meta": meta, "answer": "accept"}


def _span(span: Span) -> Dict[str, Any]:
    place = {"start": span.start_char, "end": span.end_char}
    return {**place, "label": span.label_, "kb_id": span.kb_id_}


def _results(span: Dict[str, Any]) -> List[Dict[str, Any]]:
    """A span as the two results of a region."""
    place = {"start": span["start"], "end": span["end"]}
    about = {"id": "{start}-{end}".format(**span), "to_name": "text"}
    label = {"from_name": "label", "type": "labels", "value": {**place, "labels": [span["label"]]}}
    kb_id = {"from_name": "kb_id", "type": "textarea", "value": {**place, "text": [span["kb_id"]]}}
    return [{**about, **label}, {**about, **kb_id}]


def take_over(review: Review, links: Links, path: Path, by: str) -> Counter:
    """Decide on links as annotators did. Each is a decision that can be undone.

    A mention without an id is in no entity of the knowledge base. Raises ValueError for a file in
    another format, and for one in which no mention has an id.

    RETURNS: How many decisions were "made", are "known" already, are on mentions that are "not in
        the texts", or name an entity that is "not in the knowledge base".
    """
    rows, counts = {row.key: row for row in links.rows}, Counter[str]()
    decided = {tuple(e["key"]): e["kb_id"] for e in review.standing if e["action"] == "learn"}
    texts = list(read(path, FORMATS.get(path.suffix.lower(), "jsonl")))
    pairs = [(text_fingerprint(text.text), one) for text in texts for one in text.mentions]
    if not any(mention.kb_ids for _, mention in pairs):
        raise ValueError(Errors.E931.format(path=path))
    for fingerprint, mention in pairs:
        row = rows.get((fingerprint, mention.start, mention.end))
        if row is None:
            counts["not in the texts"] += 1
        elif decided.get(row.key) == mention.kb_id:
            counts["known"] += 1
        elif mention.kb_id != NIL and mention.kb_id not in review.linker.kb:
            counts["not in the knowledge base"] += 1
        else:
            review.decide("learn", by, **links.entry_of(row, mention.kb_id))
            counts["made"] += 1
    return counts
