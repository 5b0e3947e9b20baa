"""Ids that lead to entities with another id, such as those that were merged."""

from collections.abc import Mapping
from dataclasses import dataclass

from .store import EntityStore


@dataclass(frozen=True)
class CarriedOver:
    """Merged ids of a knowledge base that was replaced, in the new one.

    kept: Those that lead to an entity of the new one, with its id.
    own: How many are ids of the new one's own entities.
    lost: How many lead to an entity that the new one lacks.
    """

    kept: Mapping[str, str]
    own: int = 0
    lost: int = 0


def carried_over(store: EntityStore, redirects: Mapping[str, str]) -> CarriedOver:
    """Find which redirects of another knowledge base hold in a store.

    An id that the store redirects itself is in none of the counts.
    """
    others = {old: redirects[old] for old in redirects.keys() - store.redirects().keys()}
    kept = usable(store, others)
    own = int((store.positions_of(list(others)) >= 0).sum())
    return CarriedOver(kept, own, len(others) - len(kept) - own)


def usable(store: EntityStore, redirects: Mapping[str, str]) -> dict[str, str]:
    """Redirects to entities that exist, from ids that lead nowhere yet."""
    if not redirects:
        return {}
    ends = {old: _end(redirects, old) for old in redirects}
    positions = store.positions_of([*ends, *ends.values()])
    old = positions[: len(ends)]
    new = positions[len(ends) :]
    is_usable = (old < 0) & (new >= 0)
    return dict(pair for pair, use in zip(ends.items(), is_usable.tolist()) if use)


def by_entity(redirects: Mapping[str, str]) -> dict[str, list[str]]:
    """The ids that lead to each entity, in order."""
    found: dict[str, list[str]] = {}
    for old in sorted(redirects):
        found.setdefault(redirects[old], []).append(old)
    return found


def _end(redirects: Mapping[str, str], old: str) -> str:
    """Resolve an id through replaced terms. These may be replaced by obsolete ones."""
    passed = {old}
    while (new := redirects[old]) in redirects and new not in passed:
        passed.add(new)
        old = new
    return new
