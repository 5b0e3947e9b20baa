"""Entities that share a name: what tells them apart is added to their verbalization."""

from collections import Counter
from dataclasses import replace
from typing import Dict, Iterator, List, Sequence, Set, Tuple

from .entity import Entity
from .knowledge_base import ArboKB

# The key of ``meta`` that holds what tells an entity from others of the same name.
QUALIFIER = "qualifier"


def add_qualifiers(kb: ArboKB) -> Tuple[int, int]:
    """Give each entity that shares a name with others a qualifier, ``meta["qualifier"]``.

    A qualifier is the first of these that none of the others has: the types, the names of the
    parents (``meta["parents"]``, ids), an alias that is no shared name. So names that are the same
    for several entities get different vectors, with ``Names.v1`` and ``qualifier = true`` (BELHD:
    Garda and Leser 2024). Names count as shared where they differ only in upper and lower case.

    RETURNS: The number of entities that share a name, and of those that have a qualifier.
    """
    groups = kb.database.rows(
        "SELECT folded, position FROM name WHERE folded IN (SELECT folded FROM name "
        "GROUP BY folded HAVING count(DISTINCT position) > 1) GROUP BY folded, position"
    )
    shared: Dict[str, List[int]] = {}
    for folded, position in groups:
        shared.setdefault(folded, []).append(position)
    positions = sorted({position for group in shared.values() for position in group})
    entities = kb.entities.at_all(positions)
    rivals: Dict[int, Set[int]] = {position: set() for position in positions}
    for group in shared.values():
        for position in group:
            rivals[position].update(group)
    options = {p: list(_options(kb, entities[p], shared)) for p in positions}
    changed = [
        replace(entity, meta={**entity.meta, QUALIFIER: qualifier})
        for position, entity in entities.items()
        if (qualifier := _distinct(options[position], [options[p] for p in rivals[position]]))
    ]
    if changed:
        kb.update(changed)
    return len(positions), len(changed)


def _options(kb: ArboKB, entity: Entity, shared: Dict[str, List[int]]) -> Iterator[str]:
    """What an entity may be called by beside its names, best first."""
    yield ", ".join(entity.types)
    parents = entity.meta.get("parents", ())
    known = [kb.get(one).title for one in parents if isinstance(one, str) and one in kb]
    yield ", ".join(known)
    yield next((name for name in entity.names if name.casefold() not in shared), "")


def _distinct(own: Sequence[str], group: Sequence[Sequence[str]]) -> str:
    """The first of an entity's options that is its own alone; "" where there is none.

    group: The options of all entities that share a name, its own included.
    """
    counts = Counter((kind, option) for options in group for kind, option in enumerate(options))
    unique = (one for kind, one in enumerate(own) if one and counts[kind, one] == 1)
    return next(unique, "")
