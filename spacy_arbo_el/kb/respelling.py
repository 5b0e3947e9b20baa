"""Strings that are a name of an entity in another spelling, such as "Mueller" of "Müller"."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..names.spellings import BARE, OWN, all_spellings, compatible, folded, other_spellings
from .store import EntityStore

Found = dict[str, list[tuple[int, int]]]


@dataclass(frozen=True)
class Match:
    """A name's spelling that is that of a string, too, and the entities that have such a name."""

    spelling: str
    positions: list[int]


def match_spellings(
    entities: EntityStore, strings: Sequence[str], others: Sequence[str] | None = None
) -> list[Match | None]:
    """Find the names that strings are in another spelling, the first of ``other_spellings``.

    others: For each string another one, such as the mention before it was normalized.
    RETURNS: None where either is a name in its own spelling, and for none.
    """
    own = list(map(folded, strings))
    written = own if others is None else list(map(folded, others))
    found = entities.with_spellings((*own, *written))
    is_open = [
        not _is_name(found, one) and not _is_name(found, as_written)
        for one, as_written in zip(own, written)
    ]
    further = {
        one: other_spellings(one)
        for one, unknown in zip(own, is_open)
        if unknown and one not in found
    }
    found |= entities.with_spellings(one for group in further.values() for one in group)
    return [
        next(_matches(found, one, further.get(one, {})), None) if unknown else None
        for one, unknown in zip(own, is_open)
    ]


def respelled(entities: EntityStore, strings: Sequence[str], written: Sequence[str]) -> list[str]:
    """What strings are to be read as: the names that they are in another spelling.

    strings: The mentions, normalized.
    written: The mentions before that.
    RETURNS: "" for a string that stays, since it is a name itself, or another spelling of none or
        of names that differ. It gets the compatible form of Unicode, in which names are compared.
    """
    matches = match_spellings(entities, strings, written)
    positions = {position for one in matches if one is not None for position in one.positions}
    names = {position: entity.names for position, entity in entities.at_all(positions).items()}
    found = ["" if one is None else _common_name(one, names) for one in matches]
    return [name or _compatible_form(own) for name, own in zip(found, strings)]


def _compatible_form(string: str) -> str:
    """The compatible form of a string; "" where it has that already."""
    form = compatible(string)
    return "" if form == string else form


def _is_name(found: Found, own: str) -> bool:
    return any(kind == OWN for _, kind in found.get(own, ()))


def _matches(found: Found, own: str, further: dict[str, int]) -> Iterator[Match]:
    """Matches in order. The bare name of a heading is no other heading's."""
    if own in found:
        yield Match(own, [position for position, _ in found[own]])
    for spelling, kind in further.items():
        same = [
            position
            for position, other_kind in found.get(spelling, ())
            if not (kind == BARE and other_kind == BARE)
        ]
        if same:
            yield Match(spelling, same)


def _common_name(match: Match, names: dict[int, list[str]]) -> str:
    """A name of all entities of a match that has its spelling; "" for none."""
    common: dict[str, str] | None = None
    for position in match.positions:
        own = {
            folded(name): compatible(name)
            for name in names.get(position, ())
            if match.spelling in all_spellings([name])
        }
        common = own if common is None else {k: v for k, v in common.items() if k in own}
    return next(iter((common or {}).values()), "")
