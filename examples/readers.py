"""Readers of formats that the package does not read: doccano, and JSON of spaCy.

    python -m spacy arbo convert train.jsonl train.spacy --format doccano --code examples/readers.py

doccano, as its projects of sequence labelling are exported: JSONL. It has no ids of entities. A
label may hold one behind a colon, ``PERSON:Q7259``; a ``kb_id`` may be added to the file::

    {"id": 1, "text": "Ada met Bo.", "label": [[0, 3, "PERSON"]]}
    {"id": 1, "text": "Ada met Bo.", "entities": [{"start_offset": 0, "end_offset": 3,
        "label": "PERSON", "kb_id": "Q7259"}]}

spacy-json: what ``doc.to_json`` gives, and training data of spaCy 2, one or a list of them in a
file, or one per line::

    {"text": "Ada met Bo.", "ents": [{"start": 0, "end": 3, "label": "PERSON", "kb_id": "Q7259"}]}
    ["Ada met Bo.", {"entities": [[0, 3, "PERSON"]], "links": {"0,3": {"Q7259": 1.0}}}]
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from spacy_arbo_el.corpora.annotated import (
    LABEL,
    AnnotatedMention,
    AnnotatedText,
    split_ids,
)
from spacy_arbo_el.corpora.json_documents import mentions_in, read_each
from spacy_arbo_el.records.formats import corpus_formats
from spacy_arbo_el.records.lines import OnBad, PathLike, throw
from spacy_arbo_el.records.objects import check_object, get, id_in, json_values, string
from spacy_arbo_el.records.offsets import CHARACTERS, Given, places_in
from spacy_arbo_el.records.source import Source


@corpus_formats("doccano")
@dataclass(frozen=True)
class DoccanoReader:
    """Reads the documents of a file.

    offsets: How the file counts offsets; the option --offsets of arbo convert.
    """

    offsets: str = ""

    def read(
        self, path: PathLike, bad: OnBad = throw, counts: Counter | None = None
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        return read_each(Source(path, bad), partial(_of_doccano, offsets=self.offsets))


def _of_doccano(record: dict[str, Any], id_: str, offsets: str) -> AnnotatedText:
    text = string(
        record, "data" if "data" in record and "text" not in record else "text", True
    )
    key = next((key for key in ("entities", "label") if key in record), "labels")
    names = ("start_offset", "end_offset") if key == "entities" else ("start", "end")
    mentions = mentions_in(record.get(key), key, text, offsets, names)
    return AnnotatedText(
        id_in(record, "id", id_), text, tuple(map(_with_id, mentions))
    )


def _with_id(mention: AnnotatedMention) -> AnnotatedMention:
    """The mention, with the id that its label holds."""
    label, colon, kb_id = mention.label.partition(":")
    if mention.kb_ids or not colon:
        return mention
    return replace(mention, label=label.strip() or LABEL, kb_ids=split_ids(kb_id))


@corpus_formats("spacy-json")
@dataclass(frozen=True)
class SpacyJsonReader:
    """Reads the documents of a file. Errors name the number of a document, or its line.

    offsets: How the file counts offsets; the option --offsets of arbo convert.
    """

    offsets: str = ""

    def read(
        self, path: PathLike, bad: OnBad = throw, counts: Counter | None = None
    ) -> Iterator[AnnotatedText]:
        """Yield the documents."""
        source = Source(path, bad)
        return read_each(
            source, partial(_of_spacy, offsets=self.offsets), json_values(source)
        )


def _of_spacy(value: Any, id_: str, offsets: str) -> AnnotatedText:
    links: Any = None
    if isinstance(value, list) and len(value) == 2:
        text, annotations = value
        check_object(annotations)
        value, links = (
            {"text": text, "ents": annotations.get("entities")},
            annotations.get("links"),
        )
    check_object(value)
    text = string(value, "text", empty=True)
    key = "ents" if "ents" in value else "entities"
    mentions = mentions_in(value.get(key), key, text, offsets)
    if links is not None:
        found = _links_by_place(text, links, offsets)
        mentions = tuple(
            replace(one, kb_ids=found.get((one.start, one.end), one.kb_ids))
            for one in mentions
        )
    return AnnotatedText(id_in(value, "id", id_), text, mentions)


def _links_by_place(
    text: str, links: Any, offsets: str
) -> dict[tuple[int, int], tuple[str, ...]]:
    """Ids by the place of a mention. They look like ``{"0,3": {"Q7259": 1.0, "Q1": 0.0}}``."""
    check_object(links)
    found: dict[Given, tuple[str, ...]] = {}
    for key in links:
        ids = get(links, key)
        check_object(ids)
        try:
            start, end = (int(part) for part in key.strip("()[] ").split(","))
        except ValueError:
            raise ValueError(
                f"{key!r:.40} in 'links' must be start and end, as in '0,3'."
            ) from None
        chosen = split_ids("|".join(kb_id for kb_id, weight in ids.items() if weight))
        found[Given(start, end)] = chosen
    places = places_in(text, list(found), offsets or CHARACTERS)
    return {at: ids for at, ids in zip(places, found.values()) if at is not None}
