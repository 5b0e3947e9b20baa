"""The forms of decisions, and how their fields are read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from ...kb.entity import Entity

# The fields of each form: "*" for several values, "," and "|" for parts between commas or lines.
FORMS = {
    "accept": "id title description kb_id types,",
    "link": "id kb_id",
    "flag": "id comment",
    "merge": "id others*",
    "split": "id mentions*",
    "accept_all": "ids*",
    "link_all": "ids* kb_id",
    "kb_remove": "ids*",
    "learn": "kb_id",
    "kb_merge": "id into",
    **dict.fromkeys(("reject", "skip"), "id"),
    **dict.fromkeys(("kb_add", "kb_update"), "id title description aliases| types|"),
}
# Between the id of what a box stands for, and its version.
AT = "@"


@dataclass(frozen=True)
class Form:
    """A form that was sent.

    values: What the decision is made from.
    seen: The version of each thing that it is on, when the page was made.
    row: The number of the mention whose link it is on.
    back: The filters of the page.
    at: The new entity whose page it was on, where the decision is on others.
    """

    values: dict[str, Any]
    seen: dict[str, str]
    row: str
    back: dict[str, str]
    at: str

    @classmethod
    def read(cls, action: str, form: Mapping[str, list[str]]) -> "Form":
        """The fields of a decision, in which boxes carry id and version in one value."""
        values: dict[str, Any] = {
            field.rstrip("*,|"): _read(field, form) for field in FORMS[action].split()
        }
        seen: dict[str, str] = {}
        for name in {"ids", "others"} & values.keys():
            boxes = [box.rpartition(AT) for box in values[name]]
            values[name] = [entity_id or version for entity_id, _, version in boxes]
            seen.update((entity_id, version) for entity_id, at, version in boxes if at)
        version = _read("version", form)
        shown_id = values.get("id", _read("key", form))
        if action in ("kb_add", "kb_update"):
            entity = Entity(**values)
            values = {"entity": {name: getattr(entity, name) for name in values}}
        seen.update({shown_id: version} if shown_id and version else {})
        back = dict(parse_qsl(form.get("back", [""])[0]))
        return cls(values, seen, _read("n", form), back, _read("at", form))


def _read(field: str, form: Mapping[str, list[str]]) -> Any:
    values = form.get(field.rstrip("*,|"), [""])
    if field.endswith("*"):
        return list(filter(None, values))
    if field.endswith((",", "|")):
        lines = re.split(r"[,\n]" if field.endswith(",") else r"\n", values[0])
        return list(filter(None, map(str.strip, lines)))
    return values[0].strip()
