"""Entities from files: the project's own JSONL and the MEDIC disease dictionaries."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Tuple

from ..corpora.concepts import read_equivalents
from ..corpora.files import PathLike, check_exists, is_text, line_error, read_lines
from ..corpora.jsonl import read_records
from ..io import replacing
from .entity import NIL, Entity

FIELDS = ("id", "title", "description", "aliases", "types", "meta")
DISEASE = ("Disease",)


def read_entities_jsonl(path: PathLike) -> Iterator[Entity]:
    """Yield the entities of a JSONL file, one at a time; empty lines are skipped.

    A line is an object with "id" and, as you have them, "title", "description", "aliases" and
    "types" (lists of strings). Whatever else it holds goes to ``meta``.
    Raises ValueError with file, line and problem at the first line that isn't right; an id that
    occurs twice is an error that names both lines.
    """
    lines_of: Dict[str, int] = {}
    for number, record in read_records(path):
        problem = _problem(record)
        if problem:
            raise line_error(path, number, problem)
        _check_new(record["id"], number, lines_of, path)
        yield _entity(record)


def write_entities_jsonl(entities: Iterable[Entity], path: PathLike) -> int:
    """Write entities in the format ``read_entities_jsonl`` reads, all or nothing.

    RETURNS: How many were written.
    """
    count = 0
    with replacing(path) as file:
        for entity in entities:
            line = json.dumps(entity.to_dict(), ensure_ascii=False)
            file.write(line.encode("utf8") + b"\n")
            count += 1
    return count


def read_medic_half(folder: PathLike, unnamed: bool = True) -> Iterator[Entity]:
    """Yield the concepts of the BioCoM paper's dictionary, in the order of ``concept_map.json``.

    folder: Holds ``disease_down_half.tsv`` and ``concept_map.json``.
    unnamed: The dictionary is half of MEDIC's names, so that about one concept in six has lost all
        of its own. By default these come too, with their id for a title and ``meta["unnamed"]``: no
        name leads to them, but a labelled mention may. False leaves them out.

    The title is the first of a concept's names, the aliases are the rest; ``meta["ids"]`` holds the
    equivalent ids (``concept_map_of`` turns them into a map for ``normalise_ids``).
    Raises ValueError with file, line and problem where a line isn't right.
    """
    folder = check_exists(folder)
    equivalents = read_equivalents(folder)
    names = _names_by_concept(folder / "disease_down_half.tsv", equivalents)
    for concept, ids in equivalents.items():
        if concept in names:
            yield _disease(concept, names[concept], ids)
        elif unnamed:
            yield _disease(concept, [concept], ids, unnamed=True)


def read_medic_2012(path: PathLike) -> Iterator[Entity]:
    """Yield the entities of a MEDIC dictionary whose lines are ``id[|id…]||name[|synonym…]``.

    The first id is the entity's, ``meta["ids"]`` holds all.
    Raises ValueError with file, line and problem where a line isn't right or an id that is an
    entity's own occurs twice.
    """
    lines_of: Dict[str, int] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        before, _, after = line.partition("||")
        ids, names = _parts(before), _parts(after)
        if not ids or not names:
            raise line_error(path, number, "expected 'id[|id…]||name[|synonym…]'.")
        _check_new(ids[0], number, lines_of, path)
        yield _disease(ids[0], names, tuple(ids))


def _parts(text: str) -> List[str]:
    return [part.strip() for part in text.split("|") if part.strip()]


def _disease(id_: str, names: List[str], ids: Tuple[str, ...], unnamed: bool = False) -> Entity:
    title, *aliases = dict.fromkeys(names)
    meta: Dict[str, Any] = {"ids": list(ids)}
    if unnamed:
        meta["unnamed"] = True
    return Entity(id=id_, title=title, aliases=tuple(aliases), types=DISEASE, meta=meta)


def _names_by_concept(path: Path, equivalents: Dict[str, Tuple[str, ...]]) -> Dict[str, List[str]]:
    concept_of = {id_: concept for concept, ids in equivalents.items() for id_ in ids}
    names: Dict[str, List[str]] = defaultdict(list)
    for number, line in read_lines(path):
        if not line.strip():
            continue
        name, ids = _medic_line(line, path, number)
        for id_ in ids:
            if id_ not in concept_of:
                problem = f"the id {id_!r} of {name!r} isn't in concept_map.json."
                raise line_error(path, number, problem)
        for concept in dict.fromkeys(concept_of[id_] for id_ in ids):
            names[concept].append(name)
    return names


def _medic_line(line: str, path: Path, number: int) -> Tuple[str, List[str]]:
    try:
        name, ids = json.loads(line)
        if is_text(name) and name.strip() and ids and _is_strings(ids):
            return name.strip(), ids
    except (ValueError, TypeError, RecursionError):
        pass
    raise line_error(path, number, 'expected a JSON array ["name", ["id", …]].')


def _check_new(id_: str, number: int, lines_of: Dict[str, int], path: PathLike) -> None:
    if id_ in lines_of:
        raise line_error(
            path,
            number,
            f"the entity id {id_!r} was used before, in line {lines_of[id_]}. Merge the two "
            "entries, or give one of them another id.",
        )
    lines_of[id_] = number


def _problem(record: Dict[str, Any]) -> str:
    """What is wrong with an entity's record, or nothing."""
    if not is_text(record.get("id")) or not record["id"].strip() or record["id"] == NIL:
        return f"'id' must be a non-empty string and not 'NIL' (got {record.get('id')!r:.40})."
    if "|" in record["id"]:
        return f"'id' must not hold '|', which joins composite ids (got {record['id']!r:.40})."
    for key in ("title", "description"):
        if not is_text(record.get(key, "")):
            return f"{key!r} of {record['id']!r} must be a string of whole characters."
    for key in ("aliases", "types"):
        if not _is_strings(record.get(key, [])):
            return f"{key!r} of {record['id']!r} must be a list of strings."
    if not isinstance(record.get("meta", {}), dict):
        return f"'meta' of {record['id']!r} must be an object."
    return ""


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(is_text(item) and item for item in value)


def _entity(record: Dict[str, Any]) -> Entity:
    other = {key: value for key, value in record.items() if key not in FIELDS}
    return Entity(
        id=record["id"],
        title=record.get("title", ""),
        description=record.get("description", ""),
        aliases=tuple(record.get("aliases", ())),
        types=tuple(record.get("types", ())),
        meta={**record.get("meta", {}), **other},
    )
