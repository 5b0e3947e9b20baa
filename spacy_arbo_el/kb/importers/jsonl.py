"""The format of this project: JSONL, one entity per line."""

import json
from typing import Any, Dict, Iterable, Iterator, Optional, Tuple

import srsly

from ...formats import entity_formats
from ...storage.files import replacing
from ...storage.lines import (
    OnBad,
    PathLike,
    check_exists,
    is_storable,
    line_error,
    read_records,
    throw,
)
from ..entity import NIL, Entity, is_frequency, json_of
from .fields import FIELDS, RecordReader
from .report import ImportReport


@entity_formats("jsonl")
def read_entities_jsonl(
    path: PathLike,
    report: Optional[ImportReport] = None,
    *,
    unique: bool = True,
    encoding: str = "utf8",
    bad: OnBad = throw,
) -> Iterator[Entity]:
    """Yield the entities of a JSONL file, one at a time. Empty lines are skipped.

    A line is an object with "id" and, optionally, "title", "description", "aliases" and "types"
    (lists of strings), "frequency" and "meta". Usual names of these, such as "name" and "synonyms",
    are read too. Other keys go to ``meta``; a warning says where names are missing.

    Raises ValueError with file, line and problem at the first invalid line. The error for an id
    that occurs twice names both lines.

    path: The file.
    report: Not used: no line is left out.
    unique: Whether to check that no id occurs twice, which needs memory for all ids.
    encoding: That of the file.
    bad: What to do with the error of an invalid line.
    """
    records = read_records(path, bad, encoding=encoding)
    yield from entities_of_records(records, path, unique=unique, bad=bad)


@entity_formats("json")
def read_entities_json(
    path: PathLike, report: Optional[ImportReport] = None, *, bad: OnBad = throw
) -> Iterator[Entity]:
    """Yield the entities of a JSON file: a list of objects as in ``read_entities_jsonl``.

    Raises ValueError with file, number of the entry (as its line) and problem.
    """
    try:
        records = srsly.read_json(check_exists(path))
    except (ValueError, RecursionError) as error:
        raise line_error(path, 1, f"no valid JSON: {error}.") from None
    if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
        problem = "expected a list of objects. For Wikidata, give --format wikidata."
        raise line_error(path, 1, problem)
    yield from entities_of_records(enumerate(records, 1), path, unique=True, bad=bad)


def entities_of_records(
    records: Iterable[Tuple[int, Dict[str, Any]]], path: PathLike, *, unique: bool, bad: OnBad
) -> Iterator[Entity]:
    """The entities of records with their line numbers, see ``read_entities_jsonl``."""
    lines_of: Dict[str, int] = {}
    reader = RecordReader()
    for number, line in records:
        record = reader.read(line)
        problem = problem_of(record)
        if problem:
            bad(line_error(path, number, problem))
            continue
        try:
            if unique:
                check_new(record["id"], number, lines_of, path)
        except ValueError as error:
            bad(error)
            continue
        yield entity_of(record)
    reader.warn()


def line_of(path: PathLike, entity_id: str, nth: int = 1) -> int:
    """The line of a JSONL file in which an id occurs for the nth time; 0 for none."""
    reader = RecordReader()
    for number, record in read_records(path):
        nth -= reader.read(record).get("id") == entity_id
        if not nth:
            return number
    return 0


def write_entities_jsonl(entities: Iterable[Entity], path: PathLike) -> int:
    """Write entities in the format that ``read_entities_jsonl`` reads.

    If writing fails, the previous file stays. ValueError where ``meta`` can't be written as JSON.

    RETURNS: The number of entities.
    """
    count = 0
    with replacing(path) as file:
        for entity in entities:
            file.write(entity_line(entity).encode("utf8") + b"\n")
            count += 1
    return count


def entity_line(entity: Entity) -> str:
    """An entity as a line of JSONL. ValueError where ``meta`` can't be written as JSON."""
    entity.meta_json()
    return json.dumps(entity.to_dict(), ensure_ascii=False)


def check_new(id_: str, number: int, lines_of: Dict[str, int], path: PathLike) -> None:
    """Raise ValueError where an id occurred before; otherwise write down its line.

    number: The line.
    lines_of: The lines of the ids so far.
    """
    if id_ in lines_of:
        raise line_error(
            path,
            number,
            f"the entity id {id_!r} was used before, in line {lines_of[id_]}. Merge the two "
            "entries, or give one of them another id.",
        )
    lines_of[id_] = number


def problem_of(record: Dict[str, Any]) -> str:
    """What is wrong with the record of an entity; "" where it is valid."""
    if not is_storable(record.get("id")) or not record["id"].strip() or record["id"] == NIL:
        return f"'id' must be a non-empty string and not 'NIL' (got {record.get('id')!r:.40})."
    if "|" in record["id"]:
        return f"'id' must not hold '|', which joins composite ids (got {record['id']!r:.40})."
    for key in ("title", "description"):
        if not is_storable(record.get(key, "")):
            return f"{key!r} of {record['id']!r} must be a string of whole characters without NUL."
    for key in ("aliases", "types"):
        if not is_strings(record.get(key, [])):
            return f"{key!r} of {record['id']!r} must be a list of strings without NUL."
    frequency = record.get("frequency", 0)
    if isinstance(frequency, bool) or not is_frequency(frequency):
        return f"'frequency' of {record['id']!r} must be a number from 0 up."
    if not isinstance(record.get("meta", {}), dict):
        return f"'meta' of {record['id']!r} must be an object."
    if not _is_json(_meta_of(record)):
        return (
            f"the other fields of {record['id']!r} must have finite numbers and whole characters."
        )
    return ""


def is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_storable, value))


def _is_json(meta: Dict[str, Any]) -> bool:
    """Whether values can be stored: 1e999 is infinite, and "\\ud83d" is half a character."""
    try:
        return not meta or bool(json_of(meta))
    except ValueError:
        return False


def _meta_of(record: Dict[str, Any]) -> Dict[str, Any]:
    other = {key: value for key, value in record.items() if key not in FIELDS}
    return {**record.get("meta", {}), **other}


def entity_of(record: Dict[str, Any]) -> Entity:
    """The entity of a valid record."""
    return Entity(
        id=record["id"],
        title=record.get("title", ""),
        description=record.get("description", ""),
        aliases=tuple(record.get("aliases", ())),
        types=tuple(record.get("types", ())),
        frequency=record.get("frequency", 0.0),
        meta=_meta_of(record),
    )
