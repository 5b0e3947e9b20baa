"""Annotations of Label Studio: a project exported as JSON.

    [{"data": {"text": "Ada met Bo.", "id": "d1"}, "annotations": [{"result": [
        {"id": "r1", "type": "labels", "value": {"start": 0, "end": 3, "labels": ["PERSON"]}},
        {"id": "r1", "type": "textarea", "value": {"start": 0, "end": 3, "text": ["Q7259"]}}]}]}]

The id of the entity is what a field of the region says: a text, a choice, or a taxonomy. Of several
annotations of a task the last one counts. Tasks without any are left out. Label Studio counts
UTF-16 units, and a line break as one; the words of a region say where it is.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from ..storage.formats import corpus_formats
from ..storage.lines import OnBad, PathLike, throw
from .annotated import AnnotatedText
from .json_documents import (
    Source,
    check_object,
    id_in,
    items,
    json_values,
    mentions_in,
    read_each,
    string,
)

# How Label Studio counts offsets, one of ``READINGS``.
COUNTED = "utf16-lf"
# The kinds of fields that hold an id, and where they have it.
FIELDS: dict[Any, str] = {"textarea": "text", "choices": "choices", "taxonomy": "taxonomy"}


@corpus_formats("label-studio")
def read_label_studio(
    path: PathLike, bad: OnBad = throw, offsets: str = ""
) -> Iterator[AnnotatedText]:
    """Yield the documents of a file; errors name the number of a task."""
    source = Source(path, bad)
    return read_each(source, partial(_annotated_text, offsets=offsets), json_values(source))


def _annotated_text(task: Any, id_: str, offsets: str) -> AnnotatedText | None:
    check_object(task)
    data, annotations = task.get("data"), items(task.get("annotations", []), "annotations")
    check_object(data)
    kept = [one for one in annotations if isinstance(one, dict) and not one.get("was_cancelled")]
    if not kept:
        return None
    text = string(data, "text", empty=True)
    mentions = mentions_in(_regions(kept[-1].get("result")), "result", text, offsets)
    return AnnotatedText(id_in(data, "id", id_), text, mentions)


def _regions(results: Any) -> list[dict[str, Any]]:
    """The regions with their labels and ids."""
    regions: dict[str, dict[str, Any]] = {}
    for result in items(results, "result"):
        check_object(result)
        value, kind = result.get("value"), result.get("type")
        check_object(value)
        region = regions.setdefault(str(result.get("id")), {})
        region.update({key: value[key] for key in ("start", "end") if key in value})
        # That of a text area is a list: what was typed.
        if isinstance(value.get("text"), str):
            region["text"] = value["text"]
        if kind == "labels":
            region["label"] = "".join(map(str, items(value.get(kind), kind)[:1]))
        elif str(kind) in FIELDS:
            chosen = items(value.get(FIELDS[kind]), kind)
            # A taxonomy has paths; the end of a path is what was chosen.
            region["kb_id"] = "|".join(
                str(one[-1] if isinstance(one, list) and one else one) for one in chosen
            )
    return [region for region in regions.values() if "label" in region]
