"""Wikidata entities of FB15k-237: ``entity2wikidata.json``, one JSON object.

{"/m/0100mt": {"label": "El Paso", "description": "county seat of El Paso County, Texas",
               "alternatives": ["El Paso, Texas"], "wikidata_id": "Q16562",
               "wikipedia": "https://en.wikipedia.org/wiki/El_Paso,_Texas"}}
"""

import json
import re
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ...io import PathLike, check_exists, is_storable, json_kind, line_error
from ..entity import Entity
from .articles import title_of_address
from .jsonl import is_strings, problem_of
from .report import ImportReport


class _Problem(Exception):
    """What is wrong with an entry. The caller adds file and line."""


def read_fb15k(path: PathLike, report: Optional[ImportReport] = None) -> Iterator[Entity]:
    """Yield the entities of a file.

    The id is the one of Wikidata. The title is that of the Wikipedia article, or the label where
    there is no article. The other names are aliases. ``meta["ids"]`` has the id of Freebase and the
    title of the article too, so that ``arbo convert --concepts`` maps both to the entity; both lead
    to it in the knowledge base.

    Entries without a name, whose label is their id, are left out, and so are further entries of the
    same id of Wikidata, whose ids of Freebase lead to the first one.

    Raises ValueError with file, line and problem at an invalid entry.

    path: The file. It is read as a whole.
    report: Gets the number of entries left out, and the ids that lead to others.
    """
    report = report or ImportReport()
    content = _content(path)
    seen = set()
    for freebase, entry in _entries(path, content):
        try:
            record = _record(freebase, entry)
        except _Problem as problem:
            raise line_error(path, _line_of(content, freebase), str(problem)) from None
        if record["title"] == record["id"]:
            report.skip("no name")
            continue
        report.redirect(record["meta"]["ids"][1:], record["id"])
        if record["id"] in seen:
            report.skip("another entry has the same id of Wikidata")
            continue
        seen.add(record["id"])
        yield Entity(**record)


def _content(path: PathLike) -> str:
    data = check_exists(path).read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"the file isn't UTF-8 here ({error.reason}). Save it as UTF-8."
        line = data.count(b"\n", 0, error.start) + 1
        raise line_error(path, line, problem) from None


def _entries(path: PathLike, content: str) -> List[Tuple[str, Any]]:
    """The entries by their ids of Freebase, in order, each id once."""
    try:
        entries = json.loads(content, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        problem = f"no valid JSON: {error.msg} at column {error.colno}."
        raise line_error(path, error.lineno, problem) from None
    except _Twice as error:
        line = _line_of(content, error.key, last=True)
        raise line_error(path, line, f"the key {error.key!r} occurs twice.") from None
    except (ValueError, RecursionError) as error:
        raise line_error(path, 1, f"no valid JSON: {error}.") from None
    if not isinstance(entries, dict):
        problem = f"expected an object of entries by id of Freebase, got {json_kind(entries)}."
        raise line_error(path, 1, problem)
    return list(entries.items())


class _Twice(ValueError):
    """A key that occurs twice in an object."""

    def __init__(self, key: str):
        self.key = key


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(key)
        found[key] = value
    return found


def _line_of(content: str, key: str, last: bool = False) -> int:
    """The line where a key occurs first, or last; 1 where it is written in another way."""
    places = [m.start() for m in re.finditer(re.escape(json.dumps(key)) + r"\s*:", content)]
    return content.count("\n", 0, places[-1 if last else 0]) + 1 if places else 1


def _record(freebase: str, entry: Any) -> Dict[str, Any]:
    """The fields of the entity."""
    if not is_storable(freebase):
        raise _Problem(f"the key {freebase!r} must be whole characters without NUL.")
    if not isinstance(entry, dict):
        raise _Problem(f"the entry {freebase!r} must be an object, got {json_kind(entry)}.")
    id_, label = _text(freebase, entry, "wikidata_id"), _text(freebase, entry, "label")
    names = entry.get("alternatives") or []
    if not is_strings(names):
        raise _Problem(f"'alternatives' of {freebase!r} must be a list of strings without NUL.")
    try:
        article = title_of_address(_text(freebase, entry, "wikipedia"))
    except ValueError:
        raise _Problem(f"'wikipedia' of {freebase!r} must be an address in UTF-8.") from None
    title = article or label
    ids = [id_, freebase, *([article] if article else [])]
    record = {
        "id": id_,
        "title": title,
        "description": _text(freebase, entry, "description"),
        "aliases": [name for name in dict.fromkeys([label, *names]) if name and name != title],
        "meta": {"ids": ids},
    }
    problem = problem_of(record) or ("" if title else f"'label' of {freebase!r} is empty.")
    if problem:
        raise _Problem(problem)
    return record


def _text(freebase: str, entry: Dict[str, Any], key: str) -> str:
    """A text; "" where it is null or missing."""
    value = entry.get(key)
    if value is None:
        return ""
    if not is_storable(value):
        raise _Problem(f"{key!r} of {freebase!r} must be a string of whole characters without NUL.")
    return value.strip()
