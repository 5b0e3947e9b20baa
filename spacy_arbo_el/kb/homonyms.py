"""Entities that share a name: what tells them apart is added to their verbalization."""

from collections import Counter
from dataclasses import replace
from typing import Dict, Iterator, List, Sequence, Tuple

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

    An entity that needs none any more loses its qualifier.

    RETURNS: The number of entities that share a name, and of those that have a qualifier.
    """
    shared: Dict[str, List[int]] = {}
    for folded, position in kb.database.rows(
        "SELECT folded, position FROM name WHERE folded IN (SELECT folded FROM name "
        "GROUP BY folded HAVING count(DISTINCT position) > 1) GROUP BY folded, position"
    ):
        shared.setdefault(folded, []).append(position)
    names_of: Dict[int, List[str]] = {}
    for name, positions in shared.items():
        for position in positions:
            names_of.setdefault(position, []).append(name)
    entities = kb.entities.at_all(sorted(names_of))
    options = {p: list(_options(kb, entity, shared)) for p, entity in entities.items()}
    counts = {
        name: Counter(key for p in positions for key in _keys(options[p]))
        for name, positions in shared.items()
    }
    qualifiers = {
        entities[p].id: _distinct(options[p], [counts[name] for name in names])
        for p, names in names_of.items()
    }
    changed = [
        _qualified(entity, qualifiers.get(entity.id, ""))
        for entity in kb
        if entity.meta.get(QUALIFIER, "") != qualifiers.get(entity.id, "")
    ]
    if changed:
        kb.update(changed)
    return len(names_of), sum(map(bool, qualifiers.values()))


def _options(kb: ArboKB, entity: Entity, shared: Dict[str, List[int]]) -> Iterator[str]:
    """What may be added to the names of an entity, best first."""
    yield ", ".join(sorted(entity.types))
    parents = entity.meta.get("parents", ())
    yield ", ".join(kb.get(one).title for one in parents if isinstance(one, str) and one in kb)
    yield next((name for name in entity.names if name.casefold() not in shared), "")


def _keys(options: Sequence[str]) -> Iterator[Tuple[int, str]]:
    """What two options have in common that do not tell entities apart: kind and spelling."""
    return ((kind, option.casefold()) for kind, option in enumerate(options) if option)


def _distinct(options: Sequence[str], counts: Sequence["Counter[Tuple[int, str]]"]) -> str:
    """The first option that no other entity of the same names has; "" where there is none.

    counts: For each of the entity's shared names, how many entities have an option.
    """
    for kind, option in enumerate(options):
        if option and all(count[kind, option.casefold()] == 1 for count in counts):
            return option
    return ""


def _qualified(entity: Entity, qualifier: str) -> Entity:
    meta = {key: value for key, value in entity.meta.items() if key != QUALIFIER}
    return replace(entity, meta={**meta, QUALIFIER: qualifier} if qualifier else meta)
