"""Annotations of Label Studio: a project exported as JSON.

    [{"data": {"text": "Ada met Bo.", "id": "d1"}, "annotations": [{"result": [
        {"id": "r1", "type": "labels", "value": {"start": 0, "end": 3, "labels": ["PERSON"]}},
        {"id": "r1", "type": "textarea", "value": {"start": 0, "end": 3, "text": ["Q7259"]}}]}]}]

The id of the entity is what a field of the region says: a text, a choice, or a taxonomy. Of several
annotations of a task the last one counts. Tasks without any are left out. Label Studio counts
UTF-16 units, and a line break as one; the words of a region say where it is. Of several fields of a
region, that with the id is known by its name. Regions of a HyperText are read where the text has no
tags, and an id in the note of a region where ``id_key`` is "meta".
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...corpora.annotated import AnnotatedText
from ...corpora.json_documents import mentions_in, read_each
from ...records.formats import certainty, check_readable
from ...records.id_fields import FoundId, find_id, is_known, written
from ...records.lines import OnBad, PathLike, check_exists
from ...records.objects import check_object, id_in, integer, items, json_values, string
from ...records.source import Source

# How Label Studio counts offsets, one of ``READINGS``.
COUNTED = "utf16-lf"
# The kinds of fields that hold an id, and where they have it.
FIELDS: dict[Any, str] = {
    "textarea": "text",
    "choices": "choices",
    "taxonomy": "taxonomy",
    "number": "number",
}
# The kinds of regions in a text.
LABELS = ("labels", "hypertextlabels")
# The name of the note of a region, as of a field.
NOTE = "meta"


START = re.compile(rb"\[\s*\{.{0,2000}\"(?:annotations|data)\"\s*:", re.S)


@dataclass(frozen=True)
class LabelStudioReader:
    """Reads a project of Label Studio. Errors name the number of a task.

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
        source = Source(path, bad)
        return read_each(source, self._annotated_text, json_values(source))

    def _annotated_text(self, task: Any, id_: str) -> AnnotatedText | None:
        check_object(task)
        if "data" not in task:
            raise ValueError(
                "the key 'data' is missing. Export the project as JSON, not as JSON-MIN."
            )
        data = task["data"]
        annotations = items(task.get("annotations", []), "annotations")
        check_object(data)
        submitted = [
            annotation
            for annotation in annotations
            if isinstance(annotation, dict) and not annotation.get("was_cancelled")
        ]
        if not submitted:
            return None
        text = string(data, "text", empty=True)
        regions, unread = _regions(submitted[-1].get("result"), self.id_key)
        mentions = mentions_in(regions, "result", text, self.offsets)
        return AnnotatedText(
            id_in(data, "id", id_), text, mentions, unread=tuple(unread)
        )


def _regions(results: Any, id_key: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The regions with their labels and ids, and the fields that may have an id and are unread."""
    regions: dict[str, dict[str, Any]] = {}
    # The fields of each region, by their names.
    fields: dict[str, dict[str, str]] = {}
    unread: list[str] = []
    for result in items(results, "result"):
        check_object(result)
        value = result.get("value")
        kind = str(result.get("type"))
        if kind == "relation":
            continue  # it joins regions, and is none
        check_object(value)
        key = str(result.get("id"))
        region = regions.setdefault(key, {})
        region_fields = fields.setdefault(key, {})
        region.update(_place(value))
        # That of a text area is a list: what was typed.
        if isinstance(value.get("text"), str):
            region["text"] = value["text"]
        note = result.get("meta")
        if isinstance(note, dict) and note.get("text"):
            region_fields[NOTE] = written(note["text"])
        if kind in LABELS:
            region["label"] = "".join(map(str, items(value.get(kind), kind)[:1]))
        elif kind in FIELDS:
            region_fields[str(result.get("from_name", kind))] = _field(value, kind)
        elif kind.endswith("labels"):
            unread.append(kind)
    for key, region in regions.items():
        found_id = _id_of(fields[key], id_key)
        region["kb_id"] = found_id.value
        unread += found_id.unread if "label" in region else ()
    return [region for region in regions.values() if "label" in region], unread


def _place(value: dict[str, Any]) -> dict[str, Any]:
    """The offsets of a region, if it has some. Those of a HyperText are of the whole text."""
    offsets = value.get("globalOffsets")
    if not isinstance(offsets, dict):
        offsets = value
        if "startOffset" in value:
            start, end = (integer(value, f"{key}Offset") for key in ("start", "end"))
            return {"start": start, "end": end}
    return {key: offsets[key] for key in ("start", "end") if key in offsets}


def _field(value: dict[str, Any], kind: str) -> str:
    if kind == "number":
        return written(value.get(kind))
    chosen = items(value.get(FIELDS[kind]), kind)
    # A taxonomy has paths; the end of a path is what was chosen.
    return "|".join(
        str(choice[-1] if isinstance(choice, list) and choice else choice)
        for choice in chosen
    )


def _id_of(fields: dict[str, str], id_key: str) -> FoundId:
    """The id of a region. That of its only field, or of the one whose name says so."""
    typed = {name: value for name, value in fields.items() if name != NOTE}
    if id_key or any(is_known(name) for name in fields):
        return find_id(fields, id_key)
    if len(typed) == 1:
        return FoundId(next(iter(typed.values())))
    return FoundId("", tuple(name for name, value in fields.items() if value))
