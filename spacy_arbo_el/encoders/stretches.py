"""Stretches of long texts around their mentions."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..base.arrays import int_array

# Characters of the longest text that is one stretch.
UNCUT = 512
# A space between two printable ASCII characters.
_BORDER = re.compile(r"(?<=[!-~]) (?=[!-~])")


class Stretches(NamedTuple):
    """Stretches of texts, with the mentions in them. They do not overlap.

    texts: The stretches, s in all.
    text_of: (n,) int64, the stretch that each mention is in.
    offsets: (n, 2) int64 start and end character there, end exclusive.
    source: (s,) int64, the text that each stretch is from.
    places: (s, 2) int64, where it starts and ends there, end exclusive.
    """

    texts: list[str]
    text_of: np.ndarray
    offsets: np.ndarray
    source: np.ndarray
    places: np.ndarray


def stretches_of(
    texts: Sequence[str], text_of: np.ndarray, offsets: np.ndarray, reach: np.ndarray
) -> Stretches:
    """Cut out the stretches around mentions. Mentions near each other share one.

    A text is cut at spaces between two printable ASCII characters. So words, and the word pieces of
    BERT's family, are those of the whole text.

    texts, text_of, offsets: As in ``TowerReader.read_mentions``.
    reach: (n,) int64, the least characters of a stretch on either side of a mention.
    """
    low = offsets[:, 0] - reach
    high = offsets[:, 1] + reach
    order = np.lexsort((low, text_of))
    source: list[int] = []
    places: list[tuple[int, int]] = []
    stretch = np.empty(len(order), dtype=np.int64)
    for group in np.split(order, np.flatnonzero(np.diff(text_of[order])) + 1):
        number = int(text_of[group[0]])
        places_here, of_mention = _cut(
            texts[number], low[group].tolist(), high[group].tolist()
        )
        stretch[group] = int_array(of_mention) + len(places)
        source += [number] * len(places_here)
        places += places_here
    cut = [texts[number][start:end] for number, (start, end) in zip(source, places)]
    bounds = int_array(places)
    moved = offsets - bounds[stretch, :1]
    return Stretches(cut, stretch, moved, int_array(source), bounds)


def _cut(
    text: str, low: Sequence[int], high: Sequence[int]
) -> tuple[list[tuple[int, int]], list[int]]:
    """The places of stretches, and the stretch of each mention.

    low, high: What stretches have to include, sorted by ``low``; may be outside of the text.
    """
    if len(text) <= UNCUT:
        return [(0, len(text))], [0] * len(low)
    starts: list[int] = []
    ends: list[int] = []
    of_mention = []
    for least, most in zip(low, high):
        last = ends[-1] if ends else 0
        space = _space_before(text, last, least)
        if not ends or space >= 0:
            starts.append(space + 1)
            ends.append(_space_after(text, most))
        elif most > last:
            ends[-1] = _space_after(text, most)
        of_mention.append(len(starts) - 1)
    return list(zip(starts, ends)), of_mention


def _space_before(text: str, start: int, end: int) -> int:
    place = text.rfind(" ", start, max(end, 0))
    while place >= 0 and not _BORDER.match(text, place):
        place = text.rfind(" ", start, place)
    return place


def _space_after(text: str, start: int) -> int:
    space = _BORDER.search(text, start)
    if space:
        return space.start()
    return len(text)
