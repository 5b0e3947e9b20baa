"""Names that share a word in a coordination: "breast and ovarian cancer", "cancer, breast"."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from ..names.coordination import BETWEEN
from ..names.word_index import WordIndex
from .windows import JOINING, Place, Unit, nearest_names

# The most words of a part, and those of a symbol, such as "B" in "hepatitis B and C".
MOST_WORDS = 3
LONGEST_SYMBOL = 2
# An abbreviation in brackets.
_IN_BRACKETS = re.compile(r"\s?\([A-Z][^\s()]{1,9}\)\s?-?")


class Shared(NamedTuple):
    """A part of a coordination with the words that it shares with a name beside it.

    first, end: Its units.
    shared: The words of the name that it lacks.
    is_before: Whether it stands before the name.
    """

    first: int
    end: int
    shared: tuple[Unit, ...]
    is_before: bool

    def words(self, units: Sequence[Unit]) -> list[Unit]:
        """Its words as a name has them."""
        words = units[self.first : self.end]
        return [*words, *self.shared] if self.is_before else [*self.shared, *words]


class Coordinations:
    """Finds the parts of coordinations in a text.

    units: Those of the text.
    index: The names.
    least: The least similarity of a part to a name.
    """

    def __init__(
        self, text: str, units: Sequence[Unit], index: WordIndex, least: float
    ) -> None:
        self.text = text
        self.units = units
        self.index = index
        self.least = least
        ends = {unit.end: number for number, unit in enumerate(units)}
        starts = {unit.start: number for number, unit in enumerate(units)}
        # The units before which a coordination goes on.
        self.borders = {
            starts[match.end()]: match[0]
            for match in BETWEEN.finditer(text)
            if match.end() in starts
            and starts[match.end()] - 1 == ends.get(match.start())
        }
        self.starts = starts
        self.ends = ends

    def parts(self, names: Iterable[Place]) -> Iterator[tuple[Place, int, float]]:
        """Yield the places of parts, with the name that each is and the similarity.

        A part that has a name is followed by the next one of the same coordination.

        names: The places of names in the text.
        """
        taken = set(names)
        todo = [shared for place in sorted(taken) for shared in self._beside(place)]
        while todo:
            matched: dict[tuple[int, bool], tuple[Shared, int, float]] = {}
            matches = nearest_names(
                [shared.words(self.units) for shared in todo], self.index, self.least
            )
            for shared, (name, similarity) in zip(todo, matches):
                border = shared.end if shared.is_before else shared.first
                # The longest part comes first.
                if name >= 0:
                    matched.setdefault(
                        (border, shared.is_before), (shared, name, similarity)
                    )
            todo = []
            for shared, name, similarity in matched.values():
                place = self.units[shared.first].start, self.units[shared.end - 1].end
                if place not in taken:
                    taken.add(place)
                    yield place, name, similarity
                    todo += (
                        self._before(shared.first, shared.shared)
                        if shared.is_before
                        else self._behind(shared.end, shared.shared)
                    )

    def inverted(self) -> Iterator[tuple[Place, int, float]]:
        """Yield the places of names with a part behind a comma: "cancer, breast"."""
        units = self.units
        windows = []
        for border, sign in self.borders.items():
            first = bisect_left(
                units, units[border - 1].group, key=attrgetter("group")
            )
            end = bisect_right(units, units[border].group, key=attrgetter("group"))
            is_list = first in self.borders or end in self.borders
            is_pair = (
                sign.strip() == "," and first < border < end <= first + 2 * MOST_WORDS
            )
            if is_pair and not is_list:
                windows.append([*units[border:end], *units[first:border]])
        return self._named(windows)

    def around_definitions(self) -> Iterator[tuple[Place, int, float]]:
        """Yield the places of names in which an abbreviation is defined, which is left out.

        "von Hippel-Lindau (VHL) disease" is one.
        """
        units = self.units
        windows = []
        for match in _IN_BRACKETS.finditer(self.text):
            last = self.ends.get(match.start(), -1)
            behind = self.starts.get(match.end(), len(units))
            windows += [
                [*units[first : last + 1], *units[behind:end]]
                for first in range(max(last + 1 - 2 * MOST_WORDS, 0), last + 1)
                for end in range(behind + 1, len(units) + 1)[:MOST_WORDS]
                if self._is_together(first, last + 1)
                and self._is_together(behind, end)
            ]
        return self._named(windows)

    def _named(
        self, windows: Sequence[Sequence[Unit]]
    ) -> Iterator[tuple[Place, int, float]]:
        """Yield the places of windows that are names, with the name and the similarity."""
        matches = nearest_names(windows, self.index, self.least)
        for window, (name, similarity) in zip(windows, matches):
            if name >= 0:
                yield (min(window).start, max(window).end), name, similarity

    def _beside(self, place: Place) -> Iterator[Shared]:
        """The parts that may share words with a name."""
        first = self.starts.get(place[0])
        last = self.ends.get(place[1])
        if first is None or last is None:
            return
        words = tuple(self.units[first : last + 1])
        in_name = {unit.words for unit in words}
        for count in range(len(words) - 1, 0, -1):
            for shared in self._before(first, words[-count:]):
                of_part = self.units[shared.first : shared.end]
                if not {unit.words for unit in of_part} <= in_name:
                    yield shared
            gap = self.text[words[count - 1].end : words[count].start]
            is_joined = not JOINING.isdisjoint(gap.split())
            yield from self._behind(last + 1, words[:count], is_joined)

    def _before(self, end: int, shared: tuple[Unit, ...]) -> Iterator[Shared]:
        if end in self.borders:
            for first in range(max(end - MOST_WORDS, 0), end):
                if self._is_together(first, end):
                    yield Shared(first, end, shared, True)

    def _behind(
        self, first: int, shared: tuple[Unit, ...], is_joined: bool = True
    ) -> Iterator[Shared]:
        if first in self.borders:
            for end in range(min(first + MOST_WORDS, len(self.units)), first, -1):
                words = self.units[first:end]
                is_symbol = all(
                    unit.end - unit.start <= LONGEST_SYMBOL for unit in words
                )
                if self._is_together(first, end) and (is_joined or is_symbol):
                    yield Shared(first, end, shared, False)

    def _is_together(self, first: int, end: int) -> bool:
        is_divided = any(number in self.borders for number in range(first + 1, end))
        return not is_divided and self.units[first].group == self.units[end - 1].group
