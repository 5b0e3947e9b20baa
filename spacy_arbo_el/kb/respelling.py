"""Strings that are a name of an entity in another spelling, such as "Mueller" of "Müller"."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..names.spellings import (
    BARE,
    OWN,
    all_spellings,
    compatible,
    folded,
    other_spellings,
)
from .store import EntityStore

Found = dict[str, list[tuple[int, int]]]


@dataclass(frozen=True)
class Match:
    """A name's spelling that is that of a string, too, and the entities that have such a name."""

    spelling: str
    positions: list[int]


def match_spellings(
    entities: EntityStore,
    strings: Sequence[str],
    as_written: Sequence[str] | None = None,
) -> list[Match | None]:
    """Find the names that strings are in another spelling, the first of ``other_spellings``.

    as_written: For each string another one, such as the mention before it was normalized.
    RETURNS: None where either is a name in its own spelling, and for none.
    """
    spellings = list(map(folded, strings))
    written = spellings if as_written is None else list(map(folded, as_written))
    entities_of = entities.with_spellings((*spellings, *written))
    is_open = [
        not _is_name(entities_of, spelling) and not _is_name(entities_of, other)
        for spelling, other in zip(spellings, written)
    ]
    further = {
        spelling: other_spellings(spelling)
        for spelling, unknown in zip(spellings, is_open)
        if unknown and spelling not in entities_of
    }
    entities_of |= entities.with_spellings(
        further_spelling for group in further.values() for further_spelling in group
    )
    return [
        next(_matches(entities_of, spelling, further.get(spelling, {})), None)
        if unknown
        else None
        for spelling, unknown in zip(spellings, is_open)
    ]


def respelled(
    entities: EntityStore, strings: Sequence[str], written: Sequence[str]
) -> list[str]:
    """The names that strings are in another spelling, to read them as.

    strings: The mentions, normalized.
    written: The mentions before that.
    RETURNS: "" for a string that stays, since it is a name itself, or another spelling of none or
        of names that differ. It gets the compatible form of Unicode, in which names are compared.
    """
    matches = match_spellings(entities, strings, written)
    positions = {
        position
        for match in matches
        if match is not None
        for position in match.positions
    }
    names = {
        position: entity.names_in_text
        for position, entity in entities.at_all(positions).items()
    }
    common = ["" if match is None else _common_name(match, names) for match in matches]
    return [
        name or ("" if string.isascii() else compatible(string))
        for name, string in zip(common, strings)
    ]


def _is_name(entities_of: Found, spelling: str) -> bool:
    return any(kind == OWN for _, kind in entities_of.get(spelling, ()))


def _matches(
    entities_of: Found, string: str, further: dict[str, int]
) -> Iterator[Match]:
    """Matches in order. The bare name of a heading is no other heading's."""
    if string in entities_of:
        yield Match(string, [position for position, _ in entities_of[string]])
    for spelling, kind in further.items():
        same = [
            position
            for position, other_kind in entities_of.get(spelling, ())
            if not (kind == BARE and other_kind == BARE)
        ]
        if same:
            yield Match(spelling, same)


def _common_name(match: Match, names: dict[int, list[str]]) -> str:
    """A name of all entities of a match that has its spelling; "" for none."""
    first_names, *further_names = [
        {
            folded(name): compatible(name)
            for name in names.get(position, ())
            if match.spelling in all_spellings([name])
        }
        for position in match.positions
    ]
    common = (
        name
        for key, name in first_names.items()
        if all(key in names_of_entity for names_of_entity in further_names)
    )
    return next(common, "")
