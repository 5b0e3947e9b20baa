"""Concepts with several equivalent ids: their prefixes, and the file ``concept_map.json``."""

import json
from pathlib import Path
from typing import Dict, Iterable, Mapping, Tuple

from ...errors import Errors
from ...io import PathLike, check_exists, is_storable
from ..entity import NIL

# NCBI Disease writes "OMIM:104300" and PubTator Central "MESH:D000544". The dictionaries use no
# prefix.
PREFIXES = ("OMIM:", "MESH:")
# What corpora write for a mention without a concept.
NO_CONCEPT = ("", "-1", NIL)


def strip_prefix(id_: str) -> str:
    """The id without surrounding whitespace and without the prefix "OMIM:" or "MESH:"."""
    id_ = id_.strip()
    for prefix in PREFIXES:
        if id_.upper().startswith(prefix):
            return id_[len(prefix) :].strip()
    return id_


def read_equivalents(path: PathLike) -> Dict[str, Tuple[str, ...]]:
    """Read ``concept_map.json``: from concept to all its equivalent ids.

    Raises ValueError if the file is no JSON object of lists of strings, or if an id belongs to two
    concepts.

    path: The file, or its folder.
    """
    path = _concept_file(path)
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as err:
        raise ValueError(Errors.E111.format(path=path, problem=f"no valid JSON ({err})")) from None
    if not isinstance(data, dict):
        raise ValueError(Errors.E111.format(path=path, problem="it isn't a JSON object"))
    for concept, ids in data.items():
        if not isinstance(ids, list) or not all(is_storable(id_) and id_ for id_ in ids):
            problem = f"the ids of {concept!r} aren't a list of strings"
            raise ValueError(Errors.E111.format(path=path, problem=problem))
        if not is_storable(concept) or not concept.strip() or "|" in concept or concept == NIL:
            problem = f"{concept!r} can't be the id of a concept"
            raise ValueError(Errors.E111.format(path=path, problem=problem))
    _check_partition(data, path)
    return {concept: unique_ids([concept, *ids]) for concept, ids in data.items()}


def unique_ids(ids: Iterable[str]) -> Tuple[str, ...]:
    """The ids that name a concept, without duplicates, in order."""
    return tuple(dict.fromkeys(id_ for id_ in ids if id_ not in NO_CONCEPT))


def _check_partition(data: Mapping[str, Iterable[str]], path: Path) -> None:
    owners: Dict[str, str] = {}
    for concept, ids in data.items():
        for id_ in ids:
            if owners.setdefault(id_, concept) != concept:
                problem = f"the id {id_!r} belongs to two concepts, {owners[id_]!r} and {concept!r}"
                raise ValueError(Errors.E111.format(path=path, problem=problem))


def _concept_file(path: PathLike) -> Path:
    path = check_exists(path)
    return check_exists(path / "concept_map.json") if path.is_dir() else path
