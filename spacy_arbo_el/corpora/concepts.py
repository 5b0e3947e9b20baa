"""Ids that mean the same: from any of a concept's ids to the one the knowledge base uses."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Dict, Iterable, Mapping, Optional, Tuple

from ..errors import Errors
from .annotated import unique
from .files import PathLike, check_exists

if TYPE_CHECKING:
    from ..kb.entity import Entity

# NCBI Disease writes "OMIM:104300", PubTator Central "MESH:D000544"; the dictionaries write
# both without a prefix.
PREFIXES = ("OMIM:", "MESH:")


def strip_prefix(id_: str) -> str:
    """The id without blanks round it and without "OMIM:" or "MESH:"."""
    id_ = id_.strip()
    for prefix in PREFIXES:
        if id_.upper().startswith(prefix):
            return id_[len(prefix) :].strip()
    return id_


def normalise_ids(
    ids: Iterable[str], concept_map: Optional[Mapping[str, str]] = None
) -> Tuple[str, ...]:
    """Bring a mention's ids to the concepts of a knowledge base, each once, in order.

    concept_map: From equivalent id to concept, see ``read_concept_map`` and
        ``concept_map_of``. Without one the ids stay exactly as they are; with one, an
        id it doesn't know loses its "OMIM:" or "MESH:" and is kept (a gold id that is
        not in the knowledge base is a miss, not a NIL).
    """
    if concept_map is None:
        return unique(ids)
    return unique(_concept(id_, concept_map) for id_ in ids)


def _concept(id_: str, concept_map: Mapping[str, str]) -> str:
    if id_ in concept_map:
        return concept_map[id_]
    bare = strip_prefix(id_)
    return concept_map.get(bare, bare)


def read_equivalents(path: PathLike) -> Dict[str, Tuple[str, ...]]:
    """Read ``concept_map.json``: from concept to all its equivalent ids.

    path: The file, or the folder that holds it. Raises ValueError where it isn't an
    object of lists of strings, or where one id belongs to two concepts.
    """
    path = _concept_file(path)
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as err:
        raise ValueError(Errors.E111.format(path=path, problem=f"no valid JSON ({err})")) from None
    if not isinstance(data, dict):
        raise ValueError(Errors.E111.format(path=path, problem="it isn't a JSON object"))
    for concept, ids in data.items():
        if not isinstance(ids, list) or not all(isinstance(id_, str) and id_ for id_ in ids):
            problem = f"the ids of {concept!r} aren't a list of strings"
            raise ValueError(Errors.E111.format(path=path, problem=problem))
    _check_partition(data, path)
    return {concept: unique([concept, *ids]) for concept, ids in data.items()}


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


def read_concept_map(path: PathLike) -> Dict[str, str]:
    """Read ``concept_map.json`` the way round that is needed: from equivalent id to concept."""
    return {id_: concept for concept, ids in read_equivalents(path).items() for id_ in ids}


def concept_map_of(entities: Iterable["Entity"]) -> Dict[str, str]:
    """From every id an entity goes by (its own and those in ``meta["ids"]``) to its own id.

    Where two entities claim an id, the one whose own id it is has it; failing that,
    the first.
    """
    mapping: Dict[str, str] = {}
    own = set()
    for entity in entities:
        own.add(entity.id)
        for id_ in entity.meta.get("ids", ()):
            mapping.setdefault(id_, entity.id)
    mapping.update((id_, id_) for id_ in own)
    return mapping
