"""Ids that lead to entities with another id, such as those that were merged."""

from collections.abc import Mapping

from .store import EntityStore


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
