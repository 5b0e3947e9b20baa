"""Fields of entities by the names of keys and columns, and their values."""

import ast
import re
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from ..base.errors import Errors

LISTS = ("aliases", "types")
# Names of fields, without regard to case. Names, types and descriptions under several are joined.
OTHER_NAMES = {
    "id": ("id", "cui", "concept_id", "entity_id", "kb_id", "identifier"),
    "title": (
        "title",
        "name",
        "canonical_name",
        "preferred_name",
        "preferred_label",
        "preferredlabel",
        "preflabel",
    ),
    "description": ("description", "definition", "desc"),
    "aliases": (
        "aliases",
        "synonyms",
        "alias",
        "synonym",
        "names",
        "altlabel",
        "altlabels",
    ),
    "types": ("types", "type", "semantic_types"),
    "frequency": ("frequency", "freq"),
    "meta": ("meta",),
}
FIELDS = tuple(OTHER_NAMES)
# The key of ids that lead to an entity, such as those that it had before a merge.
ALT_IDS = "alt_ids"
# Further titles, which are aliases; unlike those, they are whole cells.
NAMES = "names"
# Beside one of these, "label" is the type of an annotation.
OF_ANNOTATIONS = {"pattern", "start", "end", "mention", "mentions", "span", "spans"}
# Beside "text", one of these makes a document.
OF_DOCUMENTS = {"mention", "mentions", "spans", "ents", "entities", "start"}
# A list as Python or NumPy prints it, which is what a saved data frame has. Nulls are left out.
_QUOTED = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_PRINTED_LIST = re.compile(
    rf"\[\s*(?:(?:{_QUOTED}|None|nan)(?:\s*,\s*|\s+|(?=\])))*\]"
)


def fields_of(keys: Sequence[str]) -> dict[str, list[int]]:
    """The places of keys by their field; the first title is "title", others are ``NAMES``.

    "label" is a title where nothing else names the entity, and a type in a pattern. Raises
    ValueError for keys of annotated documents.
    """
    lower = [key.lower() for key in keys]
    places_of: dict[str, list[int]] = {}
    for field, names in OTHER_NAMES.items():
        places = [place for name in names for place in _places(name, keys, lower)]
        if places:
            places_of[field] = (
                places if field in (*LISTS, "title", "description") else places[:1]
            )
    is_pattern = "pattern" in lower and "title" not in places_of
    if is_pattern:
        places_of["title"] = [lower.index("pattern")]
        places_of["types"] = [
            *places_of.get("types", ()),
            *_places("label", keys, lower),
        ]
    elif "title" not in places_of and not OF_ANNOTATIONS & set(lower):
        places_of["title"] = _places("label", keys, lower)
    if not places_of.get("title"):
        _check_no_document(lower)
    places_of[NAMES] = places_of.get("title", [])[1:]
    places_of["title"] = places_of.get("title", [])[:1]
    return {field: places for field, places in places_of.items() if places}


def _places(name: str, keys: Sequence[str], lower: Sequence[str]) -> list[int]:
    places = [place for place, key in enumerate(lower) if key == name]
    return sorted(places, key=lambda place: keys[place] != name)


def _check_no_document(keys: Sequence[str]) -> None:
    document_keys = sorted(OF_DOCUMENTS & set(keys))
    if "text" in keys and document_keys:
        raise Errors.E045(key=document_keys[0])


def values_of(
    values: Sequence[Any], fields: Mapping[str, Sequence[int]], separator: str = "|"
) -> dict[str, Any]:
    """The fields of an entity from values by their places. separator: Splits aliases and types."""
    record: dict[str, Any] = {}
    for field, places in fields.items():
        here = [values[place] for place in places]
        if field in LISTS:
            is_plain = all(map(_is_plain, here)) and (
                len(here) > 1 or isinstance(here[0], str)
            )
            items = (item for value in here for item in _parts(value, separator))
            record[field] = (
                list(dict.fromkeys(items)) if is_plain else _as_list(here[0])
            )
        elif field == "description" and len(here) > 1:
            record[field] = " ".join(
                dict.fromkeys(str(value) for value in here if value)
            )
        elif field != NAMES:
            record[field] = here[0]
    further_titles = [values[place] for place in fields.get(NAMES, ())]
    if further_titles:
        names = [record.get("title", ""), *further_titles]
        names = [item for name in names for item in _parts(name, "") if item]
        title, *aliases = dict.fromkeys(names) or [""]
        record["title"] = title
        aliases = list(dict.fromkeys([*aliases, *record.get("aliases", ())]))
        record["aliases"] = [alias for alias in aliases if alias != title]
    return record


def further_ids(value: Any) -> list[str] | None:
    """Ids that lead to a record's entity; None where the value is something else."""
    ids = [value] if isinstance(value, str) else value
    if isinstance(ids, (list, tuple)) and all(
        isinstance(entity_id, str) for entity_id in ids
    ):
        return list(ids)
    return None


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or ``pandas.NA``."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return not isinstance(value, str) and isinstance(value, Real) and value != value


def _as_list(value: Any) -> Any:
    """A value of a data frame, such as an array, as a list without nulls."""
    is_list = hasattr(value, "__iter__") and not isinstance(value, (str, Mapping))
    if is_list:
        return [item for item in value if not is_missing(item)]
    return value


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return True
    is_list = hasattr(value, "__iter__") and not isinstance(value, Mapping)
    return is_list and all(isinstance(item, str) for item in value)


def _parts(value: Any, separator: str) -> list[Any]:
    """The texts in a value. separator: Where a string is split; "" for nowhere."""
    if not isinstance(value, str):
        return list(value) if hasattr(value, "__iter__") else [value]
    text = value.strip()
    if separator and text[:1] == "[" and _PRINTED_LIST.fullmatch(text):
        return [ast.literal_eval(literal) for literal in re.findall(_QUOTED, text)]
    pieces = (
        piece.strip() for piece in (text.split(separator) if separator else [text])
    )
    return [piece for piece in pieces if piece]
