"""Formats of annotation tools: Prodigy, doccano, and spaCy's JSON.

Prodigy, as ``prodigy db-out`` writes it: JSONL. Where a task is about the entity of one span, its
id is what was chosen in ``accept``. Tasks with the same text are one document. Only tasks whose
answer is "accept" are read::

    {"text": "Ada met Bo.", "spans": [{"start": 0, "end": 3, "label": "PERSON", "kb_id": "Q7259"}],
     "answer": "accept"}

doccano, as its projects of sequence labelling are exported: JSONL. It has no ids of entities. A
label may hold one behind a colon, ``PERSON:Q7259``; a ``kb_id`` may be added to the file::

    {"id": 1, "text": "Ada met Bo.", "label": [[0, 3, "PERSON"]]}
    {"id": 1, "text": "Ada met Bo.", "entities": [{"start_offset": 0, "end_offset": 3,
        "label": "PERSON", "kb_id": "Q7259"}]}

spaCy's JSON: what ``doc.to_json`` gives, and training data of spaCy 2, one or a list of them in a
file, or one per line::

    {"text": "Ada met Bo.", "ents": [{"start": 0, "end": 3, "label": "PERSON", "kb_id": "Q7259"}]}
    ["Ada met Bo.", {"entities": [[0, 3, "PERSON"]], "links": {"0,3": {"Q7259": 1.0}}}]
"""

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any, Dict, Iterator, Optional, Tuple

from ..formats import corpus_formats
from ..storage.lines import OnBad, PathLike, throw
from .annotated import LABEL, AnnotatedMention, AnnotatedText, split_ids
from .json_documents import (
    Problem,
    Source,
    check_object,
    get,
    id_in,
    json_values,
    mentions_in,
    read_each,
    string,
)
from .offsets import CHARACTERS, Given, places_in

# How Prodigy's recipes for entity linking begin the ids of choices that are no entity.
NIL_CHOICE = "NIL_"


@corpus_formats("prodigy")
def read_prodigy(
    path: PathLike, bad: OnBad = throw, counts: Optional[Counter] = None, offsets: str = ""
) -> Iterator[AnnotatedText]:
    """Yield the documents of a file. Tasks that were rejected count as "excluded"."""
    by_text: Dict[str, AnnotatedText] = {}

    def parse(record: Dict[str, Any], id_: str) -> Optional[AnnotatedText]:
        if record.get("answer", "accept") != "accept":
            if counts is not None:
                counts["excluded"] += 1
            return None
        text = _of_task(record, id_, offsets)
        earlier = by_text.get(text.text)
        by_text[text.text] = text if earlier is None else _joined(earlier, text)
        return text if earlier is None else None

    for _ in read_each(Source(path, bad), parse):
        pass
    yield from by_text.values()


def _of_task(record: Dict[str, Any], id_: str, offsets: str) -> AnnotatedText:
    text = string(record, "text", empty=True)
    mentions = mentions_in(record.get("spans"), "spans", text, offsets)
    meta, chosen = record.get("meta"), record.get("accept")
    if chosen is not None and len(mentions) == 1:
        if not isinstance(chosen, list) or not all(isinstance(one, str) for one in chosen):
            raise Problem("'accept' must be a list of ids.")
        ids = "|".join(one for one in chosen if not one.startswith(NIL_CHOICE))
        mentions = (replace(mentions[0], kb_ids=split_ids(ids)),)
    return AnnotatedText(id_in(meta, "id", id_) if isinstance(meta, dict) else id_, text, mentions)


def _joined(earlier: AnnotatedText, later: AnnotatedText) -> AnnotatedText:
    """The mentions of two tasks about a text. A span of one may have its entity in the other."""
    by_span = {(m.start, m.end, m.label): m for m in earlier.mentions}
    for mention in later.mentions:
        key = (mention.start, mention.end, mention.label)
        known = by_span.setdefault(key, mention)
        if known.kb_ids and mention.kb_ids and known.kb_ids != mention.kb_ids:
            raise Problem(
                f"the mention {earlier.text[mention.start : mention.end]!r} from {mention.start} "
                f"to {mention.end} is {mention.kb_id}, and {known.kb_id} in an earlier task. "
                "Leave out one of the two tasks."
            )
        by_span[key] = known if known.kb_ids else mention
    return replace(earlier, mentions=tuple(by_span.values()))


@corpus_formats("doccano")
def read_doccano(path: PathLike, bad: OnBad = throw, offsets: str = "") -> Iterator[AnnotatedText]:
    """Yield the documents of a file."""
    return read_each(Source(path, bad), partial(_of_doccano, offsets=offsets))


def _of_doccano(record: Dict[str, Any], id_: str, offsets: str) -> AnnotatedText:
    text = string(record, "data" if "data" in record and "text" not in record else "text", True)
    key = next((key for key in ("entities", "label") if key in record), "labels")
    names = ("start_offset", "end_offset") if key == "entities" else ("start", "end")
    mentions = mentions_in(record.get(key), key, text, offsets, names)
    return AnnotatedText(id_in(record, "id", id_), text, tuple(map(_with_id, mentions)))


def _with_id(mention: AnnotatedMention) -> AnnotatedMention:
    """The mention, with the id that its label holds."""
    label, colon, kb_id = mention.label.partition(":")
    if mention.kb_ids or not colon:
        return mention
    return replace(mention, label=label.strip() or LABEL, kb_ids=split_ids(kb_id))


@corpus_formats("spacy-json")
def read_spacy_json(
    path: PathLike, bad: OnBad = throw, offsets: str = ""
) -> Iterator[AnnotatedText]:
    """Yield the documents of a file. Errors name the number of a document, or its line."""
    source = Source(path, bad)
    return read_each(source, partial(_of_spacy, offsets=offsets), json_values(source))


def _of_spacy(value: Any, id_: str, offsets: str) -> AnnotatedText:
    links: Any = None
    if isinstance(value, list) and len(value) == 2:
        text, annotations = value
        check_object(annotations)
        value, links = {"text": text, "ents": annotations.get("entities")}, annotations.get("links")
    check_object(value)
    text = string(value, "text", empty=True)
    key = "ents" if "ents" in value else "entities"
    mentions = mentions_in(value.get(key), key, text, offsets)
    if links is not None:
        found = _links_by_place(text, links, offsets)
        mentions = tuple(
            replace(one, kb_ids=found.get((one.start, one.end), one.kb_ids)) for one in mentions
        )
    return AnnotatedText(id_in(value, "id", id_), text, mentions)


def _links_by_place(text: str, links: Any, offsets: str) -> Dict[Tuple[int, int], Tuple[str, ...]]:
    """Ids by the place of a mention. They look like ``{"0,3": {"Q7259": 1.0, "Q1": 0.0}}``."""
    check_object(links)
    found: Dict[Given, Tuple[str, ...]] = {}
    for key in links:
        ids = get(links, key)
        check_object(ids)
        try:
            start, end = (int(part) for part in key.strip("()[] ").split(","))
        except ValueError:
            raise Problem(f"{key!r:.40} in 'links' must be start and end, as in '0,3'.") from None
        chosen = split_ids("|".join(kb_id for kb_id, weight in ids.items() if weight))
        found[Given(start, end)] = chosen
    places = places_in(text, list(found), offsets or CHARACTERS)
    return {at: ids for at, ids in zip(places, found.values()) if at is not None}
