"""Map equivalent ids to those of the knowledge base."""

from typing import TYPE_CHECKING, Dict, Iterable, Mapping, Optional, Tuple

from ..kb.importers.medic import strip_prefix
from .annotated import unique

if TYPE_CHECKING:
    from ..kb.entity import Entity


def normalise_ids(
    ids: Iterable[str], concept_map: Optional[Mapping[str, str]] = None
) -> Tuple[str, ...]:
    """Map a mention's ids to concepts of the knowledge base. In order, without duplicates.

    An id that is not in the map is kept, without its prefix "OMIM:" or "MESH:": a gold id that is
    missing from the knowledge base is a miss, not NIL.

    ids: The mention's ids.
    concept_map: From equivalent id to concept, see ``concept_map_of``. None leaves the ids
        unchanged.
    """
    if concept_map is None:
        return unique(ids)
    return unique(_concept(id_, concept_map) for id_ in ids)


def _concept(id_: str, concept_map: Mapping[str, str]) -> str:
    if id_ in concept_map:
        return concept_map[id_]
    bare = strip_prefix(id_)
    return concept_map.get(bare, bare)


def concept_map_of(entities: Iterable["Entity"]) -> Dict[str, str]:
    """Map every id of an entity to its main id. Its further ids are in ``meta["ids"]``.

    If several entities have an id, the entity whose own id it is gets it, otherwise the first.
    """
    mapping: Dict[str, str] = {}
    own = set()
    for entity in entities:
        own.add(entity.id)
        for id_ in entity.meta.get("ids", ()):
            mapping.setdefault(id_, entity.id)
    mapping.update((id_, id_) for id_ in own)
    return mapping
